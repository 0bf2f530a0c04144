"""What we know about families of models is what the library knows."""

import pytest
from pydantic_ai.profiles.anthropic import anthropic_model_profile
from pydantic_ai.profiles.openai import openai_model_profile

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
