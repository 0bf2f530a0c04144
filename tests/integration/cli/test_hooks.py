"""`wakeful hooks`: who may send webhooks, tried from the command line."""

import json
from pathlib import Path

from tests.integration.cli.shell import Home

SECRET = "canary-of-a-hook-0123456789"
SETTINGS = f"""
hooks:
  github: {{verify: github, secret: {SECRET}, session: builds, text: "{{payload.ref}}{{body}}"}}
  alarm: {{verify: bearer, secret: {SECRET}, priority: later, tools: [write_file, wirte_file]}}
  empty: {{verify: bearer, secret: {SECRET}, priority: later, text: "{{payload.nothing}} "}}
"""


def test_hooks_are_listed_and_tried_and_their_secrets_never_shown(tmp_path: Path):
    home = Home(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(SETTINGS)
    (tmp_path / "wakeful.yaml").chmod(0o600)
    payload = tmp_path / "push.json"
    payload.write_text('{"ref": "refs/heads/main"}')
    with home.up():
        empty = home.ok("hooks", "list")
        tried = home.ok("hooks", "test", "github", "--payload", str(payload))
        typed = home.ok("hooks", "test", "alarm", "--payload", "-", said="The cellar is wet.")
        receipt = home.json("hooks", "test", "alarm")
        nothing = home.ok("hooks", "test", "empty")
        unknown = home.run("hooks", "test", "nobody")
        unreadable = home.run("hooks", "test", "github", "--payload", "/nowhere")
        listed = home.ok("hooks", "list")
        items = home.json("hooks", "list")["items"]
        config, doctor = home.ok("config", "get"), home.ok("doctor")

    assert "refs" not in empty
    assert tried.startswith("started: st_")
    assert " in agent:main:builds\n" in tried
    assert "the agent reads: refs/heads/main" in tried
    assert "the agent reads: The cellar is wet." in typed
    assert "This is an example" in receipt["text"]
    assert "the agent reads: (a webhook without text)" in nothing
    assert typed.startswith("held: st_")
    assert receipt["outcome"] == "held"
    assert unknown.returncode != 0
    assert "no hook 'nobody'" in unknown.stderr
    assert "/nowhere cannot be read" in unreadable.stderr
    assert "the inbox of main" in listed
    assert {one["name"]: one["accepted"] for one in items} == {"github": 1, "alarm": 2, "empty": 1}
    assert "github, alarm, empty: only this machine reaches 127.0.0.1" in doctor
    assert "hooks.alarm.tools names wirte_file, which no tool of main is called now" in doctor
    everything = (tried, typed, listed, config, doctor, json.dumps(items), unknown.stderr)
    assert not [text for text in everything if SECRET in text]
    assert SECRET not in (tmp_path / "wakeful.log").read_text()


def test_without_hooks_the_list_says_where_they_are_named(tmp_path: Path):
    home = Home(tmp_path)
    with home.up():
        assert "the key `hooks` of the settings names them" in home.ok("hooks", "list")
