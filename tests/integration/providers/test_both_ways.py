"""Whoever speaks to a provider, we ourselves or the library: what is asked and heard is the same.

The differences are on purpose, listed in `docs/decisions/0015-three-formats-spoken-directly.md`,
and taken out here by name.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
from msgspec import structs
from openai.resources.chat.completions import completions
from openai.resources.responses import responses

from tests.integration.providers.scenes import ANTHROPIC, CHAT, RESPONSES, WIRES
from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.model import Model, Reply, Request, ToolSpec, as_message
from wakeful.models.providers import ProviderSettings, Via
from wakeful.models.remote import Remote
from wakeful.models.windows import ModelSettings
from wakeful.testing.providers.plan import PlannedCall, Step, Tokens
from wakeful.testing.providers.process import Providers
from wakeful.tools.builtin import default_tools
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import Garbled, WakefulError
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from wakeful.vocabulary.stimulus import KeptAttachment, Trust

pytestmark = [
    pytest.mark.timeout(60),  # the first test also waits for the library
    pytest.mark.filterwarnings("ignore:The model:DeprecationWarning"),  # of a vendor, about age
]

Ways = Callable[[str], tuple[Remote, DirectModel]]

TOOLS = tuple(Toolbox(list(default_tools())).specs(Trust.OPERATOR))
STRICT = ToolSpec(
    name="put",
    description="Put it somewhere.",
    parameters={
        "type": "object",
        "title": "Put",
        "properties": {
            "what": {"type": "array", "items": {"type": "string", "title": "What"}},
            "title": {"type": "object", "properties": {}, "required": []},
        },
        "required": ["what", "title"],
    },
)
EVENT = "event: content_block_delta\ndata: "
TWO_CALLS = (PlannedCall(name="look", arguments={"at": "é"}), PlannedCall(name="put", arguments={}))
LOOKED = (
    Step(text="so", thinking="deep", calls=TWO_CALLS, tokens=Tokens(input=500, cache_read=400)),
    Step(text="done", pieces=3),
)
PICTURE = KeptAttachment(name="a.png", media_type="image/png", size=3, hash="a" * 64)
PAPER = KeptAttachment(name="b.pdf", media_type="application/pdf", size=3, hash="b" * 64)
CONTENTS = {PICTURE.hash: "UE5H", PAPER.hash: "UERG"}
NAMED = f"{PAPER.id}.pdf"
ANSWERS = {
    "words": Step(text="hello you", pieces=4),
    "words in odd pieces": Step(text="héllo yöu", pieces=4, chunk=7),
    "a call": Step(text="", calls=TWO_CALLS[:1]),
    "calls side by side": Step(text="now", calls=TWO_CALLS, pieces=5),
    "calls without arguments": Step(text="", calls=(PlannedCall(name="look", raw=""),)),
    "thoughts": Step(text="so", thinking="deep"),
    "thoughts and calls": Step(text="", thinking="deep", calls=TWO_CALLS),
    "from a cache": Step(tokens=Tokens(input=900, output=7, cache_read=800, cache_write=50)),
    "nothing": Step(text=""),
    "broken arguments": Step(calls=(PlannedCall(name="look", raw='{"at": '),)),
    "a list of arguments": Step(calls=(PlannedCall(name="look", raw="[1]"),)),
    "a broken event": Step(text="hello you", pieces=4, garbage=f'{EVENT}{{"type": "x\n\n'),
    "comments": Step(text="hello you", pieces=4, garbage=": still here\n\n"),
    "no end": Step(
        text="hello you",
        drop=("message_delta", "message_stop", "response.completed", "finish", "usage"),
    ),
    "cut": Step(text="hello you", pieces=4, cut=60),
    "the last word twice": Step(text="hello you", twice=("done",)),
    "busy": Step(status=429, headers={"retry-after": "7"}),
    "overloaded": Step(status=529),
    "a fault": Step(status=500),
    "a gateway": Step(status=502, body="<html>no</html>"),
    "a wrong key": Step(status=401),
    "an unknown model": Step(status=404),
    "refused": Step(status=400),
    "too large": Step(status=413),
    "moved": Step(status=308, headers={"location": "/elsewhere"}),
}
FINISHES = {
    ANTHROPIC: (
        *("end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"),
        *("model_context_window_exceeded", "another"),
    ),
    CHAT: ("stop", "length", "tool_calls", "content_filter", "function_call", "another"),
    RESPONSES: ("max_output_tokens", "content_filter", "another", "failed"),
}
# Library alone: an answer that ends in order to call tools, and calls none, has called some.
WITH_CALLS = ("tool_use", "tool_calls", "function_call")
# One of each kind; what is known of the others is compared in the unit tests.
NAMES = (
    *("anthropic:claude-opus-5", "anthropic:claude-sonnet-5-5", "anthropic:claude-opus-4-5"),
    *("anthropic:claude-opus-4-1", "openai:gpt-5.6", "openai:o3", "openai:gpt-4.1"),
    *("openai-chat:gpt-5.6", "openai-chat:gpt-5-mini", "openai-chat:gpt-4.1", "ollama:deepseek-r1"),
)
# Who speaks like OpenAI, each in a way of its own; the library has a class for each of them.
LIKENESSES = (
    *("alibaba:qwen3-max", "cerebras:zai-glm-4.7", "crusoe:llama3", "deepseek:deepseek-chat"),
    *("deepseek:deepseek-reasoner", "deepseek:deepseek-v4-pro", "heroku:claude-sonnet-4-5"),
    *("fireworks:accounts/fireworks/models/deepseek-r1", "litellm:gpt-4.1", "moonshotai:kimi-k2.5"),
    *("nebius:deepseek-ai/DeepSeek-R1", "ollama:qwen3", "openrouter:anthropic/claude-opus-5"),
    *("openrouter:openai/gpt-5.6", "openrouter:deepseek/deepseek-r1", "ovhcloud:llama3"),
    *("sambanova:llama3", "together:deepseek-ai/DeepSeek-R1", "together:Qwen/Qwen3-235B"),
    *("vercel:anthropic/claude-sonnet-5", "vercel:openai/gpt-5.6", "vllm:Qwen/Qwen3-8B"),
    *("vllm:meta-llama/Llama-3.1-8B", "zai:glm-5"),
)
# Library alone: thoughts that a model does not take back as thoughts it gets as words.
THOUGHT_ALOUD = "<think>\ndeep\n</think>"


@pytest.fixture
async def ways(stand_in: Providers) -> AsyncIterator[Ways]:
    """Both ways to a model: the library, and ourselves."""
    opened: list[Remote | DirectModel] = []

    def both(name: str) -> tuple[Remote, DirectModel]:
        provider = name.partition(":")[0]
        place = stand_in.environment["OPENAI_BASE_URL"].removesuffix("/v1")
        base_url = place if provider == "anthropic" else f"{place}/v1"
        theirs, ours = (
            find(name, providers={provider: ProviderSettings(base_url=base_url, key="k", via=via)})
            for via in (Via.LIBRARY, Via.DIRECT)
        )
        assert isinstance(theirs, Remote)
        assert isinstance(ours, DirectModel)
        opened.extend((theirs, ours))
        return theirs, ours

    yield both
    for model in opened:
        await model.aclose()


async def heard(model: Model, messages: list[Message], **more: Any) -> Reply | WakefulError:
    """Return what comes of a question."""
    request = Request(system="be kind", messages=tuple(messages), **more)
    try:
        *_, last = [piece async for piece in model.stream(request)]
    except WakefulError as error:
        return error
    assert isinstance(last, Reply)
    return last


def plain(found: Reply | WakefulError) -> Any:
    """Return what was heard without the numbers that stand-ins give to answers."""
    if isinstance(found, WakefulError):
        return type(found), getattr(found, "retry_after_s", None)
    told = re.sub(r"\d{6}", "n", repr(found.content))
    told = re.sub(r"id='(pyd_ai_|call_)[0-9a-f]{8,}'", "id=made", told)
    return told, found.stop_reason, found.usage, found.provider, found.model


def sent(stand_in: Providers, mark: str) -> Any:
    """Return the newest question without the differences that are on purpose."""
    body = json.loads(re.sub(r"(?<=_)\d{6}", "n", json.dumps(stand_in.bodies(mark)[-1])))
    if "input" in body:
        aloud = {"role": "assistant", "content": THOUGHT_ALOUD}
        body["input"] = [item for item in body["input"] if item != aloud]
    for message in body.get("messages", []):
        if str(message["content"]).startswith(THOUGHT_ALOUD):
            message["content"] = message["content"].removeprefix(f"{THOUGHT_ALOUD}\n\n")
            message["reasoning_content"] = "deep"
    return body


async def conversation(
    model: Model,
    stand_in: Providers,
    mark: str,
    level: ThinkingLevel | None,
    steps: tuple[Step, ...] = LOOKED,
) -> list[Any]:
    """Have a talk with tools, of two questions, and return all that was sent and heard.

    Somebody else had made a call before, without a thought.
    """
    stand_in.plan(**{mark: steps})
    called = ToolCall(id="call_0", name="look", arguments={})
    messages: list[Message] = [
        UserMessage(text="look"),
        AssistantMessage(content=(called,), provider="another", model="a"),
        ToolMessage(call_id="call_0", name="look", text="grey"),
        UserMessage(text=f"once more {{{mark}}}"),
    ]
    found: list[Any] = []
    for number in range(2):
        answer = await heard(model, messages, tools=(*TOOLS, STRICT), thinking=level)
        assert isinstance(answer, Reply), answer
        found += [sent(stand_in, mark), plain(answer)]
        said = AssistantMessage(
            content=answer.content, provider=answer.provider, model=answer.model
        )
        messages.append(said)
        messages += [
            ToolMessage(call_id=call.id, name=call.name, text="blue", is_error=call.name == "put")
            for call in said.tool_calls
        ]
        messages.append(UserMessage(text=f"and {number}?"))
    return found


@pytest.mark.parametrize("name", NAMES)
async def test_the_same_is_asked_for_at_every_level(name: str, stand_in: Providers, ways: Ways):
    mark = "both_" + re.sub(r"\W", "_", name)
    theirs, ours = ways(name)

    for level in (None, *ThinkingLevel):
        by_library = await conversation(theirs, stand_in, mark, level)
        by_us = await conversation(ours, stand_in, mark, level)

        assert by_us == by_library


@pytest.mark.parametrize("name", LIKENESSES)
async def test_the_same_is_asked_for_by_whoever_speaks_alike(
    name: str, stand_in: Providers, ways: Ways
):
    mark = "like_" + re.sub(r"\W", "_", name)
    provider = name.partition(":")[0]
    steps = LOOKED
    if provider == "openrouter":
        steps = (structs.replace(LOOKED[0], thinking_in="reasoning_details", pieces=3), LOOKED[1])
    theirs, ours = ways(name)

    for level in (None, ThinkingLevel.OFF, ThinkingLevel.HIGH):
        by_library = await conversation(theirs, stand_in, mark, level, steps)
        by_us = await conversation(ours, stand_in, mark, level, steps)

        assert [alike(provider, one) for one in by_us] == [
            alike(provider, one) for one in by_library
        ]


def alike(provider: str, found: Any) -> Any:
    """Return what was sent or heard without what the library alone does for a provider."""
    if isinstance(found, tuple):  # heard
        content, stop_reason, usage, *who = cast("tuple[Any, ...]", found)
        # A gateway's price is its own affair, and some prices depend on the hour.
        is_unsure = provider in ("litellm", "deepseek")
        cost = usage.cost and round(usage.cost, 9)
        told = structs.replace(usage, cost=0.0 if is_unsure else cost)
        if provider == "cerebras":  # whose count of what came from a cache it leaves out
            told = structs.replace(told, cache_read=0)
        if provider == "openrouter":  # whose thoughts each keeps in its own way
            content = content.partition("Text(")[2]
        return content, stop_reason, told, who
    body = json.loads(json.dumps(found))
    if re.search("qwen|llama", body["model"].lower()):  # their schemas it sends as they are
        body["tools"] = [tool["function"]["name"] for tool in body["tools"]]
    else:  # the system's mark is behind the tools anyway
        body["tools"][-1].pop("cache_control", None)
    for message in body["messages"]:
        if provider == "openrouter":  # of calls without thoughts, though nobody asks for it
            message.pop("reasoning", None)
        message.pop("reasoning_details", None)  # which it has lost by then
    return body


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_is_heard(wire: str, stand_in: Providers, ways: Ways):
    question: list[Message] = [UserMessage(text="{heard}")]
    theirs, ours = ways(wire)

    for name, step in ANSWERS.items():
        stand_in.plan(heard=[step])
        by_library, by_us = await heard(theirs, question), await heard(ours, question)

        assert (name, plain(by_us)) == (name, plain(by_library))


@pytest.mark.parametrize("wire", WIRES)
async def test_a_name_without_end_is_given_up_while_it_grows(
    wire: str, stand_in: Providers, ways: Ways
):
    stand_in.plan(named=[Step(text="", calls=(PlannedCall(name="n" * 5_000_000),))])

    for model in ways(wire):
        with pytest.raises(Garbled, match="does not end"):
            async for _ in model.stream(
                Request(system="", messages=(UserMessage(text="{named}"),))
            ):
                pass


async def test_a_whole_answer_counts_though_its_connection_stays_open(
    stand_in: Providers, ways: Ways
):
    question: list[Message] = [UserMessage(text="{open}")]
    models = [ways(wire)[1] for wire in WIRES]

    for said in ("hello you", "and again"):
        stand_in.plan(open=[Step(text=said, silence="end" if said == "hello you" else "")])
        replies = await asyncio.gather(*(heard(model, question) for model in models))

        assert [as_message(one).text for one in replies if isinstance(one, Reply)] == [said] * 3


async def test_the_operators_price_counts_both_ways(
    stand_in: Providers, caplog: pytest.LogCaptureFixture
):
    stated = ModelSettings(input=1.0, output=4.0, cache_read=0.1)
    tokens = Tokens(input=1000, output=50, cache_read=900)
    stand_in.plan(priced=[Step(text="ok", tokens=tokens)])
    name = "ollama:llama3"

    for model in (Remote(name, stated=stated), find(name, known={name: stated})):
        assert isinstance(model, Remote | DirectModel)
        reply = await heard(model, [UserMessage(text="{priced}")])
        await model.aclose()

        assert isinstance(reply, Reply)
        assert reply.usage.cost == pytest.approx((100 + 4 * 50 + 0.1 * 900) / 1_000_000)
    assert "nobody knows the price" not in caplog.text


@pytest.mark.parametrize("wire", [CHAT, RESPONSES])
async def test_a_vendors_client_walks_through_nothing_that_is_said(
    wire: str, stand_in: Providers, ways: Ways, monkeypatch: pytest.MonkeyPatch
):
    walked: list[dict[str, Any]] = []
    for module in (completions, responses):
        walk: Any = module.async_maybe_transform

        async def noted(body: Any, kind: Any, walk: Any = walk) -> Any:
            walked.append(body)
            return await walk(body, kind)

        monkeypatch.setattr(module, "async_maybe_transform", noted)
    stand_in.plan(walked=[Step()])
    theirs, ours = ways(wire)
    said: list[Message] = [UserMessage(text="{walked}")]

    for model in (theirs, ours):
        await heard(model, said, tools=TOOLS)
        assert len(stand_in.bodies("walked")[-1]["tools"]) == len(TOOLS)

    body = walked[-1]  # before it there is a rehearsal
    assert (body["messages" if wire == CHAT else "input"], body["tools"]) == ((), ())


@pytest.mark.parametrize("wire", FINISHES)
async def test_every_end_means_the_same(wire: str, stand_in: Providers, ways: Ways):
    question: list[Message] = [UserMessage(text="{ends}")]
    theirs, ours = ways(wire)

    for reason in FINISHES[wire]:
        for calls in ((), TWO_CALLS):
            stand_in.plan(ends=[Step(text="hello", stop=reason, calls=calls)])
            by_library, by_us = await heard(theirs, question), await heard(ours, question)

            if not calls and reason in WITH_CALLS:
                assert isinstance(by_library, Reply)
                by_library = structs.replace(by_library, stop_reason="stop")
            assert (reason, plain(by_us)) == (reason, plain(by_library))


@pytest.mark.parametrize("wire", WIRES)
async def test_pictures_and_documents_are_shown_alike(wire: str, stand_in: Providers, ways: Ways):
    messages: list[Message] = [
        UserMessage(text="see {shown}", attachments=(PICTURE, PAPER)),
        AssistantMessage(content=(ToolCall(id="c1", name="look", arguments={}),)),
        ToolMessage(call_id="c1", name="look", text="here", attachments=(PICTURE,)),
        UserMessage(text="and?"),
    ]
    stand_in.plan(shown=[Step()])
    asked: list[Any] = []

    for model in ways(wire):
        await heard(model, messages, contents=CONTENTS)
        body = stand_in.bodies("shown")[-1]
        told = json.dumps(body.get("messages") or body["input"]).replace("filename.pdf", NAMED)
        # Chat Completions show the files of results apart, each in its own way.
        asked.append(json.loads(told)[: 3 if wire == CHAT else None])
        assert told.count(CONTENTS[PICTURE.hash]) == 2

    assert asked[0] == asked[1]
