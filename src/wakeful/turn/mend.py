"""Mend a list of messages so that every tool call has exactly one result, right after it."""

from collections.abc import Sequence

from wakeful.prompts import notes
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage


def mended(messages: Sequence[Message], *, is_open: bool = False) -> list[Message]:
    """Return the messages with missing results added and stray ones dropped.

    With `is_open` the last assistant message may still wait for results.
    """
    last = max(
        (at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)),
        default=-1,
    )
    whole: list[Message] = []
    expected: dict[str, str] = {}  # call id → tool name, in order
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if expected.pop(message.call_id, None) is not None:
                whole.append(message)
            continue
        _close(whole, expected)
        whole.append(message)
        if isinstance(message, AssistantMessage):
            expected = {call.id: call.name for call in message.tool_calls}
            if is_open and at == last:
                return [*whole, *_own_results(messages[at + 1 :], expected)]
    _close(whole, expected)
    return whole


def _close(whole: list[Message], expected: dict[str, str]) -> None:
    for call_id, name in expected.items():
        whole.append(ToolMessage(call_id=call_id, name=name, text=notes.UNKNOWN, is_error=True))
    expected.clear()


def _own_results(messages: Sequence[Message], expected: dict[str, str]) -> list[Message]:
    """Return what follows the open assistant message, without results of other calls."""
    return [
        message
        for message in messages
        if not isinstance(message, ToolMessage) or expected.pop(message.call_id, None) is not None
    ]
