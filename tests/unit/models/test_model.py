import sys
from typing import Any

import msgspec
import pytest

from wakeful.models.demo import Demo
from wakeful.models.model import LONGEST_REPLY, MOST_CALLS, Model, Reply, as_message
from wakeful.models.scripted import Scripted
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import (
    Block,
    Message,
    Text,
    Thinking,
    ToolCall,
    Usage,
    encode_message,
)
from wakeful.vocabulary.text import DEEPEST_JSON


def call(call_id: str = "c1", name: str = "look", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def test_an_answer_is_kept_with_what_it_cost() -> None:
    usage = Usage(input=3, output=4, cost=0.5)

    message = as_message(
        Reply(content=(Text(text="hi"), call()), stop_reason="tool_use", usage=usage, model="m")
    )

    assert (message.text, message.tool_calls) == ("hi", (call(),))
    assert (message.stop_reason, message.usage, message.model) == ("tool_use", usage, "m")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ((call("c1"), call("c1")), "same id"),
        ((call("c1"), call("")), "without a call id"),
        ((call("c1", name=""),), "without a name"),
        (tuple(call(f"c{number}") for number in range(MOST_CALLS + 1)), "1001 tools at once"),
        ((), "nothing"),
        ((Text(text=""),), "nothing"),
        ((Text(text=" \n\t"),), "nothing"),
        ((Thinking(text="hm"),), "nothing"),
        ((Text(text="x" * 50_000_000),), "longer than"),
        ((Text(text="x" * LONGEST_REPLY), Text(text="x")), "longer than"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_nobody_could_use_is_garbled(
    content: tuple[Block, ...], reason: str
) -> None:
    with pytest.raises(Garbled, match=reason):
        as_message(Reply(content=content))


def test_an_answer_of_calls_alone_is_an_answer() -> None:
    assert as_message(Reply(content=(call(),))).tool_calls == (call(),)


def test_ids_that_differ_only_in_what_cannot_be_stored_are_the_same() -> None:
    with pytest.raises(Garbled, match="same id"):
        as_message(Reply(content=(call("a\ud800"), call("a\udfff"))))


def test_what_cannot_be_stored_is_replaced() -> None:
    content = (
        Thinking(text="t\ud800"),
        Text(text="a\0\udfffb"),
        call("c\0", "n\ud800", **{"k\0": ["v\ud800", {"d": "\udc00"}]}),
    )

    message = as_message(Reply(content=content))

    assert message.content == (
        Thinking(text="t\ufffd"),
        Text(text="a\ufffd\ufffdb"),
        call("c\ufffd", "n\ufffd", **{"k\ufffd": ["v\ufffd", {"d": "\ufffd"}]}),
    )
    assert read_again(message) == message


def read_again(message: Message) -> Message:
    return msgspec.json.decode(encode_message(message), type=Message)


def test_arguments_nested_too_deep_become_text() -> None:
    deep: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit() * 10):
        deep = {"d": deep}

    message = as_message(Reply(content=(call(deep=deep),)))

    assert read_again(message) == message
    value: Any = message.tool_calls[0].arguments["deep"]
    while isinstance(value, dict):
        value = value["d"]  # pyright: ignore[reportUnknownVariableType]
    assert value == f"\ufffd nested deeper than {DEEPEST_JSON}"


def test_numbers_that_json_does_not_know_become_text() -> None:
    content = (call(nan=float("nan"), far=float("-inf"), huge=2**70, near=1.5),)

    message = as_message(Reply(content=content))

    assert message.tool_calls[0].arguments == {
        "nan": "nan",
        "far": "-inf",
        "huge": str(2**70),
        "near": 1.5,
    }
    assert read_again(message) == message


@pytest.mark.parametrize("model", [Demo(), Scripted([])], ids=lambda model: model.name)
def test_what_ships_is_a_model(model: object) -> None:
    assert isinstance(model, Model)


def test_the_name_of_who_answered_can_be_stored() -> None:
    message = as_message(Reply(content=(Text(text="hi"),), provider="p\0", model="m\ud800"))

    assert (message.provider, message.model) == ("p\ufffd", "m\ufffd")
