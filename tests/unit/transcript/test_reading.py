"""What a line may say has limits; a line beyond them names the field and the rule."""

from typing import Any

import pytest

from wakeful.transcript.jsonl.reading import LONGEST_LABEL, OutOfBounds, check_bounds, read

SHORT = f"must be at most {LONGEST_LABEL} characters"
NUMBER = f"must be from 0 to {2**53 - 1}"
REPLY: dict[str, Any] = {"role": "assistant", "content": []}


def ours(**body: Any) -> dict[str, Any]:
    return {"wakeful": {"body": body}}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"type": "label", "label": "x" * 201}, f"label {SHORT}"),
        ({"type": "label", **ours(text="x" * 201)}, f"label {SHORT}"),
        ({"type": "reset", "reason": "x" * 201}, f"reason {SHORT}"),
        (
            {"type": "compaction", **ours(first_kept_depth=2**60)},
            f"wakeful.body.first_kept_depth {NUMBER}",
        ),
        (
            {"type": "compaction", **ours(tokens_before=-1)},
            f"wakeful.body.tokens_before {NUMBER}",
        ),
        (
            {"type": "message", "message": REPLY, **ours(message={"usage": {"input": 10**30}})},
            f"usage.input {NUMBER}",
        ),
    ],
)
def test_a_value_beyond_its_limits_is_refused_with_the_field_and_the_rule(
    line: dict[str, Any], told: str
):
    with pytest.raises(OutOfBounds) as refused:
        check_bounds(*read(line))

    assert str(refused.value) == told


def test_values_at_their_limits_are_read():
    for line in (
        {"type": "label", "targetId": "a", "label": "x" * 200},
        {"type": "reset", "reason": "x" * 200},
        {"type": "compaction", "summary": "s", **ours(tokens_before=2**53 - 1)},
    ):
        check_bounds(*read(line))
