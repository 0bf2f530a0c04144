"""What the wire formats say and hear, where no stand-in does it."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from wakeful.models.formats.anthropic import AnthropicMessages
from wakeful.models.formats.dialects import DIALECTS, Dialect
from wakeful.models.formats.format import AnswerReader, Format, RefusedMidway, Remembered
from wakeful.models.formats.openai_chat import OpenAIChat
from wakeful.models.formats.openai_responses import OpenAIResponses
from wakeful.models.formats.schemas import closed, is_strict
from wakeful.models.model import Request, ToolSpec
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from wakeful.vocabulary.stimulus import KeptAttachment

LOOK = ToolSpec(name="look", description="Look.", parameters={"type": "object"})
CALL = ToolCall(id="call_1", name="look", arguments={"at": "sky"})
STALE = "messages.1.content.0: The block is bound to a different conversation."


def chat(model: str = "m", provider: str = "p", dialect: Dialect | None = None) -> OpenAIChat:
    return OpenAIChat(model, provider, dialect or Dialect())


def sent(
    form: Format, *messages: Message, level: ThinkingLevel | None = None, **more: Any
) -> dict[str, Any]:
    return json.loads(form.body(Request(system="s", messages=messages, **more), level))


def read(reader: AnswerReader, *events: object) -> str:
    shown = [reader.take(json.dumps(event).encode()) for event in events]
    return "".join(shown)


def delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"delta": said}]}


FINISH: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    "form", [AnthropicMessages("m", "p"), chat(), OpenAIResponses("m", "p")], ids=lambda f: f.path
)
def test_what_says_nothing_is_not_sent_as_nothing(form: Format):
    messages = (
        UserMessage(text=" "),
        AssistantMessage(content=(Text(text=" \n"),)),
        AssistantMessage(content=(CALL,)),
        ToolMessage(call_id="call_1", name="look", text=""),
    )

    told = json.dumps(sent(form, *messages))

    assert told.count("[no text]") == 2
    assert "\\n" not in told


@pytest.mark.parametrize(
    "form", [AnthropicMessages("m", "p"), chat(), OpenAIResponses("m", "p")], ids=lambda f: f.path
)
def test_thoughts_of_others_are_not_sent(form: Format):
    kept = {"id": "reasoning"}
    thoughts = (Thinking(text="deep", signature="s", keepsake=kept), Text(text="so"))
    message = AssistantMessage(content=thoughts, provider="another")

    assert "deep" not in json.dumps(sent(form, UserMessage(text="a"), message))


def test_what_was_written_once_is_not_written_again():
    written: list[str] = []

    def write(text: str) -> bytes:
        written.append(text)
        return text.encode()

    remembered, texts = Remembered(most_bytes=10), ["four", "more"]
    first = [remembered.each(texts, write) for _ in range(3)]
    remembered.each(["too much"], write)  # and all is forgotten
    remembered.each(texts, write)

    assert first == [[b"four", b"more"]] * 3
    assert written == ["four", "more", "too much", "four", "more"]


def test_a_thought_that_is_sealed_comes_back_sealed():
    form = AnthropicMessages("claude-opus-5", "anthropic")
    reader = form.reader()
    read(
        reader,
        {"type": "message_start", "message": {"model": "m"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "redacted_thinking", "data": "xyz"},
        },
    )
    content = reader.answer().content

    body = sent(form, AssistantMessage(content=content, provider="anthropic"))

    assert body["messages"][0]["content"] == [{"type": "redacted_thinking", "data": "xyz"}]


def test_thoughts_that_a_model_refuses_are_dropped_from_then_on():
    form = AnthropicMessages("claude-opus-5-5", "anthropic")
    request = Request(system="", messages=(UserMessage(text="a"),))

    before = form.headers("k"), json.loads(form.body(request, None))
    mended = form.mended_body(request, None, STALE)

    assert mended is not None
    assert "thinking" not in before[1]
    assert json.loads(mended)["thinking"] == {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert form.headers("k")["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
    assert form.body(request, None) == mended
    assert form.mended_body(request, None, STALE) is None


SEALED = AssistantMessage(
    content=(Thinking(text="hm", signature="seal"), Text(text="so"), CALL), provider="anthropic"
)
LOOKED = ToolMessage(call_id="call_1", name="look", text="blue")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("claude-opus-5", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("claude-opus-4-1", "messages.3.content.2: Invalid `data` in `redacted_thinking` block"),
        (
            "claude-opus-4-1",
            "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            "modified.",
        ),
    ],
)
def test_thoughts_that_a_provider_does_not_know_as_its_own_are_left_out(model: str, said: str):
    form = AnthropicMessages(model, "anthropic")
    request = Request(system="", messages=(UserMessage(text="a"), SEALED, LOOKED))
    before = json.loads(form.body(request, ThinkingLevel.HIGH))

    mended = form.mended_body(request, ThinkingLevel.HIGH, said)

    assert mended is not None
    whole, left = (
        [block["type"] for block in one["messages"][1]["content"]]
        for one in (before, json.loads(mended))
    )
    assert (whole, left) == (["thinking", "text", "tool_use"], ["text", "tool_use"])
    assert ("thinking" in json.loads(mended)) == (model == "claude-opus-5")
    # From then on without being told; what it thinks next goes back to it.
    later = (*request.messages, replace(SEALED, content=(Thinking(text="n", signature="new"),)))
    body = json.loads(form.body(replace(request, messages=later), None))
    assert "seal" not in json.dumps(body)
    assert body["messages"][-1]["content"][0]["signature"] == "new"
    assert form.mended_body(request, ThinkingLevel.HIGH, said) is None


def test_a_call_that_somebody_else_made_without_a_thought_is_answered_without_one():
    form = AnthropicMessages("claude-opus-4-1", "anthropic")
    called = AssistantMessage(content=(CALL,), provider="another")
    request = Request(system="", messages=(UserMessage(text="a"), called, LOOKED))
    said = (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    )

    mended = form.mended_body(request, ThinkingLevel.HIGH, said)

    assert mended is not None
    assert "thinking" not in json.loads(mended)
    assert "thinking" in json.loads(form.body(request, ThinkingLevel.HIGH))  # only this once
    assert form.mended_body(request, None, said) is None


@pytest.mark.parametrize(
    "said",
    [
        "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content "
        "organization_id did not match the target organization.",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_1'.",
    ],
)
def test_what_a_provider_does_not_know_as_its_own_is_told_as_anybodys_words(said: str):
    form = OpenAIResponses("gpt-5.6", "openai")
    thought = Thinking(text="hm", signature="sealed", keepsake={"id": "rs_1"})
    words, called = Text(text="so", keepsake={"id": "msg_1"}), replace(CALL, keepsake={"id": "fc"})
    own = AssistantMessage(content=(thought, words, called), provider="openai")
    request = Request(system="", messages=(UserMessage(text="a"), own, LOOKED))
    before = form.body(request, None)

    mended = form.mended_body(request, None, said)

    assert mended is not None
    assert all(one in before for one in (b"rs_1", b"sealed", b"msg_1"))
    assert not any(one in mended for one in (b"rs_1", b"sealed", b"msg_1"))
    assert {"role": "assistant", "content": "so"} in json.loads(mended)["input"]
    assert form.mended_body(request, None, said) is None
    new = replace(own, content=(replace(thought, keepsake={"id": "rs_2"}), words_of("msg_2")))
    assert b"rs_2" in form.body(replace(request, messages=(*request.messages, new)), None)


def words_of(item_id: str) -> Text:
    return Text(text="then", keepsake={"id": item_id})


@pytest.mark.parametrize(
    "said",
    [
        "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
        "property 'reasoning_content' is unsupported)]",
        "Extra inputs are not permitted, field: 'messages[1].reasoning_content', value: 'hm'",
    ],
)
def test_thoughts_that_a_server_will_not_have_back_stay_here_from_then_on(said: str):
    form = chat()
    thought = Thinking(text="hm", keepsake={"id": "reasoning_content"})
    own = AssistantMessage(content=(thought, Text(text="so")), provider="p")
    request = Request(system="", messages=(UserMessage(text="a"), own))
    before = form.body(request, None)

    mended = form.mended_body(request, None, said)

    assert b"reasoning_content" in before
    assert mended is not None
    assert b"reasoning_content" not in mended
    assert form.body(request, None) == mended
    assert form.mended_body(request, None, said) is None


def test_the_longest_answer_is_called_as_the_server_wants_it_called():
    form, request = chat(), Request(system="", messages=(UserMessage(text="a"),), max_tokens=9)
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."  # noqa: E501
    assert json.loads(form.body(request, None))["max_tokens"] == 9

    mended = form.mended_body(request, None, said)

    assert mended is not None
    assert json.loads(mended)["max_completion_tokens"] == 9
    assert "max_tokens" not in json.loads(form.body(request, None))
    assert form.mended_body(request, None, said) is None


TALK = (
    AssistantMessage(content=(Text(text="Hello."),), provider="p"),
    UserMessage(text="a"),
    UserMessage(text="b", attachments=()),
    AssistantMessage(content=(CALL,), provider="p"),
    ToolMessage(call_id="call_1", name="look", text="blue"),
    AssistantMessage(content=(Text(text="so"),), provider="p"),
    UserMessage(text="c"),
)


def test_people_and_the_model_take_turns_where_a_template_wants_it():
    form, request = chat(), Request(system="s", messages=TALK)
    before = [one["role"] for one in json.loads(form.body(request, None))["messages"]]

    by_turns = form.mended_body(request, None, "Conversation roles must alternate user/assistant")
    without = form.mended_body(request, None, "System role not supported")

    assert before[1:5] == ["assistant", "user", "user", "assistant"]
    assert by_turns is not None
    assert without is not None
    said = [(one["role"], one["content"]) for one in json.loads(by_turns)["messages"]]
    assert said == [
        ("system", "s"),
        ("user", "[no text]"),
        ("assistant", "Hello."),
        ("user", "a\n\nb"),
        ("assistant", None),
        ("tool", "blue"),
        ("assistant", "so"),
        ("user", "c"),
    ]
    roles = [one["role"] for one in json.loads(without)["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert form.body(request, None) == without
    assert form.mended_body(request, None, "System role not supported") is None


def test_a_conversation_begins_with_a_person_where_a_gateway_wants_it():
    form, request = AnthropicMessages("m", "p"), Request(system="s", messages=TALK)
    before = json.loads(form.body(request, None))["messages"]

    mended = form.mended_body(request, None, 'messages: first message must use the "user" role')

    assert mended is not None
    assert before[0]["role"] == "assistant"
    assert [one["role"] for one in json.loads(mended)["messages"]] == [
        *("user", "assistant", "user", "assistant", "user", "assistant", "user"),
    ]


def test_a_thought_that_a_server_wants_back_is_not_taken_for_one_it_refuses():
    said = "The `reasoning_content` in the thinking mode must be passed back to the API."

    assert chat().mended_body(Request(system="", messages=()), None, said) is None


@pytest.mark.parametrize(("model", "said"), [("claude-opus-5", STALE), ("claude-opus-5-5", "no")])
def test_another_refusal_is_not_mended(model: str, said: str):
    form = AnthropicMessages(model, "anthropic")

    assert form.mended_body(Request(system="", messages=()), None, said) is None


@pytest.mark.parametrize(
    ("max_tokens", "thinking"), [(9000, {"type": "enabled", "budget_tokens": 7976}), (1500, None)]
)
def test_a_number_to_think_leaves_room_for_an_answer(max_tokens: int, thinking: Any):
    form = AnthropicMessages("claude-opus-4-1", "anthropic")

    body = sent(form, level=ThinkingLevel.HIGH, max_tokens=max_tokens)

    assert (body["max_tokens"], body.get("thinking")) == (max_tokens, thinking)


@pytest.mark.parametrize(
    ("provider", "model", "level", "told"),
    [
        ("openrouter", "openai/gpt-5.6", "off", {"reasoning": {"effort": "none"}}),
        ("openrouter", "a/b", "high", {"reasoning": {"effort": "high", "enabled": True}}),
        ("zai", "glm-5", "low", {"thinking": {"type": "enabled", "clear_thinking": False}}),
        ("zai", "glm-5", "off", {"thinking": {"type": "disabled", "clear_thinking": False}}),
        ("moonshotai", "kimi-k2.5", "off", {"thinking": {"type": "disabled"}}),
        ("moonshotai", "kimi-k2.5", "low", {"reasoning_effort": "low"}),
        ("deepseek", "deepseek-v4-pro", "off", {"reasoning_effort": "none"}),
        ("cerebras", "zai-glm-4.7", "off", {"reasoning_effort": "none", "clear_thinking": False}),
        ("cerebras", "zai-glm-4.7", "high", {"reasoning_effort": None, "clear_thinking": False}),
        ("cerebras", "gpt-oss-120b", "high", {"reasoning_effort": "high"}),
        ("groq", "qwen/qwen3-32b", "off", {"reasoning_effort": "none"}),
        ("groq", "qwen/qwen3-32b", "high", {"reasoning_effort": "default"}),
        ("groq", "openai/gpt-oss-120b", "high", {"reasoning_effort": "high"}),
        ("xai", "grok-4.5", "medium", {"reasoning_effort": "medium"}),
    ],
)
def test_every_provider_is_told_to_think_in_its_own_words(
    provider: str, model: str, level: str, told: dict[str, Any]
):
    form = chat(model, provider, DIALECTS.get(provider))

    body = sent(form, level=ThinkingLevel(level))

    assert {key: body.get(key) for key in told} == told


def test_mistral_gets_ids_of_nine_letters_and_no_options_that_it_refuses():
    form = chat("mistral-large", "mistral", DIALECTS["mistral"])
    result = ToolMessage(call_id="call_1", name="look", text="blue")

    body = sent(form, AssistantMessage(content=(CALL,)), result, max_tokens=5)

    _, called, told = body["messages"]
    assert called["tool_calls"][0]["id"] == told["tool_call_id"]
    assert len(told["tool_call_id"]) == 9
    assert body["max_tokens"] == 5
    assert "stream_options" not in body


def test_a_model_of_anthropic_behind_a_router_is_told_where_to_cache():
    form = chat("anthropic/claude-opus-5", "openrouter", DIALECTS["openrouter"])

    body = sent(form, UserMessage(text="a"), UserMessage(text="b"))

    marked = ["cache_control" in json.dumps(message) for message in body["messages"]]
    assert marked == [True, False, True]


def test_thoughts_between_tags_are_told_from_words_however_they_are_cut():
    reader = chat().reader()
    pieces = ["\n<th", "ink>\nhm", "m</thi", "nk>", "\n\nso", " it < is"]

    shown = read(reader, *(delta(content=piece) for piece in pieces), FINISH)

    assert shown == "so it < is"
    assert reader.answer().content == (
        Thinking(text="hmm", keepsake={"id": "content"}),
        Text(text="so it < is"),
    )


@pytest.mark.parametrize("words", ["<b>bold</b>", "<", "<thin", "a <think> b"])
def test_words_that_only_look_like_thoughts_are_words(words: str):
    reader = chat().reader()

    shown = read(reader, *(delta(content=letter) for letter in words), FINISH)

    assert shown == words


def test_thoughts_between_tags_go_back_between_tags():
    thought = Thinking(text="hm", keepsake={"id": "content"})
    said = AssistantMessage(content=(thought, Text(text="so")), provider="p")

    (_, message) = sent(chat(), said)["messages"]

    assert message == {"role": "assistant", "content": "<think>\nhm\n</think>\n\nso"}


def test_calls_without_numbers_or_ids_are_told_apart():
    reader = chat().reader()
    first = {"id": "a", "function": {"name": "look", "arguments": "{}"}}
    second = {"id": "b", "function": {"name": "put", "arguments": {"x": 1}}}
    third = {"index": 7, "function": {"name": "go", "arguments": ""}}

    read(reader, *(delta(tool_calls=[call]) for call in (first, second, third)), FINISH)

    calls = [call for call in reader.answer().content if isinstance(call, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("look", {}),
        ("put", {"x": 1}),
        ("go", {}),
    ]
    assert all(call.id for call in calls)


def test_a_last_word_that_comes_twice_is_the_last_word():
    reader = chat().reader()
    reader.take(b'{"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}')
    for _ in range(2):
        reader.take(b"[DONE]")

    assert (reader.is_over, reader.finish) == (True, "stop")
    with pytest.raises(Garbled):
        reader.take(b'{"choices": [{"delta": {"content": "more"}}]}')


def test_parts_in_place_of_a_text_are_read():
    reader = chat().reader()
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}

    shown = read(reader, delta(content=[thought]), delta(content=[{"type": "text", "text": "so"}]))

    assert shown == "so"
    assert [type(block) for block in reader.answer().content] == [Thinking, Text]


@pytest.mark.parametrize(
    ("reader", "event"),
    [
        (AnthropicMessages("m", "p").reader(), {"type": "error", "error": {"message": "x"}}),
        (chat().reader(), {"error": {"message": "x", "code": 502}}),
        (chat().reader(), {"choices": [{"error": {"message": "x"}}]}),
        (OpenAIResponses("m", "p").reader(), {"type": "error", "code": "x", "message": "x"}),
        (
            OpenAIResponses("m", "p").reader(),
            {"type": "response.failed", "response": {"error": {"code": "x", "message": "x"}}},
        ),
    ],
)
def test_an_error_in_the_middle_is_no_answer(reader: AnswerReader, event: dict[str, Any]):
    with pytest.raises(RefusedMidway) as refused:
        read(reader, event)

    assert refused.value.error["message"] == "x"


@pytest.mark.parametrize(
    "reader",
    [AnthropicMessages("m", "p").reader(), chat().reader(), OpenAIResponses("m", "p").reader()],
)
@pytest.mark.parametrize(
    "data",
    [
        *(b"{", b"[]", b'{"choices": 7, "type": 7}', b"\xff"),
        pytest.param(b'{"type": "ping", "a": %b1%b}' % (b"[" * 9_000, b"]" * 9_000), id="too deep"),
    ],
)
def test_what_is_no_event_is_garbled(reader: AnswerReader, data: bytes):
    with pytest.raises(Garbled):
        reader.take(data)


NONSENSE = [-5, 12.5, "12", [1], float("nan"), 1e300, 2**63, 10**15]


@pytest.mark.parametrize("number", NONSENSE, ids=str)
def test_numbers_that_make_no_sense_count_for_nothing_and_leave_the_answer(number: Any):
    by_anthropic, by_chat = AnthropicMessages("m", "p").reader(), chat().reader()
    by_responses = OpenAIResponses("m", "p").reader()
    counts = {"input_tokens": number, "output_tokens": number}

    read(by_anthropic, {"type": "message_start", "message": {"model": number, "usage": counts}})
    read(by_anthropic, {"type": "message_delta", "delta": {"stop_reason": "x"}, "usage": counts})
    counted = {"prompt_tokens": number, "completion_tokens": number, "cost": number}
    read(by_chat, delta(content="so"), FINISH, {"usage": counted, "model": ["m"]})
    ended = {"model": number, "usage": counts}
    read(by_responses, {"type": "response.completed", "response": ended})

    answers = [reader.answer() for reader in (by_anthropic, by_chat, by_responses)]
    assert [(one.usage.input, one.usage.output) for one in answers] == [(0, 0)] * 3
    assert answers[1].cost in (None, 12.5)


def test_whole_numbers_count_however_they_are_written():
    reader = chat().reader()

    read(reader, FINISH, {"usage": {"prompt_tokens": 7.0, "completion_tokens": 3, "cost": 0.5}})

    answer = reader.answer()
    assert (answer.usage.input, answer.usage.output, answer.cost) == (7, 3, 0.5)


def test_the_name_that_a_provider_calls_a_model_is_plain_and_short():
    reader = chat().reader()

    read(reader, {**FINISH, "model": "m\0" + "x" * 1_000_000})

    assert reader.answer().model == "m\ufffd" + "x" * 198


PAD = "p" * 1_000_000
BEGIN: dict[str, Any] = {"choices": []}


@pytest.mark.parametrize(
    ("reader", "begin", "event"),
    [
        (
            AnthropicMessages("m", "p").reader(),
            {"type": "message_start", "message": {"model": "m"}},
            {"type": "content_block_start", "content_block": {"type": "tool_use", "name": PAD}},
        ),
        (chat().reader(), BEGIN, delta(tool_calls=[{"id": PAD}])),
        (
            chat().reader(),
            BEGIN,
            delta(tool_calls=[{"index": 0, "function": {"name": PAD}}]),
        ),
        (
            chat().reader(),
            BEGIN,
            delta(tool_calls=[{"function": {"arguments": {"a": PAD}}}]),
        ),
        (chat().reader(), BEGIN, delta(reasoning_details=[{"x": PAD}])),
        (
            OpenAIResponses("m", "p").reader(),
            {"type": "response.created"},
            {"type": "response.output_item.done", "item": {"type": "reasoning", "id": PAD}},
        ),
    ],
    ids=["block", "id", "name", "arguments", "detail", "item"],
)
def test_everything_that_is_kept_of_an_answer_makes_it_longer(
    reader: AnswerReader, begin: dict[str, Any], event: dict[str, Any]
):
    read(reader, begin, {**event, "index": 0})

    assert reader.size >= len(PAD)


def test_an_error_of_any_shape_in_the_middle_is_an_error():
    for error in ("boom", [1], {"code": 429, "message": ["x"]}):
        with pytest.raises(RefusedMidway):
            read(OpenAIResponses("m", "p").reader(), {"type": "error", "error": error})


def test_a_call_by_a_name_that_no_provider_takes_goes_back_by_another():
    call = ToolCall(id="i" * 100_000, name="look at/" + "n" * 100_000, arguments={})
    said = [
        AssistantMessage(content=(call,)),
        ToolMessage(call_id=call.id, name=call.name, text="there is no such tool"),
    ]

    for form in (chat(), AnthropicMessages("m", "p"), OpenAIResponses("m", "p")):
        body = form.body(Request(system="s", messages=said), None)
        assert len(body) < 2_000
        assert b"look_at_nnn" in body


def test_a_refusal_is_a_reason_to_stop():
    by_chat, by_responses = chat().reader(), OpenAIResponses("m", "p").reader()
    item = {"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "no"}]}

    read(by_chat, delta(refusal="no"), FINISH)
    read(
        by_responses,
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"status": "completed"}},
    )

    assert (by_chat.finish, by_responses.finish) == ("content_filter", "content_filter")
    assert by_responses.answer().content == ()


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
def test_why_an_answer_is_not_complete_is_read(reason: str, finish: str):
    reader = OpenAIResponses("m", "p").reader()
    whole = {"status": "incomplete", "incomplete_details": {"reason": reason}}

    read(reader, {"type": "response.incomplete", "response": whole})

    assert reader.finish == finish


def test_thoughts_in_several_parts_are_one_thing_again():
    form = OpenAIResponses("gpt-5.6", "openai")
    reader = form.reader()
    summary = [{"type": "summary_text", "text": text} for text in ("a", "b")]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "sealed"}
    said: dict[str, Any] = {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "so", "annotations": []}],
        "phase": "final_answer",
    }
    read(
        reader,
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    )

    body = sent(form, AssistantMessage(content=reader.answer().content, provider="openai"))

    assert body["input"][1:] == [item, said]


def test_a_schema_is_closed_and_held_to_only_where_it_is_whole():
    whole = {"type": "object", "properties": {"title": {"type": "string", "title": "T"}}}
    with_all = {**whole, "required": ["title"]}

    assert closed(whole) == {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "additionalProperties": False,
    }
    assert (is_strict(whole), is_strict(with_all)) == (False, True)


def test_files_of_results_stand_behind_all_results_of_a_reply():
    picture = KeptAttachment(name="x", media_type="image/png", size=1, hash="f" * 64)
    calls = AssistantMessage(content=(CALL, ToolCall(id="call_2", name="look", arguments={})))
    results = (
        ToolMessage(call_id="call_1", name="look", text="a", attachments=(picture,)),
        ToolMessage(call_id="call_2", name="look", text="b"),
    )

    told = sent(chat(), calls, *results, UserMessage(text="c"), contents={"f" * 64: "UE5H"})

    assert [message["role"] for message in told["messages"][1:]] == [
        *("assistant", "tool", "tool", "user", "user"),
    ]
    shown = json.dumps(told["messages"][4])
    assert "data:image/png;base64,UE5H" in shown
    assert told["messages"][2]["content"] == f"a\nSee file {picture.id}."


def test_a_routers_proofs_of_its_thoughts_go_back_as_they_came():
    form = chat("google/gemini-3-pro", "openrouter", DIALECTS["openrouter"])
    reader = form.reader()
    words = {"type": "reasoning.text", "index": 0, "format": "google-gemini-v1"}
    sealed = {"type": "reasoning.encrypted", "index": 0, "data": "c2VhbGVk", "id": "r"}

    shown = read(
        reader,
        delta(reasoning="de", reasoning_details=[{**words, "text": "de"}]),
        delta(reasoning="ep", reasoning_details=[{**words, "text": "ep", "signature": None}]),
        delta(reasoning_details=[{**words, "signature": "sig"}, sealed]),
        delta(content="so"),
        FINISH,
    )
    said = AssistantMessage(content=reader.answer().content, provider="openrouter")
    (_, message) = sent(form, said)["messages"]

    assert shown == "so"
    assert [block.text for block in said.content if isinstance(block, Thinking)] == ["deep", ""]
    assert message == {
        "role": "assistant",
        "reasoning_details": [{**words, "text": "deep", "signature": "sig"}, sealed],
        "content": "so",
    }


@pytest.mark.parametrize(
    ("model", "level", "had"),
    [
        ("deepseek-v4-pro", None, ["", "", "hm", ""]),
        ("deepseek-v4-pro", ThinkingLevel.OFF, [None, None, "hm", ""]),
        ("deepseek-chat", None, [None, None, "hm", ""]),
    ],
)
def test_a_call_without_thoughts_is_not_refused_by_whoever_wants_them(
    model: str, level: ThinkingLevel | None, had: list[str | None]
):
    form = chat(model, "deepseek", DIALECTS["deepseek"])
    thought = Thinking(text="hm", keepsake={"id": "reasoning_content"})
    foreign = AssistantMessage(content=(thought, CALL), provider="openai")
    own = AssistantMessage(content=(thought, CALL), provider="deepseek")
    bare = AssistantMessage(content=(CALL,), provider="deepseek")
    words = AssistantMessage(content=(Text(text="so"),), provider="deepseek")

    _, *messages = sent(form, bare, foreign, own, bare, words, level=level)["messages"]

    assert [message.get("reasoning_content") for message in messages] == [*had, None]


@pytest.mark.parametrize("model", ["deepseek-v4-pro", "deepseek-chat"])
def test_what_was_sent_without_thoughts_stays_as_it_was(model: str):
    form = chat(model, "deepseek", DIALECTS["deepseek"])
    thought = Thinking(text="hm", keepsake={"id": "reasoning_content"})
    bare = AssistantMessage(content=(CALL,), provider="deepseek")
    own = AssistantMessage(content=(thought, CALL), provider="deepseek")
    told = ToolMessage(call_id="call_1", name="look", text="blue")
    said: list[Message] = [UserMessage(text="a"), bare, told, own, told, bare, told]

    whole = sent(form, *said)["messages"]

    for count in range(len(said)):
        assert sent(form, *said[:count])["messages"] == whole[: count + 1]
