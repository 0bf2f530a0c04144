"""`wakeful activity`: what happened, readable in a terminal, read in one place and so in all."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home

ACTIVITY = "system:activity"


@pytest.fixture(scope="module")
def awake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a server in which something happened."""
    home = Home(tmp_path_factory.mktemp("activity") / "home")
    with home.up():
        home.ok("send", "hello " + "and so on " * 40, "--wait", "10")
        home.ok("send", "--session", ACTIVITY, "look around", "--wait", "10")
        home.ok("sleep", "main", "10m", "lunch")
        yield home


def test_what_happened_fits_80_columns(awake: Home):
    lines = awake.ok("activity").splitlines()

    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["when", "agent", "origin", "state", "cost", "what"]
    assert len(lines) == 4
    assert "lunch" in lines[1]
    assert "look around →" in lines[2]
    assert "hello and so on" in lines[3]


def test_it_is_told_by_origin_and_agent_page_by_page(awake: Home):
    first = awake.json("activity", "--limit", "1")
    rest = awake.json("activity", "--after", first["next"])
    asleep = awake.json("activity", "--origin", "wake", "--agent", "main")
    wrong = awake.run("activity", "--origin", "moon")

    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [1, 2, None]
    assert [row["kind"] for row in asleep["items"]] == ["sleep"]
    assert wrong.returncode != 0
    assert "origin" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_what_was_read_is_no_longer_counted(awake: Home):
    before, told = awake.json("status")["unread"], awake.ok("status")
    left = awake.json("activity", "seen")
    after = awake.json("status")["unread"]

    assert (before, left, after) == (1, {"unread": 0}, 0)
    assert "1 unread; `wakeful activity` shows it" in told
    assert "unread" not in awake.ok("status")


def test_the_alias_names_a_session_in_every_verb(awake: Home):
    shown = awake.ok("sessions", "show", ACTIVITY)
    exported = awake.ok("sessions", "export", ACTIVITY)

    assert "look around" in shown
    assert '"type":"session"' in exported.splitlines()[0]


def test_following_goes_on_with_what_happens(tmp_path: Path):
    home = Home(tmp_path / "home")
    with home.up():
        nothing = home.ok("activity").strip(), home.ok("activity", "seen").strip()
        home.ok("send", "hello", "--wait", "10")
        following = home.start("activity", "--follow", "--json", "--limit", "1")
        assert following.stdout is not None
        try:
            first = json.loads(following.stdout.readline())
            home.ok("send", "--session", "other", "hello again", "--wait", "10")
            second = json.loads(following.stdout.readline())
        finally:
            following.kill()
            following.communicate()

    assert nothing == ("nothing happened yet", "nothing happened yet")
    assert (first["kind"], first["trigger"]) == ("turn", "hello")
    assert (second["kind"], second["trigger"]) == ("turn", "hello again")
