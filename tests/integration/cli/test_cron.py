"""Automations at the command line: made, listed, shown, changed, run, told of, and removed."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.cli.shell import Home
from tests.waiting import eventually_holds

WIDTH = 80
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z+]+"


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


def ran(home: Home, run_id: str) -> dict[str, Any]:
    """Return the record of a run that has ended."""
    found: dict[str, Any] = {}

    def has_ended() -> bool:
        found.update(home.json("cron", "why", run_id))
        return found["ended_at"] is not None

    eventually_holds(has_ended)
    return found


def test_a_new_automation_tells_five_times_with_their_zone(awake: Home):
    told = awake.ok(
        *("cron", "add", "workdays", "--cron", "0 9 * * 1-5", "--tz", "America/New_York"),
        *("--session", "main", "-m", "look at the news"),
    )
    shown = awake.ok("cron", "show", "workdays")
    job = awake.json("cron", "show", "workdays")

    assert told.startswith("made: workdays\n")
    assert len(re.findall(rf"{TIME}", shown)) == 5
    assert len(re.findall(r"09:00:00 E[SD]T", shown)) == 5
    assert shown.splitlines()[1:] == told.splitlines()[1:]
    assert len(job["next_runs"]) == 5
    assert f"{job['id']}: on" in shown
    assert max(widest(told), widest(shown)) <= WIDTH


def test_a_list_fits_80_columns_and_goes_on_where_a_page_ended(awake: Home):
    awake.ok("send", "hello", "--session", "list:it", "--wait", "20")
    for number in (1, 2):
        name = f"a-rather-long-name-of-a-job-{number}"
        awake.ok("cron", "add", name, "--every", "90m", "-s", "list:it", "-m", "x")
    first = awake.run("cron", "list", "--session", "list:it", "-n", "1")
    after = first.stderr.strip().removeprefix("older: --after ")
    rest = awake.ok("cron", "list", "--session", "list:it", "--after", after)
    awake.ok("cron", "pause", "a-rather-long-name-of-a-job-1")
    off = awake.ok("cron", "list", "--session", "list:it", "--state", "paused")
    none = awake.ok("cron", "list", "--session", "list:nothing")

    assert "every 1h 30m, in agent:main:list:it" in first.stdout
    assert len(first.stdout.splitlines()) == len(rest.splitlines()) == 2
    assert "paused" in off
    assert none == "no automation; `wakeful cron add` makes one\n"
    assert max(map(widest, (first.stdout, rest, off))) <= WIDTH


def test_an_automation_is_changed_paused_resumed_and_removed_by_name_or_id(awake: Home):
    job = awake.json("cron", "add", "changing", "--every", "2h", "-s", "main", "-m", "x")
    edited = awake.ok("cron", "edit", "changing", "--name", "changed", "--cron", "0 7 * * *")
    paused = awake.ok("cron", "pause", job["id"])
    resumed = awake.ok("cron", "resume", "changed")
    gone = awake.ok("cron", "rm", "changed")
    left = awake.run("cron", "show", "changed")

    assert edited.startswith("changed: changed\n")
    assert "cron 0 7 * * * (" in edited
    assert paused == f"changed is paused; `wakeful cron resume {job['id']}` goes on\n"
    assert resumed.startswith("changed goes on\n")
    assert gone.startswith("changed is gone\n")
    assert (left.returncode, left.stderr) == (4, "wakeful: no automation 'changed'\n")


def test_a_run_is_asked_for_listed_and_told_of(awake: Home):
    awake.ok("cron", "add", "asked", "--every", "1 day", "-s", "main", "-m", "say hello")
    none = awake.ok("cron", "runs", "asked")
    run_id = awake.json("cron", "run", "asked")["run_id"]
    record = ran(awake, run_id)
    listed = awake.ok("cron", "runs", "asked")
    told = awake.ok("cron", "why", run_id)
    newest = awake.ok("cron", "why", "asked")
    turn = awake.ok("why", record["turn_id"])
    shown = awake.ok("cron", "show", "asked")

    assert none == "it has not run yet\n"
    assert (record["state"], record["trigger"]) == ("ok", "manual")
    assert f"{run_id}\n  ok, due " in listed
    assert newest == told
    assert f"{run_id}: ok\n" in told
    assert "answer: in its session, cost" in told
    assert "told by cron.agent_turn.reminder, version 1, with" in told
    assert "say hello" in told
    assert "automation of cron:asked" in turn
    assert "last: ok, " in shown
    assert max(widest(listed), widest(shown)) <= WIDTH


def test_a_dry_run_says_when_and_keeps_nothing(awake: Home):
    told = awake.ok(*("cron", "add", "perhaps", "--at", "2h", "-s", "main", "-m", "x", "--dry-run"))
    left = awake.run("cron", "show", "perhaps")

    assert told.startswith("would be made: perhaps\n")
    assert len(re.findall(TIME, told)) == 2  # of the schedule, and the one time it is due
    assert left.returncode == 4


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (("--every", "1h", "-m", "x"), "session: say where it runs: --session, such as main"),
        (("-s", "main", "-m", "x"), "schedule: say when: --every, --at or --cron"),
        (("-s", "main", "--every", "1h"), "message: say what the agent is told: -m, or --event"),
        (
            ("-s", "main", "-m", "x", "--every", "10m", "--wake", "now"),
            "wake: only with --event or --isolated",
        ),
        (("-s", "main", "-m", "x", "--every", "1h", "--at", "2h"), "give one of --every, --at"),
        (("-s", "main", "-m", "x", "--every", "1h", "--tz", "Europe/Berlin"), "only with --cron"),
        (("-s", "main", "-m", "x", "--cron", "0 0 9 * * *"), "schedule.expr: must be five fields"),
        (("-s", "main", "-m", "x", "--at", "2001-01-01T07:00"), "schedule.at: must lie in the"),
        (("-s", "main", "-m", "x", "--every", "100ms"), "schedule.every_s: must be from 1"),
        (("-s", "main", "--isolated", "-m", "x", "--every", "1h"), "session_key: not with"),
        (("-s", "main", "-m", "x", "--event", "y", "--every", "1h"), "event: not with --message"),
        (("-s", "main", "-m", "x", "--every", "1h", "--missed", "maybe"), "missed"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    awake: Home, said: tuple[str, ...], sentence: str
):
    refused = awake.run("cron", "add", "refused", *said)

    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("said", ["20m", "+20m", "in 20 minutes"])
def test_a_time_may_be_said_as_a_span_from_now(awake: Home, said: str):
    job = awake.json("cron", "add", "soon", "--at", said, "-s", "main", "-m", "x", "--dry-run")
    ahead = datetime.fromisoformat(job["next_runs"][0]) - datetime.now(UTC)

    assert timedelta(minutes=18) < ahead <= timedelta(minutes=20)


def test_each_option_is_what_the_server_keeps(awake: Home):
    job = awake.json(
        *("cron", "add", "all of it", "--isolated", "--agent", "main", "--every", "1h"),
        *("-m", "x", "--thinking", "low", "--post", "full", "--wake", "now"),
        *("--missed", "6h", "--overlap", "queue", "--timeout", "10m", "--description", "d"),
        "--paused",
    )
    edited = awake.json("cron", "edit", "all of it", "--thinking", "high", "--missed", "skip")
    event = awake.json("cron", "add", "hears", "--every", "1h", "-s", "main", "--event", "tea")
    once = awake.json(
        *("cron", "add", "once", "--at", "2h", "-s", "main", "-m", "x"),
        *("--delete-after-run", "--respect-quiet-hours"),
    )

    assert {
        "isolated": True,
        "agent_id": "main",
        "session_key": f"agent:main:automation:{job['id']}",
        "post_to_main": {"mode": "full", "prefix": None, "max_chars": 8000},
        "wake": "now",
        "missed": {"within_s": 21600},
        "overlap": "queue",
        "timeout_s": 600,
        "description": "d",
        "enabled": False,
        "disabled_reason": "paused",
    }.items() <= job.items()
    assert job["payload"]["thinking"] == "low"
    assert (edited["payload"]["message"], edited["payload"]["thinking"]) == ("x", "high")
    assert edited["missed"] == "skip"
    assert event["payload"] == {"kind": "system_event", "text": "tea"}
    assert once["schedule"]["kind"] == "at"
    assert (once["delete_after_run"], once["respect_quiet_hours"]) == (True, True)


def test_a_session_with_automations_is_deleted_only_on_request(awake: Home):
    awake.ok("send", "hello", "--session", "kept", "--wait", "20")
    job = awake.json("cron", "add", "keeps", "--every", "1h", "-s", "kept", "-m", "x")
    refused = awake.run("sessions", "rm", "kept", "--json")
    told = awake.run("sessions", "rm", "kept")
    confirmed = awake.json("sessions", "rm", "kept", "--yes")
    left = awake.run("cron", "show", "keeps")

    named = f'"id": "{job["id"]}"'
    assert refused.returncode == 1
    assert '"blocked_by_automations": true' in refused.stdout
    assert named in refused.stdout
    assert told.stderr == "wakeful: automations run there: keeps; `--yes` deletes them, too\n"
    assert confirmed == {"deleted": True}
    assert left.returncode == 4


def test_a_shell_completes_what_can_be_done_about_automations(home: Home):
    home.environ |= {
        "_WAKEFUL_COMPLETE": "complete_bash",
        "COMP_WORDS": "wakeful cron r",
        "COMP_CWORD": "2",
    }

    assert home.run().stdout.split() == ["resume", "run", "runs", "rm"]


def test_without_a_server_automations_are_seen_and_not_changed(home: Home):
    with home.up():
        home.ok("cron", "add", "seen", "--every", "1h", "-s", "main", "-m", "say hello")
        record = ran(home, home.json("cron", "run", "seen")["run_id"])
        running = {
            "list": home.json("cron", "list"),
            "show": home.json("cron", "show", "seen"),
            "runs": home.json("cron", "runs", "seen"),
        }
        status = home.ok("status")
    alone = {
        "list": home.json("cron", "list"),
        "show": home.json("cron", "show", "seen"),
        "runs": home.json("cron", "runs", "seen"),
    }
    why = home.json("cron", "why", record["run_id"])
    doctor = home.run("doctor")
    refused = home.run("cron", "pause", "seen")

    assert alone == running
    assert why == record
    assert "1 automation; `wakeful cron list` shows when each is due" in status
    assert "1 is on" in doctor.stdout
    assert refused.returncode == 3
