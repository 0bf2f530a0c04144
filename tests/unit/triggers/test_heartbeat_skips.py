"""Why a heartbeat asks no model: the first reason that holds, whoever wanted it."""

import pytest
from msgspec.structs import replace

from wakeful.triggers.heartbeat_rows import due_after
from wakeful.triggers.heartbeat_skips import AskedBy, BeatFacts, Tasks, skip_reason

FINE = BeatFacts(
    is_on=True,
    is_active_hour=True,
    is_halted=False,
    is_asleep=False,
    is_busy=False,
    has_event=False,
    tasks=Tasks.SOME,
    has_own_prompt=False,
)
TROUBLE = {
    "disabled": {"is_on": False},
    "active-hours": {"is_active_hour": False},
    "halted": {"is_halted": True},
    "asleep": {"is_asleep": True},
    "busy": {"is_busy": True},
    "nothing-to-do": {"tasks": Tasks.NONE},
}


def test_the_reasons_come_in_their_order():
    worst = FINE
    for reason, changes in reversed(TROUBLE.items()):
        worst = replace(worst, **changes)
        assert skip_reason(worst, AskedBy.TIMER) == reason

    assert skip_reason(FINE, AskedBy.TIMER) is None


@pytest.mark.parametrize(
    ("asked_by", "passed"),
    [
        (AskedBy.EVENT, {"busy", "nothing-to-do"}),
        (AskedBy.OPERATOR, {"active-hours", "busy", "nothing-to-do"}),
    ],
)
def test_one_that_was_asked_for_passes_what_only_holds_for_the_timer(
    asked_by: AskedBy, passed: set[str]
):
    found = {
        reason
        for reason, changes in TROUBLE.items()
        if skip_reason(replace(FINE, **changes), asked_by) is None
    }

    assert found == passed


@pytest.mark.parametrize(
    ("tasks", "has_own_prompt", "has_event", "has_work"),
    [
        (Tasks.ABSENT, False, False, False),
        (Tasks.ABSENT, True, False, True),
        (Tasks.NONE, True, False, False),
        (Tasks.NONE, False, True, True),
        (Tasks.SOME, False, False, True),
    ],
)
def test_there_is_something_to_do(
    tasks: Tasks, has_own_prompt: bool, has_event: bool, has_work: bool
):
    facts = replace(FINE, tasks=tasks, has_own_prompt=has_own_prompt, has_event=has_event)

    assert (skip_reason(facts, AskedBy.TIMER) is None) is has_work


@pytest.mark.parametrize(
    ("phase_at", "now", "due_at"),
    [(0, 0, 30), (0, 29, 30), (0, 30, 60), (0, 95, 120), (100, 0, 10), (100, 70, 100), (30, 0, 30)],
)
def test_the_next_one_is_in_step_with_the_last(phase_at: int, now: int, due_at: int):
    assert due_after(phase_at, 30, now) == due_at
