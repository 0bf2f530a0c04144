"""Receivers of webhooks in the settings file: checked whole, their secrets never shown."""

from pathlib import Path

import pytest

from wakeful.settings.load import Loaded, load_text, reload
from wakeful.settings.problems import BadSettings
from wakeful.settings.settings import OutboundSettings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def loaded(text: str, folder: Path, **environ: str) -> Loaded:
    return load_text(text, folder / "wakeful.yaml", {"WAKEFUL_HOME": str(folder), **environ})


def test_the_runtime_gets_the_receivers_with_their_secrets(tmp_path: Path):
    (tmp_path / "ops.secret").write_text(f"{SECRET}\n{SECRET}\n")
    text = """
outbound:
  crm: {url: 'https://crm.example/in', secret: '${CRM}'}
  ops: {url: 'http://127.0.0.1:1/', secret_file: ops.secret, allow_private: true}
"""

    everything = loaded(text, tmp_path, CRM=SECRET)

    assert everything.settings.outbound == everything.outbound
    assert everything.outbound == {
        "crm": OutboundSettings(url="https://crm.example/in", secret=SECRET),
        "ops": OutboundSettings(
            url="http://127.0.0.1:1/", secret=f"{SECRET}\n{SECRET}", allow_private=True
        ),
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{url: 'http://x'}", "outbound.crm: needs the key 'secret' or 'secret_file'"),
        ("{url: 'http://x', secret_file: none}", "outbound.crm.secret_file: "),
        ("{url: 'http://x', secret: canary}", "outbound.crm.secret: must be 24 to 64 random"),
        ("{url: 'http://canary@x/', secret: $}", "outbound.crm.url: must hold no user name"),
        ("{url: 'http://2130706433/', secret: $}", "outbound.crm.url: must have its address in"),
        ("{url: 'http://10.0.0.1/', secret: $}", "outbound.crm.url: has an address that is not"),
        ("{url: 'http://x', secret: $, allow_private: maybe}", "outbound.crm.allow_private: must"),
    ],
)
def test_a_receiver_that_cannot_be_is_told_with_line_and_key(given: str, told: str, tmp_path: Path):
    with pytest.raises(BadSettings) as caught:
        loaded(f"\noutbound:\n  crm: {given.replace('$', SECRET)}\n", tmp_path)

    first = str(caught.value).splitlines()[0]
    assert first.startswith(f"{tmp_path}/wakeful.yaml:3: {told}")
    assert "canary" not in str(caught.value)


def test_a_receiver_must_not_have_the_name_of_another_door(tmp_path: Path):
    with pytest.raises(BadSettings, match=r":1: outbound\.console: must have another name"):
        loaded(f"outbound: {{console: {{url: 'http://x', secret: {SECRET}}}}}", tmp_path)


def test_a_secret_that_changed_in_its_file_is_a_change(tmp_path: Path):
    environ = {"WAKEFUL_HOME": str(tmp_path)}
    file, secret = tmp_path / "wakeful.yaml", tmp_path / "crm.secret"
    file.write_text("outbound: {crm: {url: 'http://x', secret_file: crm.secret}}")
    secret.write_text(SECRET)
    old = loaded(file.read_text(), tmp_path)
    same, nothing = reload(old, environ)
    secret.write_text(f"{SECRET[:-4]}LaSz {SECRET}")

    new, outcome = reload(same, environ)

    assert nothing.changed == ()
    assert outcome.changed == ("outbound",)
    assert new.settings.outbound["crm"].secret == f"{SECRET[:-4]}LaSz {SECRET}"
