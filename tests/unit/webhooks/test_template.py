"""Templates: what is written stands there, what is not there is empty, and nothing is run."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.vocabulary.errors import InvalidInput
from wakeful.webhooks.template import LONGEST_TEMPLATE, Delivered, parse

DELIVERED = Delivered(
    headers={"x-github-event": "push", "x-empty": ""},
    body="the body {body}",
    payload={
        "ref": "refs/heads/main",
        "count": 3,
        "is_new": True,
        "none": None,
        "commits": [{"message": "one"}, {"message": "{ref} two"}],
        "__class__": "a name like any other",
    },
)
PLAIN = st.text(st.characters(exclude_characters="{}"), max_size=50)
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def rendered(text: str, longest: int = 1000) -> str:
    return parse(text, "text").rendered(DELIVERED, longest)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{body}", "the body {body}"),
        ("{X-GitHub-Event} to {payload.ref}", "push to refs/heads/main"),
        ("{payload.commits.1.message}", "{ref} two"),
        ("{payload.commits.0}", '{"message":"one"}'),
        ("{payload.count} {payload.is_new}", "3 true"),
        ("{payload.none}{X-Empty}{X-Missing}{payload.a.b.c}{payload.ref.0}", ""),
        ("{payload.commits.2.message}{payload.commits.-1}{payload.commits.x}", ""),
        ("{payload.__class__}", "a name like any other"),
        ("{payload.ref.__class__}{payload.commits.__len__}", ""),
        ('{{"event": "{X-GitHub-Event}"}}', '{"event": "push"}'),
    ],
)
def test_a_place_is_looked_up_and_what_is_missing_is_empty(template: str, text: str):
    assert rendered(template) == text


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{", "brace without its partner"),
        ("a } b", "brace without its partner"),
        ("{body", "brace without its partner"),
        ("{}", "must have places such as"),
        ("{payload.}", "must have places such as"),
        ("{payload..a}", "must have places such as"),
        ("{a b}", "must have places such as"),
        ("{7*7 }", "must have places such as"),
        ("{ä}", "must have places such as"),
        ("x" * (LONGEST_TEMPLATE + 1), "must be at most"),
    ],
)
def test_a_bad_template_is_refused_with_its_field(template: str, told: str):
    with pytest.raises(InvalidInput, match=told) as caught:
        parse(template, "hooks.github.text")

    assert caught.value.field == "hooks.github.text"


@given(PLAIN)
def test_words_without_braces_stand_as_they_are(text: str):
    assert rendered(text) == text


@given(st.text(st.sampled_from("{}ab.payloadbody0-_! "), max_size=40), JSON, st.integers(0, 60))
def test_any_template_is_refused_or_renders_within_its_length(
    text: str, payload: object, longest: int
):
    try:
        template = parse(text, "text")
    except InvalidInput:
        return

    delivered = Delivered(headers={}, body="b" * 50, payload=payload)
    assert len(template.rendered(delivered, longest)) <= longest


@given(JSON, st.lists(st.text(st.characters(exclude_characters="{}."), min_size=1), max_size=4))
def test_any_path_through_any_payload_is_found_or_empty(payload: object, steps: list[str]):
    template = parse("{" + ".".join(["payload", *steps]) + "}", "text")

    assert isinstance(
        template.rendered(Delivered(headers={}, body="", payload=payload), 10_000), str
    )


@given(st.dictionaries(st.text(st.characters(exclude_characters="{}."), min_size=1), st.text()))
def test_what_stands_in_a_payload_is_never_a_place_again(payload: dict[str, str]):
    for name, value in payload.items():
        template = parse("{payload." + name + "}", "text")

        assert template.rendered(Delivered(headers={}, body="", payload=payload), 10_000) == value
