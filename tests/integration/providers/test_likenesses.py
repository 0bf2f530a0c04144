"""Providers that speak like OpenAI and that the library needs packages of their own for, or does
not know: what they are sent, each in its documented way.

Groq: https://console.groq.com/docs/api-reference#chat-create
LM Studio: https://lmstudio.ai/docs/developer/openai-compat
Mistral: https://docs.mistral.ai/api/#tag/chat
xAI: https://docs.x.ai/docs/api-reference#chat-completions
"""

from typing import Any

import pytest

from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.model import Reply, Request, ToolSpec
from wakeful.models.providers import PROVIDERS, ProviderSettings
from wakeful.testing.providers.plan import PlannedCall, Step
from wakeful.testing.providers.process import Providers
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
)

LOOK = ToolSpec(name="look", description="Look.", parameters={"type": "object", "properties": {}})
USAGE = {"include_usage": True}

# What is said beside the messages and the tools, and what a call's thoughts come back in.
SENT: dict[str, dict[str, Any]] = {
    "groq:qwen/qwen3-32b": {
        "stream_options": USAGE,
        "max_completion_tokens": 500,
        "reasoning_effort": "default",
    },
    "groq:openai/gpt-oss-120b": {
        "stream_options": USAGE,
        "max_completion_tokens": 500,
        "reasoning_effort": "high",
    },
    "groq:llama-3.3-70b-versatile": {"stream_options": USAGE, "max_completion_tokens": 500},
    "huggingface:meta-llama/Llama-3.1-8B": {"stream_options": USAGE, "max_tokens": 500},
    "lmstudio:llama-3.1-8b": {"stream_options": USAGE, "max_tokens": 500},
    "mistral:mistral-large-latest": {"max_tokens": 500},
    "mistral:magistral-medium-2509": {"max_tokens": 500},
    "xai:grok-4.5": {
        "stream_options": USAGE,
        "max_completion_tokens": 500,
        "reasoning_effort": "high",
    },
    "xai:grok-4": {"stream_options": USAGE, "max_completion_tokens": 500},
}


async def asked(model: DirectModel, *messages: Message) -> Reply:
    request = Request(
        system="be kind",
        messages=messages,
        tools=(LOOK,),
        max_tokens=500,
        thinking=ThinkingLevel.HIGH,
    )
    *_, reply = [piece async for piece in model.stream(request)]
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("name", SENT)
async def test_each_is_asked_in_its_documented_way(name: str, stand_in: Providers):
    provider, _, called = name.partition(":")
    mark = f"likeness_{list(SENT).index(name)}"
    call = PlannedCall(name="look")
    stand_in.plan(
        **{mark: [Step(thinking="deep", thinking_in="reasoning", calls=(call,), text=""), Step()]}
    )
    base_url = stand_in.environment["OPENAI_BASE_URL"]
    own = {provider: ProviderSettings(base_url=base_url, key="k")}
    model = find(name, providers=own)
    assert isinstance(model, DirectModel)

    question = UserMessage(text=f"look {{{mark}}}")
    first = await asked(model, question)
    said = AssistantMessage(content=first.content, provider=first.provider, model=first.model)
    (call_id,) = (one.id for one in said.tool_calls)
    result = ToolMessage(call_id=call_id, name="look", text="blue")
    await asked(model, question, said, result)
    await model.aclose()

    body = stand_in.bodies(mark)[-1]
    messages, tools = body.pop("messages"), body.pop("tools")
    assert body == {"model": called, "stream": True, "tool_choice": "auto", **SENT[name]}
    assert [tool["function"]["name"] for tool in tools] == ["look"]
    _, _, answer, told = messages
    assert answer["reasoning"] == "deep"  # in the field that it came in
    assert answer["tool_calls"][0]["id"] == told["tool_call_id"]
    assert len(told["tool_call_id"]) == 9 or provider != "mistral"


def test_the_library_needs_a_package_for_each_of_them_or_does_not_know_it():
    providers = {name.partition(":")[0] for name in SENT}

    assert {PROVIDERS[name].package for name in providers} == {
        *("groq", "huggingface_hub", "", "mistralai", "xai_sdk"),
    }
