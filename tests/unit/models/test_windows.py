"""The window of a model is known before it is asked."""

import json
import subprocess
import sys

import pytest

from scripts import windows as script
from wakeful.models.catalog import Catalog
from wakeful.models.model import Request, ToolSpec, context_window
from wakeful.models.windows import (
    LEARNED_FOR_S,
    SAID_FOR_S,
    ModelSettings,
    Window,
    stated_window,
    tokens_of_request,
)
from wakeful.testing.kit import ManualClock
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.message import AssistantMessage, Text, ToolCall, UserMessage


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("openai-chat:gpt-4.1", 1_000_000),
        ("openai:gpt-4", 8_192),
        ("openai:gpt-4-0613", 8_192),
        ("openai-responses:gpt-4o-2024-11-20", 128_000),
        ("azure:gpt-4o", 128_000),
        ("anthropic:claude-sonnet-4-5-20250929", 200_000),
        ("bedrock:us.anthropic.claude-opus-4-6-v1:0", 1_000_000),
        ("openrouter:anthropic/claude-haiku-4.5", 200_000),
        ("cerebras:llama3.1-8b", 32_768),
        ("together:Qwen/Qwen2.5-7B-Instruct", 32_768),
        ("ollama:llama3.1:8b", None),
        ("vllm:gpt-4", None),
        ("openai:something-of-ours", None),
        ("openai:gpt-4.11", None),
        ("demo", None),
    ],
)
def test_the_table_knows_a_model_by_its_name(name: str, window: int | None):
    assert stated_window(name) == window


@pytest.mark.parametrize(("name", "window"), [("gpt-4.1", 1_000_000), ("gpt-4", 8_192)])
def test_the_window_is_known_before_the_first_question(
    name: str, window: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    model = Catalog({}, {}, ManualClock()).resolve([f"openai-chat:{name}", "demo"], Limits())

    assert context_window(model) == window


def test_the_operator_knows_better_than_the_table():
    models = {"openai:gpt-4": ModelSettings(context_window=6_000), "vllm:m": ModelSettings()}

    assert stated_window("openai:gpt-4", models) == 6_000
    assert stated_window("vllm:m", models) is None


def test_the_table_is_what_the_library_knows():
    assert script.TARGET.read_text() == script.text(), "run `python scripts/windows.py`"


def test_a_window_is_looked_up_without_the_library():
    code = (
        "import sys; from wakeful.models.windows import stated_window;"
        "assert stated_window('openai:gpt-4') == 8192;"
        "print(sorted({'pydantic_ai', 'pydantic', 'genai_prices'} & sys.modules.keys()))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == []


def test_a_refusal_narrows_the_window_for_a_while():
    clock = ManualClock()
    window = Window(None, clock)

    window.refused(9_000, None)
    window.refused(12_000, None)

    assert window.tokens(None) == 9_000
    assert window.tokens(4_000) == 4_000
    clock.advance(LEARNED_FOR_S)
    assert window.tokens(None) is None


def test_a_number_that_the_model_named_counts_for_longer():
    clock = ManualClock()
    window = Window(200_000, clock)

    window.refused(60_000, 8_192)
    clock.advance(LEARNED_FOR_S)

    assert window.tokens(None) == 8_192
    clock.advance(SAID_FOR_S - LEARNED_FOR_S)
    assert window.tokens(None) == 200_000


def test_a_model_that_counts_more_tokens_than_we_do_has_a_smaller_window_by_our_count():
    window = Window(8_192, ManualClock())

    window.refused(3_000, 8_192)

    assert window.tokens(None) == 3_000


def test_a_window_never_becomes_too_small_to_ask_anything():
    window = Window(8_192, ManualClock())

    window.refused(3, None)

    assert window.tokens(None) == 1_000


def test_a_request_is_everything_that_is_sent_and_the_room_for_the_answer():
    said = AssistantMessage(
        content=(Text(text="x" * 40), ToolCall(id="c", name="look", arguments={}))
    )
    request = Request(
        system="s" * 400,
        messages=(UserMessage(text="u" * 4_000), said),
        tools=(ToolSpec(name="look", description="d" * 34, parameters={}),),
        max_tokens=500,
    )

    assert tokens_of_request(request) == 110 + 1_000 + 12 + 500
