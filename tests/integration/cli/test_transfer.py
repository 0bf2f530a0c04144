"""Transcripts as files, on the command line."""

from pathlib import Path

import pytest

from tests.integration.cli.shell import Home, snapshot
from tests.integration.transcript.files import HEADER, answer, user, written

FILE = written(HEADER, user("00000001", None, "a story"), answer("00000002", "00000001"))


@pytest.fixture(scope="module")
def story(awake: Home) -> Home:
    """A home with a session that came from a file."""
    source = awake.folder.parent / "a story.jsonl"
    source.write_bytes(FILE)
    report = awake.json("sessions", "import", str(source), "--session", "story")
    assert report["session_key"] == "agent:main:story"
    while not awake.json("sessions", "search", "story")["items"]:
        continue  # the index follows behind
    return awake


def test_a_file_goes_in_and_out(story: Home, tmp_path: Path):
    target = tmp_path / "out.jsonl"

    told = story.ok("sessions", "export", "story", "-o", str(target))

    assert target.read_bytes() == FILE
    assert target.stat().st_mode & 0o777 == 0o600
    assert told == f"{target} has 3 lines\n"
    assert story.ok("sessions", "export", "story").encode() == FILE
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_what_was_wrong_with_a_file_is_told(story: Home):
    answer = story.run("sessions", "import", "-", "--dry-run", said=FILE.decode() + "garbage\n")

    assert answer.returncode == 0
    assert answer.stdout.splitlines() == [
        "line 4: not JSON: left out",
        "2 entries on 1 branch would become agent:main:import:5f0c1a52-8d1c-4c60-9d2e-6f6f9b1f0001",
    ]


def test_a_session_that_is_there_is_not_made_again(story: Home):
    taken = story.run("sessions", "import", "-", "--session", "story", said=FILE.decode())

    assert taken.returncode == 2
    assert "there is a session 'agent:main:story' already" in taken.stderr


def test_an_export_that_fails_leaves_no_file(story: Home, tmp_path: Path):
    missing = story.run("sessions", "export", "nobody", "-o", str(tmp_path / "x"))

    assert missing.returncode == 4
    assert list(tmp_path.iterdir()) == []


def test_without_a_server_a_transcript_is_taken_along_but_none_comes_in(home: Home):
    with home.up():
        home.ok("send", "what time is it?", "--wait", "10")
        while_up = home.ok("sessions", "export", "main")
    before = snapshot(home.folder)

    assert home.ok("sessions", "export", "main") == while_up
    assert len(while_up.splitlines()) >= 4
    assert home.run("sessions", "import", "-", said=while_up).returncode == 3
    assert snapshot(home.folder) == before


def test_what_was_said_is_found(story: Home):
    found = story.ok("sessions", "search", '"a stor"*', "-s", "story").splitlines()

    assert found[0].startswith("agent:main:story user 2026-01-22")
    assert found[1] == "  a story"


def test_a_search_knows_who_can_have_said_something(story: Home):
    answer = story.run("sessions", "search", "story", "--role", "nobody")

    assert answer.returncode == 2
    assert "is not one of 'user', 'assistant', 'tool', 'note', 'summary'" in answer.stderr
    assert story.ok("sessions", "search", "story", "--role", "user")
