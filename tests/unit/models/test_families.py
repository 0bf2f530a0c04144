"""What we know about families of models is what the library knows."""

import pytest
from pydantic_ai.profiles.anthropic import anthropic_model_profile
from pydantic_ai.profiles.grok import grok_model_profile
from pydantic_ai.profiles.groq import groq_model_profile
from pydantic_ai.profiles.openai import openai_model_profile
from pydantic_ai.providers import infer_provider_class

from wakeful.models.families import UNKNOWN_OUTPUT, chat_levels, claude, gpt
from wakeful.models.thinking import LEVELS, levels
from wakeful.vocabulary.agent import ThinkingLevel

OFF, LOW, MEDIUM, HIGH, XHIGH = LEVELS


@pytest.mark.parametrize(
    "model",
    [
        *("claude-fable-5", "claude-fable-5-1", "claude-mythos-5-1", "claude-mythos-preview"),
        *("claude-opus-5-5", "claude-opus-5", "claude-sonnet-5-5", "claude-sonnet-5"),
        *("claude-haiku-5-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6"),
        *("claude-sonnet-4-6", "claude-opus-4-5", "claude-sonnet-4-5-20250929"),
        *("claude-haiku-4-5", "claude-opus-4-1", "claude-opus-4", "claude-sonnet-4-20250514"),
        *("claude-3-5-haiku-latest", "claude-of-tomorrow"),
    ],
)
def test_a_model_of_anthropic_is_what_the_library_says(model: str):
    profile = dict(anthropic_model_profile(model) or {})
    family = claude(model)
    is_legacy = profile["anthropic_rejects_max_tokens_beyond_context_window"]
    most = 4096 if is_legacy else profile["anthropic_max_output_tokens"] or UNKNOWN_OUTPUT

    assert family.levels == levels(profile)
    assert family.most_output == most
    assert family.is_adaptive == profile["anthropic_supports_adaptive_thinking"]
    assert family.has_effort == profile["anthropic_supports_effort"]
    assert family.thinks_unasked == profile["thinking_enabled_by_default"]
    assert family.rests_between_tools == profile["anthropic_disables_thinking_with_between_tools"]
    assert family.binds_thoughts == profile["anthropic_binds_thinking_blocks"]


