"""Who sleeps, what was skipped and why, what is left of the money: in words of one line."""

from pathlib import Path
from typing import Any

import pytest

from wakeful.cli.agent_lines import (
    Shown,
    all_lines,
    is_short,
    put_off_hint,
    rest_lines,
    sleep_lines,
)
from wakeful.cli.context import CliContext
from wakeful.cli.output import CommandOutput
from wakeful.vocabulary.clock import ManualClock

NOW = "2026-11-16T12:00:00Z"
NOW_MS = 1_794_830_400_000


@pytest.fixture
def context(tmp_path: Path) -> CliContext:
    output = CommandOutput(is_json=False, environ={})
    made = CliContext({"WAKEFUL_HOME": str(tmp_path)}, output)
    made.clock = ManualClock(NOW_MS)
    return made


def budget(spent: float = 0.0, *, used: int = 0, parked: int = 0, cap: float | None = 1.0) -> Shown:
    return {
        "agent_id": "main",
        "resets_at": "2026-11-16T23:00:00Z",
        "money": {"cap": cap, "spent": spent},
        "turns": {"cap": 300, "used": used},
        "parked": parked,
    }


def agent(**more: Any) -> Shown:
    return {"id": "main", "sleep": [], "heartbeat": {}, "skipped": [], "budget": budget(), **more}


def test_nothing_to_tell_takes_no_line(context: CliContext):
    assert list(rest_lines(context, [agent()])) == []


def test_what_was_skipped_is_told_with_its_reason(context: CliContext):
    beat = {"last_outcome": "skipped:nothing-to-do", "last_run_at": "2026-11-16T11:30:00Z"}
    skipped = [
        {"origin": "tick", "reason": "quiet-hours", "count": 12, "last_at": "2026-11-16T11:57:00Z"},
        {"origin": "heartbeat", "reason": "nothing-to-do", "count": 3, "last_at": NOW},
    ]

    lines = list(rest_lines(context, [agent(heartbeat=beat, skipped=skipped)]))

    assert lines == [
        "heartbeat of main, 30 min ago: skipped, nothing-to-do",
        "tick of main, 3 min ago: skipped, quiet-hours (12 times)",
    ]


def test_a_limit_that_no_other_line_tells_of_is_pointed_to(context: CliContext):
    tick = {"origin": "tick", "reason": "budget", "count": 2, "last_at": NOW}
    used_up = budget(used=300)

    beat = {"last_outcome": "skipped:budget", "last_run_at": NOW}

    beaten, own = rest_lines(context, [agent(heartbeat=beat, skipped=[tick])])
    first, raised = rest_lines(context, [agent(skipped=[tick], budget=used_up)])

    assert beaten.endswith(
        "skipped, budget; `wakeful notices` and `wakeful budget show` tell which limit"
    )
    assert own.endswith("(2 times); `wakeful notices` and `wakeful budget show` tell which limit")
    assert first.endswith("skipped, budget (2 times)")
    assert "`wakeful budget raise --turns 50 --agent main` raises it" in raised


def test_who_is_parked_reads_until_when_and_what_helps(context: CliContext):
    receipt = {"session_key": "agent:scout:main", "outcome": "parked", "reason": "budget"}

    told = put_off_hint(context, {**receipt, "look_at": "2026-11-16T14:00:00Z"})

    assert told == (
        "it is kept, and answered when that is over, in 2 h; "
        "`wakeful budget raise 1.00 --agent scout` lets it go on"
    )
    assert put_off_hint(context, {**receipt, "reason": "asleep"}).endswith("when that is over")


def test_who_was_not_woken_in_its_time_is_told_with_the_reason(context: CliContext):
    one = {"session_key": "agent:main:main", "reason": "nap", "wake_at": NOW, "refused": "budget"}

    (line,) = sleep_lines(context, agent(sleep=[one]))

    assert ": nap (not woken in its time: budget); `wakeful wake" in line


@pytest.mark.parametrize(
    ("name", "typed"),
    [("main", "`wakeful quiet off`"), ("scout", "`wakeful quiet off --agent scout`")],
)
def test_whoever_is_quiet_is_told_with_the_command_that_ends_it(
    context: CliContext, name: str, typed: str
):
    quiet = {"is_quiet": True, "until": NOW, "by": "operator"}

    (line,) = rest_lines(context, [agent(id=name, quiet=quiet)])

    assert line.startswith(f"{name} is quiet until 2026-11-16 ")
    assert line.endswith(f" (operator); {typed} ends it")


def test_whoever_waits_for_money_reads_the_one_command_that_raises_it(context: CliContext):
    (line,) = rest_lines(context, [agent(budget=budget(1.0, used=7, parked=2))])

    assert line == (
        "main has spent $1.0000 of $1.0000 today, 7 of 300 turns, anew in 11 h; 2 wait; "
        "`wakeful budget raise 1.00 --agent main` raises it"
    )


def test_whoever_waits_for_turns_is_not_told_to_raise_money(context: CliContext):
    (line,) = rest_lines(context, [agent(budget=budget(used=300, parked=1))])

    assert line.endswith("; 1 wait; `wakeful budget raise --turns 50 --agent main` raises it")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (budget(0.79), False),
        (budget(0.8), True),
        (budget(used=239), False),
        (budget(used=240), True),
        (budget(parked=1), True),
        (budget(500.0, cap=None), False),
    ],
)
def test_money_is_short_from_four_fifths_on(found: Shown, expected: bool):
    assert is_short(found) is expected


def test_of_many_that_sleep_only_some_are_named(context: CliContext):
    asleep = [{"session_key": f"s{n}", "reason": "", "wake_at": NOW} for n in range(7)]

    lines = list(sleep_lines(context, agent(sleep=asleep)))

    assert len(lines) == 6
    assert lines[0].startswith("s0 sleeps until ")
    assert lines[0].endswith(": no reason given; `wakeful wake s0` ends it")
    assert lines[-1] == "… and 2 more sleep"


def test_each_thing_has_a_line_and_each_part_of_it_one_of_its_own(context: CliContext):
    agent: Shown = {
        "id": "main",
        "mcp": [{"name": "notes", "state": "ready"}, {"name": "tickets", "state": "gone"}],
        "queue": {"mode": None, "cap": None},
        "tools": ["shell", "sleep"],
        "is_halted": False,
        "sleep": [],
        "heartbeat": {"enabled": True, "model": None, "next_due_at": "2026-11-16T12:30:00Z"},
        "next_wake_at": None,
    }

    assert list(all_lines(context, agent)) == [
        "id: main",
        "mcp:",
        "  name=notes, state=ready",
        "  name=tickets, state=gone",
        "queue: –",
        "tools: shell, sleep",
        "is_halted: no",
        "sleep: –",
        "heartbeat:",
        "  enabled: yes",
        "  next_due_at: 2026-11-16 12:30:00 UTC",
        "next_wake_at: –",
    ]
