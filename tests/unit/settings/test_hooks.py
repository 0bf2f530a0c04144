"""Senders of webhooks in the settings file: checked whole, their secrets never shown."""

from pathlib import Path

import msgspec
import pytest

from wakeful.cli.config import hidden
from wakeful.cli.up import secrets_of
from wakeful.settings.hooks import HookSettings, StormOverrides, hook_of, secrets_in
from wakeful.settings.load import Loaded, load_text, reload
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import SettingsPurpose
from wakeful.settings.settings import Settings
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Priority
from wakeful.webhooks.verification import Scheme

SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SECRET = "canary-of-a-hook-0123456789"


def loaded(
    text: str, folder: Path, purpose: SettingsPurpose = SettingsPurpose.SERVE, **environ: str
) -> Loaded:
    file = folder / "wakeful.yaml"
    return load_text(text, file, {"WAKEFUL_HOME": str(folder), **environ}, purpose)


def test_the_runtime_gets_the_hooks_with_their_secrets(tmp_path: Path):
    (tmp_path / "shop.secret").write_text(f"{SECRET} {SECRET}-two\n")
    text = """
agents: {ops: {}}
hooks:
  github: {verify: github, secret: '${HOOK_SECRET}', dedup: '{X-GitHub-Delivery}'}
  shop: {verify: hmac, header: X-Shop, secret_file: shop.secret, agent: ops, session: deploys,
         priority: LATER, tools: [shell], storm: {turns: 20}}
"""

    everything = loaded(text, tmp_path, HOOK_SECRET=SECRET)
    hooks = {name: hook_of(name, one) for name, one in everything.settings.hooks.items()}

    assert everything.settings.hooks == everything.hooks
    github, shop = hooks["github"], hooks["shop"]
    assert (github.session_key, github.priority) == ("agent:main:activity", Priority.NEXT)
    assert github.proof.keys == (SECRET.encode(),)
    assert (github.dedup_window_s, github.tools) == (604_800, ())
    assert (shop.session_key, shop.priority) == ("agent:ops:deploys", Priority.LATER)
    assert shop.proof.keys == (SECRET.encode(), f"{SECRET}-two".encode())
    assert (shop.proof.header, shop.tools) == ("x-shop", ("shell",))
    assert everything.hooks["shop"].storm == StormOverrides(turns=20)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{secret: $}", "hooks.build: needs the key 'verify'"),
        ("{verify: magic, secret: $}", "hooks.build.verify: must be one of standard-webhooks, "),
        ("{verify: github}", "hooks.build: needs the key 'secret' or 'secret_file'"),
        ("{verify: github, secret: ''}", "hooks.build: needs the key 'secret' or 'secret_file'"),
        ("{verify: github, secret_file: none}", "hooks.build.secret_file: "),
        ("{verify: github, secret: canary}", "hooks.build.secret: must be at least 16 characters"),
        ("{verify: bearer, secret: '$ a'}", "hooks.build.secret: must be at least 16 characters"),
        ("{verify: standard-webhooks, secret: $}", "hooks.build.secret: must be 24 to 64 random"),
        ("{verify: hmac, secret: $}", "hooks.build: needs the key 'header'"),
        ("{verify: hmac, secret: $, header: 'X Y'}", "hooks.build.header: must be the name of"),
        ("{verify: github, secret: $, header: X-Y}", "hooks.build.header: is for 'verify: hmac'"),
        ("{verify: github, secret: $, agent: nobody}", "hooks.build.agent: must be one of main, "),
        ("{verify: github, secret: $, session: 'A B'}", "hooks.build.session: must be 'agent:"),
        (
            "{verify: github, secret: $, session: 'agent:other:x'}",
            "hooks.build.session: is a session of 'other'",
        ),
        ("{verify: github, secret: $, priority: soon}", "hooks.build.priority: must be now, next"),
        ("{verify: github, secret: $, text: '{body'}", "hooks.build.text: has a brace without"),
        ("{verify: github, secret: $, dedup: '{a b}'}", "hooks.build.dedup: must have places"),
        ("{verify: github, secret: $, dedup_window_s: 0}", "hooks.build.dedup_window_s: must be"),
        ("{verify: github, secret: $, tools: ['']}", "hooks.build.tools[0]: must be the name"),
        ("{verify: github, secret: $, storm: {turns: 0}}", "hooks.build.storm.turns: must be from"),
    ],
)
def test_a_hook_that_cannot_be_is_told_with_line_and_key(given: str, told: str, tmp_path: Path):
    text = f"agents: {{other: {{}}}}\nhooks:\n  build: {given.replace('$', SECRET)}\n"

    with pytest.raises(BadSettings) as caught:
        loaded(text, tmp_path)

    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{tmp_path}/wakeful.yaml:3: {told}")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("name", ["A", "a b", "-a", "a/b", "ä", "x" * 65])
def test_a_hook_has_a_name_that_stands_in_an_address(name: str, tmp_path: Path):
    with pytest.raises(BadSettings, match="must have a name of 1 to 64"):
        loaded(f"hooks: {{'{name}': {{verify: github, secret: {SECRET}}}}}", tmp_path)


def test_a_file_is_checked_without_its_secrets(tmp_path: Path):
    good = "hooks: {build: {verify: github, secret: '${NOT_HERE}'}}"
    loaded(good, tmp_path, SettingsPurpose.CHECK)

    with pytest.raises(BadSettings, match=r"hooks\.build\.text: has a brace"):
        loaded(good.replace("'}}", "', text: '{'}}"), tmp_path, SettingsPurpose.CHECK)
    with pytest.raises(BadSettings, match="needs the key 'secret' or 'secret_file'"):
        loaded("hooks: {build: {verify: github}}", tmp_path, SettingsPurpose.CHECK)
    with pytest.raises(BadSettings, match=r"\$\{NOT_HERE\} is not set"):
        loaded(good, tmp_path)


def test_a_secret_of_a_hook_is_never_shown_and_hidden_from_the_log(tmp_path: Path):
    text = f"hooks: {{build: {{verify: github, secret: '{SECRET} {SECRET}-two'}}}}"
    everything = loaded(text, tmp_path)

    shown = hidden(msgspec.to_builtins(everything.written), "")

    assert SECRET not in str(shown)
    assert shown["hooks"]["build"]["secret"] == "(hidden)"
    assert {SECRET, f"{SECRET}-two"} <= set(secrets_of(everything, {}))


def test_a_secret_that_changed_in_its_file_is_a_change(tmp_path: Path):
    file, secret = tmp_path / "wakeful.yaml", tmp_path / "build.secret"
    file.write_text("hooks: {build: {verify: github, secret_file: build.secret}}")
    secret.write_text(SECRET)
    old = loaded(file.read_text(), tmp_path)
    same, nothing = reload(old, {"WAKEFUL_HOME": str(tmp_path)})
    secret.write_text(f"{SECRET}-two")

    new, outcome = reload(same, {"WAKEFUL_HOME": str(tmp_path)})

    assert (nothing.changed, outcome.changed) == ((), ("hooks",))
    assert new.settings.hooks["build"].secret == f"{SECRET}-two"


def test_a_secret_with_spaces_stands_in_double_quotes():
    assert secrets_in('"It\'s a Secret to Everybody" other') == [
        "It's a Secret to Everybody",
        "other",
    ]


def test_a_program_is_refused_what_a_file_is_refused():
    with pytest.raises(InvalidInput, match="needs the key 'secret'"):
        Settings(hooks={"build": HookSettings(verify=Scheme.GITHUB)})
