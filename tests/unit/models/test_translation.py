"""Our messages in the library's words and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from wakeful.models.model import Request, ToolSpec
from wakeful.models.translation import NO_TEXT, content, history, parameters, stop_reason
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

CALL = ToolCall(id="c1", name="look", arguments={"at": "sky"})
DONE = ToolMessage(call_id="c1", name="look", text="blue")


def sent(*messages: Message, system: str = "be kind") -> list[ModelMessage]:
    return history(Request(system=system, messages=messages), lambda message, thought: True)


def parts(message: ModelMessage) -> list[type]:
    return [type(part) for part in message.parts]


def test_results_and_what_people_say_after_them_go_out_together():
    asked, answered, told = sent(
        UserMessage(text="look"),
        AssistantMessage(content=(Text(text="yes"), CALL)),
        DONE,
        UserMessage(text="hurry"),
    )

    assert isinstance(asked, ModelRequest)
    assert isinstance(answered, ModelResponse)
    assert parts(answered) == [TextPart, ToolCallPart]
    assert parts(told) == [ToolReturnPart, UserPromptPart]


def test_every_request_carries_what_the_agent_was_told():
    requests = [m for m in sent(UserMessage(text="a"), DONE) if isinstance(m, ModelRequest)]

    assert {request.instructions for request in requests} == {"be kind"}


def test_what_says_nothing_is_not_sent_as_nothing():
    said = sent(
        UserMessage(text=""),
        AssistantMessage(content=(Text(text=" \n"),)),
        ToolMessage(call_id="c", name="n", text=""),
    )

    assert len(said) == 1
    assert [getattr(part, "content", None) for part in said[0].parts] == [NO_TEXT, NO_TEXT]


def test_a_failed_tool_is_told_as_failed():
    (message,) = sent(ToolMessage(call_id="c", name="n", text="no", is_error=True))

    (part,) = message.parts
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "failed"


def test_a_tool_is_described_with_its_schema():
    spec = ToolSpec(name="look", description="Look.", parameters={"type": "object"})

    (tool,) = parameters(Request(system="", messages=(), tools=(spec,))).function_tools

    assert (tool.name, tool.description) == ("look", "Look.")
    assert tool.parameters_json_schema == {"type": "object"}


def test_what_is_not_ours_to_understand_comes_back_as_it_came():
    came = ModelResponse(
        parts=[
            ThinkingPart("hm", id="rs1", signature="s", provider_name="p"),
            TextPart("hi", id="m1", provider_name="p"),
            ToolCallPart("f", {"a": 1}, "c1", provider_name="p", provider_details={"sig": "x"}),
        ],
        provider_name="p",
        model_name="m",
    )

    (back,) = sent(AssistantMessage(content=content(came), provider="p", model="m"))

    assert list(back.parts) == list(came.parts)


def test_parts_that_are_no_words_of_ours_are_left_out():
    picture = FilePart.__new__(FilePart)

    assert content(ModelResponse(parts=[TextPart("a"), picture])) == (Text(text="a"),)


@pytest.mark.parametrize("broken", ['{"a": ', "[1]", "17", "not json", '"text"'])
def test_broken_arguments_are_garbled(broken: str):
    with pytest.raises(Garbled, match="'look'"):
        content(ModelResponse(parts=[ToolCallPart("look", broken, "c1")]))


def test_no_arguments_are_an_empty_object():
    (call,) = content(ModelResponse(parts=[ToolCallPart("look", "", "c1")]))

    assert call == ToolCall(id="c1", name="look", arguments={})


def test_why_a_model_stopped_is_told():
    call, cut = ModelResponse(parts=[ToolCallPart("f")]), ModelResponse(parts=[TextPart("a")])
    cut.finish_reason = "length"

    assert (stop_reason(call), stop_reason(cut)) == ("tool_use", "length")
    assert stop_reason(ModelResponse(parts=[])) == "stop"


texts = st.text(max_size=5)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Thinking, text=texts, signature=st.none() | texts),
    st.builds(ToolCall, id=texts, name=texts, arguments=st.just({"a": 1})),
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, text=texts),
    st.builds(ToolMessage, call_id=texts, name=texts, text=texts),
    st.builds(AssistantMessage, content=st.lists(blocks, max_size=3).map(tuple)),
)


@given(st.lists(messages, max_size=8), st.lists(messages, max_size=3))
def test_what_was_sent_before_is_sent_again_unchanged(old: list[Message], new: list[Message]):
    before, after = sent(*old), sent(*old, *new)

    if before:
        assert after[: len(before) - 1] == before[:-1]
        last, grown = before[-1], after[len(before) - 1]
        assert list(grown.parts)[: len(last.parts)] == list(last.parts)
