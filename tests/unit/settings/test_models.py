"""Voices in a settings file."""

from pathlib import Path

import pytest

from wakeful.models.windows import ModelSettings
from wakeful.settings.load import load
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import SettingsPurpose
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import InvalidInput


def written(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "wakeful.yaml"
    file.write_text("\n".join(("agents:", "  main:", *(f"    {line}" for line in lines))))
    return file


def test_a_voice_with_fallbacks_and_thinking_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    file = written(
        tmp_path, "model: anthropic:claude-opus-5", "fallback_models: [demo]", "thinking: off"
    )

    (agent,) = load(file, {"WAKEFUL_HOME": str(tmp_path)}).agents

    assert (agent.model, agent.fallback_models) == ("anthropic:claude-opus-5", ("demo",))
    assert agent.config.thinking is ThinkingLevel.OFF


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("model: anthropic:claude", "agents.main.model: 'anthropic' needs ANTHROPIC_API_KEY"),
        (
            "fallback_models: [demo, openai:gpt]",
            "agents.main.fallback_models[1]: 'openai' needs OPENAI_API_KEY",
        ),
        ("model: nobody:knows", "agents.main.model: must name a provider of alibaba, anthropic"),
        ("thinking: hard", "agents.main.thinking: "),
    ],
)
def test_a_voice_that_cannot_work_is_told_at_the_start(
    line: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(BadSettings) as refused:
        load(written(tmp_path, line), {"WAKEFUL_HOME": str(tmp_path)})

    assert told in str(refused.value)


def test_an_agent_of_your_own_is_checked_alike():
    with pytest.raises(InvalidInput, match="thinking: must be one of off, low"):
        Agent(thinking="hard")


def test_the_window_of_a_model_is_read_under_its_name(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"
    file.write_text('models:\n  "vllm:qwen/qwen-2.5": {context_window: 32768}\n')

    models = load(file, {"WAKEFUL_HOME": str(tmp_path)}).settings.models

    assert models["vllm:qwen/qwen-2.5"].context_window == 32_768


def test_the_prices_and_edges_of_a_model_are_read_under_its_name(tmp_path: Path):
    file = tmp_path / "wakeful.yaml"
    prices = "input: 1, output: 4.0, cache_read: 0.1, cache_write: 1.25, max_output: 8192"
    edges = "cache_edges_ms: [60000, 3600000]"
    file.write_text(f'models:\n  "openai:my-model": {{{prices}, {edges}}}\n')

    models = load(file, {"WAKEFUL_HOME": str(tmp_path)}).settings.models

    assert models["openai:my-model"] == ModelSettings(
        input=1.0,
        output=4.0,
        cache_read=0.1,
        cache_write=1.25,
        max_output=8192,
        cache_edges_ms=(60_000, 3_600_000),
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('"vllm:q.2": {context_window: 3}', "must be from 1000 to 100000000, not 3"),
        ('"vllm:q.2": {window: 3}', "unknown key"),
        ('"vllm:q.2": {input: -1}', "must be from 0 to 100000, not -1"),
        ("gpt: {context_window: 8192}", "must be named provider:model"),
        ('"vllm:q.2": {cache_edges_ms: 3}', "must be a list, not a whole number"),
        ('"vllm:q.2": {cache_edges_ms: [5m, 1h]}', "must be a whole number, not text '5m'"),
        ('"vllm:q.2": {cache_edges_ms: [3]}', "must be two lengths, the shorter first"),
        ('"vllm:q.2": {cache_edges_ms: [9, 3]}', "must be two lengths, the shorter first"),
        ('"vllm:q.2": {cache_edges_ms: [-1, 3]}', "must be from 0 to 86400000, not -1"),
        ('"vllm:q.2": {cache_edges_ms: [1, 90000000]}', "must be from 0 to 86400000"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(tmp_path: Path, line: str, told: str):
    file = tmp_path / "wakeful.yaml"
    file.write_text(f"models:\n  {line}\n")

    with pytest.raises(BadSettings, match=told):
        load(file, {"WAKEFUL_HOME": str(tmp_path)})


@pytest.mark.parametrize("purpose", [SettingsPurpose.LOOK, SettingsPurpose.CHECK])
def test_who_does_not_serve_is_never_asked_for_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, purpose: SettingsPurpose
):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    file = written(tmp_path, "model: anthropic:claude-opus-5")
    secret = "outbound: {crm: {url: 'https://example.com/', secret: '${CRM_SECRET}'}}"
    file.write_text(f"{file.read_text()}\n{secret}\ntimezone: Asia/Tokyo\n")

    found = load(file, {"WAKEFUL_HOME": str(tmp_path)}, purpose)

    assert found.settings.timezone == "Asia/Tokyo"
    assert found.agents[0].model == "anthropic:claude-opus-5"


def test_who_only_looks_is_told_of_a_name_that_is_none(tmp_path: Path):
    with pytest.raises(BadSettings, match="must name a provider"):
        load(written(tmp_path, "model: nobody:knows"), {"WAKEFUL_HOME": "/x"}, SettingsPurpose.LOOK)
