"""Resets, forks and deletions from the command line, against a real server."""

from collections.abc import Generator

import httpx2
import pytest

from tests.integration.cli.shell import Home
from tests.patience import patience
from wakeful.access.credentials import FILE_NAME
from wakeful.cli.exits import ExitCode
from wakeful.operations import server_note


@pytest.fixture
def api(awake: Home) -> Generator[httpx2.Client, None, None]:
    """The same server by its API: what a test needs beside its commands."""
    found = server_note.find(awake.folder)
    assert found is not None
    token = (awake.folder / FILE_NAME).read_text(encoding="ascii").strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=found.url, headers=headers, timeout=patience(15)) as client:
        yield client


def say(api: httpx2.Client, session: str, text: str) -> None:
    path = f"/api/sessions/{session}/messages?wait=10"
    assert api.post(path, json={"text": text}).status_code == 200


def test_a_reset_begins_anew_and_the_old_words_are_shown_when_asked_for(
    awake: Home, api: httpx2.Client
):
    say(api, "web:a", "one")
    first = api.get("/api/sessions/web:a").json()["transcript_id"]

    begun = awake.ok("sessions", "reset", "web:a")
    say(api, "web:a", "two")
    every = awake.ok("sessions", "show", "web:a", "--all")
    past = awake.json("sessions", "show", "web:a", "--transcript", first)["entries"]

    assert begun == "web:a begins anew\n"
    assert every.index("by reset") < every.index("one") < every.index("two")
    assert [entry["body"]["text"] for entry in past[:1]] == ["one"]


def test_a_fork_is_made_from_an_entry(awake: Home, api: httpx2.Client):
    say(api, "web:b", "one")
    (first, *_) = api.get("/api/sessions/web:b/entries").json()["items"]

    forked = awake.json("sessions", "fork", "web:b", "--at", first["id"], "--to", "web:c")

    assert (forked["key"], forked["parent"]) == ("agent:main:web:c", "agent:main:web:b")
    assert forked["entries"] == 1


def test_a_deleted_session_is_not_found_again(awake: Home, api: httpx2.Client):
    say(api, "web:d", "one")

    gone = awake.ok("sessions", "rm", "web:d")
    again = awake.run("sessions", "rm", "web:d")

    assert gone == "web:d is gone\n"
    assert again.returncode == ExitCode.NOT_FOUND


def test_a_long_conversation_is_folded_and_unfolded(awake: Home, api: httpx2.Client):
    say(api, "web:f", f"the parcel comes on Friday. {'So it is. ' * 10_000}")
    say(api, "web:f", "and now?")

    compacted = awake.ok("sessions", "compact", "web:f", "keep every date")
    entries = api.get("/api/sessions/web:f/entries").json()["items"]
    restored = awake.ok("sessions", "undo-compaction", "web:f")
    again = awake.run("sessions", "undo-compaction", "web:f")

    assert compacted.startswith("Compacted: about ")
    (made,) = [entry["body"] for entry in entries if entry["kind"] == "compaction"]
    assert "the parcel comes on Friday" in made["summary"]
    assert restored == "web:f shows again what was compacted\n"
    assert "no compaction" in again.stderr


def test_a_session_that_does_not_exist_is_not_folded_and_not_made(awake: Home):
    refused = awake.run("sessions", "compact", "web:nowhere")

    assert refused.returncode == ExitCode.NOT_FOUND
    assert awake.run("sessions", "show", "web:nowhere").returncode == ExitCode.NOT_FOUND


def test_a_list_that_goes_on_says_how_to_see_the_rest(awake: Home, api: httpx2.Client):
    for session in ("web:long", "web:other"):
        say(api, session, "one")
    say(api, "web:long", "two")

    sessions = awake.run("sessions", "list", "--limit", "1")
    newest = awake.run("sessions", "show", "web:long", "--limit", "2")
    every = awake.ok("sessions", "show", "web:long", "--all", "--limit", "2")
    (_, after) = sessions.stderr.split(" --after ")
    (_, before) = newest.stderr.split(" --before ")
    older = awake.run("sessions", "show", "web:long", "--before", before.strip())

    assert "web:other" in awake.ok("sessions", "list", "--limit", "1", "--after", after.strip())
    assert "two" in newest.stdout
    assert older.stdout.splitlines()[1] == "one"
    assert older.stderr == ""
    assert f"--before {before.strip()}" in every
