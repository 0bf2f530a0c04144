"""What a grant is bound to: the same arguments however they are written, and no others."""

import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from wakeful.approvals.approvals import canonical, hash_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4)
    ),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), VALUES, max_size=5)


def turned_round(value: Any) -> Any:
    """Return the same value with the names of every object in the opposite order."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        return {name: turned_round(pairs[name]) for name in reversed(list(pairs))}
    if isinstance(value, list):
        return [turned_round(one) for one in cast("list[Any]", value)]
    return value


def exactly(value: Any) -> str:
    """Return a text that is another for whatever is another value, 1 and 1.0 and true included."""
    return json.dumps(value, sort_keys=True)


@given(ARGUMENTS)
def test_the_order_of_names_makes_no_difference(arguments: dict[str, Any]):
    assert hash_of(canonical(arguments)) == hash_of(canonical(turned_round(arguments)))


@given(ARGUMENTS)
def test_what_is_stored_reads_back_to_the_same_hash(arguments: dict[str, Any]):
    again = json.loads(canonical(arguments))

    assert hash_of(canonical(again)) == hash_of(canonical(arguments))


@given(ARGUMENTS, ARGUMENTS)
def test_other_arguments_have_another_hash(one: dict[str, Any], other: dict[str, Any]):
    is_same = hash_of(canonical(one)) == hash_of(canonical(other))

    assert is_same is (exactly(one) == exactly(other))


def test_every_small_change_asks_anew():
    whole = {"command": "rm a", "deep": {"list": [1, 2, {"x": None}]}}
    others = [
        {**whole, "command": "rm  a"},
        {**whole, "more": ""},
        {"command": "rm a"},
        {**whole, "deep": {"list": [2, 1, {"x": None}]}},
        {**whole, "deep": {"list": [1, 2, {"x": ""}]}},
        {**whole, "deep": {"list": [1.0, 2, {"x": None}]}},
    ]

    assert len({hash_of(canonical(one)) for one in (whole, *others)}) == 1 + len(others)
