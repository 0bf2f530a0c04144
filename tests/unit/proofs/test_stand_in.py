"""The stand-in model refuses what real providers refuse."""

import pytest

from tests.proofs.stand_in import unpaired
from wakeful.vocabulary.message import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

ASK = UserMessage(text="look twice")
CALLS = AssistantMessage(
    content=tuple(ToolCall(id=name, name="look", arguments={}) for name in ("c1", "c2"))
)
FIRST = ToolMessage(call_id="c1", name="look", text="one")
SECOND = ToolMessage(call_id="c2", name="look", text="two")


@pytest.mark.parametrize(
    "messages", [[ASK], [ASK, CALLS, FIRST, SECOND], [ASK, CALLS, SECOND, FIRST, ASK]]
)
def test_calls_with_their_results_directly_after_them_pass(messages: list[Message]) -> None:
    assert unpaired(messages) is None


@pytest.mark.parametrize(
    "messages",
    [
        [ASK, CALLS],
        [ASK, CALLS, FIRST],
        [ASK, CALLS, FIRST, ASK, SECOND],
        [ASK, CALLS, FIRST, FIRST, SECOND],
        [ASK, FIRST],
    ],
)
def test_anything_else_is_refused(messages: list[Message]) -> None:
    assert unpaired(messages) is not None
