"""Calls are sent under ids that every provider takes, whoever made them up."""

import re

from hypothesis import given
from hypothesis import strategies as st

from wakeful.models.call_ids import legal_name, with_legal_ids
from wakeful.vocabulary.message import AssistantMessage, Message, ToolCall, ToolMessage


def step(*ids: str) -> list[Message]:
    calls = tuple(ToolCall(id=one, name="look", arguments={}) for one in ids)
    return [
        AssistantMessage(content=calls),
        *(ToolMessage(call_id=one, name="look", text="seen") for one in ids),
    ]


def ids_of(messages: list[Message]) -> list[str]:
    return [
        call.id for one in messages if isinstance(one, AssistantMessage) for call in one.tool_calls
    ]


def test_good_ids_are_sent_as_they_are() -> None:
    said = [*step("toolu_1", "toolu_2"), *step("toolu_3")]

    assert with_legal_ids(said) is said


def test_an_id_that_comes_again_is_another_call() -> None:
    sent = list(with_legal_ids([*step("demo_0_0"), *step("demo_0_0")]))

    first, second = ids_of(sent)
    results = [one.call_id for one in sent if isinstance(one, ToolMessage)]
    assert first == "demo_0_0" != second
    assert results == [first, second]


@given(st.text(max_size=300))
def test_every_name_is_sent_as_every_provider_takes_it(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", legal_name(name))


def test_a_tool_that_there_is_not_is_sent_back_by_a_legal_name() -> None:
    call = ToolCall(id="a", name="functions.look at/it", arguments={})

    (sent,) = with_legal_ids([AssistantMessage(content=(call,))])

    assert isinstance(sent, AssistantMessage)
    assert [call.name for call in sent.tool_calls] == ["functions_look_at_it"]


@given(st.lists(st.lists(st.text(max_size=80), min_size=1, max_size=3, unique=True), max_size=5))
def test_every_id_is_plain_short_and_used_once_and_a_longer_prompt_keeps_its_beginning(
    steps: list[list[str]],
) -> None:
    said = [message for ids in steps for message in step(*ids)]

    sent = list(with_legal_ids(said))
    names = ids_of(sent)

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in names)
    assert [one.call_id for one in sent if isinstance(one, ToolMessage)] == names
    assert list(with_legal_ids(said[: len(said) // 2])) == sent[: len(said) // 2]
