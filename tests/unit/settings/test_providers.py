"""Providers of a settings file: read with their keys, refused with file, line and key."""

from pathlib import Path

import pytest

from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.providers import Via, WireFormat
from wakeful.models.remote import Remote
from wakeful.settings.load import Loaded, load_text, reload
from wakeful.settings.problems import BadSettings

ENVIRONMENT = {"WAKEFUL_HOME": "/srv/wakeful", "KEY": "k3y-canary"}
MINE = 'mine: {kind: openai-chat, base_url: "http://10.0.0.7:8000/v1"}'


def loaded(text: str, folder: Path = Path("/etc")) -> Loaded:
    return load_text(text, folder / "wakeful.yaml", ENVIRONMENT)


def test_providers_of_ones_own_answer_under_their_names(tmp_path: Path) -> None:
    (tmp_path / "other.key").write_text("abc\n")
    found = loaded(
        f"""
        providers:
          {MINE}
          other:
            kind: anthropic
            base_url: https://models.example.com
            key_file: other.key
          anthropic: {{key: "${{KEY}}"}}
        agents:
          main: {{model: "mine:llama3", fallback_models: ["other:x", "anthropic:claude"]}}
        """,
        tmp_path,
    )

    mine, other, known = found.settings.providers.values()
    models = [find(name, providers=found.settings.providers) for name in ("mine:llama3", "other:x")]
    assert (mine.kind, mine.base_url, mine.key) == (
        WireFormat.OPENAI_CHAT,
        "http://10.0.0.7:8000/v1",
        None,
    )
    assert (other.kind, other.key, other.key_file) == (WireFormat.ANTHROPIC, "abc", None)
    assert known.key == "k3y-canary"
    assert [type(model) for model in models] == [DirectModel, DirectModel]
    assert [model.name for model in models] == ["mine:llama3", "other:x"]


def test_the_library_speaks_to_a_provider_that_is_given_to_it() -> None:
    found = loaded("providers: {anthropic: {via: library, key: k}}")

    model = find("anthropic:claude-opus-5", providers=found.settings.providers)

    assert found.settings.providers["anthropic"].via is Via.LIBRARY
    assert isinstance(model, Remote)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "providers: {mine: {base_url: http://x}}",
            ":1: providers.mine: needs the key 'kind', one of anthropic, openai-chat, ",
        ),
        ("providers: {mine: {kind: openai-chat}}", ":1: providers.mine: needs the key 'base_url'"),
        (
            "providers: {mine: {kind: openai, base_url: http://x}}",
            ":1: providers.mine.kind: must be one of anthropic, openai-chat, openai-responses",
        ),
        (
            "providers:\n  anthropic:\n    base_url: ftp://x",
            ":3: providers.anthropic.base_url: must be http://… or https://…",
        ),
        (
            "providers: {Mine: {kind: openai-chat, base_url: http://x}}",
            ":1: providers.Mine: must be named with small letters",
        ),
        (
            "providers: {google: {via: direct}}",
            ":1: providers.google.via: must be 'library', or 'kind' must be given",
        ),
        (
            "providers: {lmstudio: {via: library}}",
            ":1: providers.lmstudio.via: must be 'direct': the library does not know",
        ),
        (
            'providers: {anthropic: {key: " k3y-canary"}}',
            ":1: providers.anthropic.key: must be one line of plain letters",
        ),
        (
            "providers: {anthropic: {key: k3y-canary, key_file: f}}",
            ":1: providers.anthropic.key_file: must not be given together with",
        ),
        (
            f"providers: {{{MINE}}}\nagents: {{main: {{model: 'min:x'}}}}",
            ":2: agents.main.model: must name a provider of alibaba, anthropic, ",
        ),
    ],
)
def test_a_bad_provider_is_told_with_file_line_key_and_rule(text: str, told: str) -> None:
    with pytest.raises(BadSettings) as bad:
        loaded(text)

    first, *_ = map(str, bad.value.problems)
    assert first.startswith(f"/etc/wakeful.yaml{told}")
    assert "canary" not in str(bad.value)


def test_a_provider_that_is_refused_is_not_called_unknown_as_well() -> None:
    with pytest.raises(BadSettings) as bad:
        loaded("providers: {mine: {kind: openai-chat}}\nagents: {main: {model: 'mine:x'}}")

    assert len(bad.value.problems) == 1


@pytest.mark.parametrize(
    "text",
    [
        "providers: {anthropic: {key_file: nosuch}}",
        "providers: {anthropic: {key_file: large}}",
        "providers: {anthropic: {key_file: binary}}",
        "providers: {anthropic: {key: k3y, key_file: nosuch}}",
        'mcp_servers: {x: {url: "https://one.example/", bearer_file: nosuch}}',
        'outbound: {x: {url: "https://one.example/", secret_file: nosuch}}',
    ],
)
def test_a_file_that_cannot_be_used_is_told_once(text: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 70_000)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(BadSettings) as bad:
        loaded(text, tmp_path)

    assert len(bad.value.problems) == 1
    assert "_file" in str(bad.value)


def test_a_key_exchanged_in_its_file_is_noticed(tmp_path: Path) -> None:
    key, file = tmp_path / "k", tmp_path / "wakeful.yaml"
    key.write_text("old")
    file.write_text("providers: {anthropic: {key_file: k}}\n")
    old = load_text(file.read_text(), file, ENVIRONMENT)
    key.write_text("new")

    new, reloaded = reload(old, ENVIRONMENT)

    assert reloaded.changed == ("providers",)
    assert new.settings.providers["anthropic"].key == "new"