@pytest.mark.parametrize(
    "model",
    [
        *("gpt-6-astra", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6-sol"),
        *("gpt-5.5-pro", "gpt-5.5", "gpt-5.4-pro", "gpt-5.4-mini", "gpt-5.3-chat-latest"),
        *("gpt-5.3-codex", "gpt-5.2-pro", "gpt-5.2-chat-latest", "gpt-5.2", "gpt-5.1-codex-max"),
        *("gpt-5.1-chat-latest", "gpt-5.1", "gpt-5-chat-latest", "gpt-5-pro", "gpt-5-codex"),
        *("gpt-5", "gpt-5-nano", "o1", "o3-mini", "o4-mini", "gpt-4.1", "gpt-4o", "llama3"),
    ],
)
def test_a_model_of_openai_is_what_the_library_says(model: str):
    profile = dict(openai_model_profile(model))
    family = gpt(model)

    assert family.levels == levels(profile)
    assert family.has_context == profile["openai_responses_supports_reasoning_context"]
    assert family.has_breakpoints == profile["openai_supports_prompt_cache_breakpoints"]


@pytest.mark.parametrize(
    "name",
    [
        *("alibaba:qwen3-max", "cerebras:zai-glm-4.7", "cerebras:llama3.1-8b"),
        *("deepseek:deepseek-chat", "deepseek:deepseek-reasoner", "deepseek:deepseek-v4-pro"),
        *("deepseek:deepseek-flash", "fireworks:accounts/fireworks/models/deepseek-r1"),
        *("fireworks:accounts/fireworks/models/glm-5", "heroku:claude-sonnet-4-5"),
        *("litellm:gpt-5.6", "litellm:anthropic/claude-opus-5", "moonshotai:kimi-k2-thinking"),
        *("nebius:Qwen/Qwen3-32B", "ollama:qwen3", "ollama:deepseek-r1", "ollama:magistral"),
        *("openrouter:anthropic/claude-opus-5", "openrouter:openai/gpt-5.6"),
        *("openrouter:deepseek/deepseek-r1", "openrouter:google/gemini-3-pro"),
        *("openrouter:x-ai/grok-4.3", "ovhcloud:Qwen3-32B", "sambanova:DeepSeek-R1"),
        *("together:deepseek-ai/DeepSeek-R1", "together:moonshotai/Kimi-K2-Thinking"),
        *("together:zai-org/GLM-5", "vercel:xai/grok-4.3", "vercel:moonshotai/kimi-k2-thinking"),
        *(
            "vllm:Qwen/Qwen3-8B",
            "vllm:zai-org/GLM-4.6",
            "vllm:meta-llama/Llama-3.1-8B",
            "zai:glm-5",
        ),
    ],
)
def test_whoever_runs_a_model_has_the_levels_that_the_library_says(name: str):
    provider, _, model = name.partition(":")
    profile = dict(infer_provider_class(provider).model_profile(model) or {})

    assert chat_levels(provider, model) == levels(profile)


@pytest.mark.parametrize("name", ["together:openai/gpt-oss-120b", "ollama:gpt-oss:20b"])
def test_models_with_documented_grades_have_them_though_the_library_does_not_say(name: str):
    provider, _, model = name.partition(":")

    assert levels(dict(infer_provider_class(provider).model_profile(model) or {})) == set()
    assert chat_levels(provider, model) == {LOW, MEDIUM, HIGH}


@pytest.mark.parametrize(
    "model",
    [
        *("grok-4.3", "grok-latest", "grok-4-fast-reasoning", "grok-3", "grok-4.5", "grok-4.6"),
        *("grok-4.7", "grok-build-latest", "grok-3-mini", "grok-3-mini-fast", "grok-3-mini-beta"),
        *("grok-4", "grok-code-fast-1"),
    ],
)
def test_a_grok_has_the_efforts_that_the_library_says(model: str):
    efforts = dict(grok_model_profile(model) or {})["grok_reasoning_efforts"]

    had = chat_levels("xai", model)

    assert {"none" if level is OFF else level.value for level in had} == efforts


@pytest.mark.parametrize(
    "model",
    [
        *("openai/gpt-oss-120b", "qwen/qwen3-32b", "deepseek-r1-distill-llama-70b"),
        *("llama-3.3-70b-versatile", "moonshotai/kimi-k2-instruct"),
    ],
)
def test_groq_is_told_to_think_only_where_it_can_be_told(model: str):
    profile = dict(groq_model_profile(model))
    had = chat_levels("groq", model)

    assert (OFF in had) == profile["groq_supports_reasoning_disable"]
    assert (LOW in had and OFF not in had) == profile["groq_supports_graded_reasoning_effort"]


@pytest.mark.parametrize(
    ("name", "had"),
    [
        ("openai:gpt-5.6", set(LEVELS)),
        ("deepseek:deepseek-chat", set[ThinkingLevel]()),
        ("deepseek:deepseek-reasoner", {LOW, MEDIUM, HIGH}),
        ("deepseek:deepseek-v4-pro", {OFF, LOW, MEDIUM, HIGH}),
        ("moonshotai:kimi-k2", set[ThinkingLevel]()),
        ("moonshotai:kimi-k2.5", {OFF, LOW, MEDIUM, HIGH}),
        ("moonshotai:kimi-k3", {LOW, MEDIUM, HIGH}),
        ("zai:glm-4.6", {OFF, LOW, MEDIUM, HIGH}),
        ("together:deepseek-ai/DeepSeek-R1", {LOW, MEDIUM, HIGH}),
        ("together:meta-llama/Llama-4", set[ThinkingLevel]()),
        ("vllm:qwen3-8b", {OFF, LOW, MEDIUM, HIGH}),
        ("ollama:llama3", set[ThinkingLevel]()),
        ("mistral:magistral-medium-2509", set[ThinkingLevel]()),
        ("lmstudio:qwen3-8b", {OFF, LOW, MEDIUM, HIGH}),
        ("openrouter:anthropic/claude-opus-5", set(LEVELS)),
        ("openrouter:openai/gpt-4.1", {OFF, LOW, MEDIUM, HIGH}),
        ("openrouter:google/gemini-2.5-pro", {LOW, MEDIUM, HIGH}),
        ("vercel:anthropic/claude-opus-5", set(LEVELS)),
        ("vercel:openai/gpt-5.6", set(LEVELS)),
    ],
)
def test_a_model_thinks_alike_whoever_runs_it(name: str, had: set[ThinkingLevel]):
    provider, _, model = name.partition(":")

    assert chat_levels(provider, model) == had
