"""Whether a heartbeat has anything to do: a pure function, asked before any model is."""

from enum import StrEnum

from wakeful.vocabulary.record import Record


class AskedBy(StrEnum):
    """Who wants a heartbeat."""

    TIMER = "timer"
    EVENT = "event"  # something that happened, and should be looked at now
    OPERATOR = "operator"


class Tasks(StrEnum):
    """What the file of tasks holds."""

    ABSENT = "absent"
    NONE = "none"
    SOME = "some"


class BeatFacts(Record):
    """What the decision must know, read under the lane's lock."""

    is_on: bool
    is_active_hour: bool
    is_halted: bool
    is_asleep: bool
    is_busy: bool
    has_event: bool
    tasks: Tasks
    has_own_prompt: bool


def skip_reason(facts: BeatFacts, asked_by: AskedBy) -> str | None:
    """Return why there is no heartbeat now, by the first reason that holds; None: there is one.

    One that was asked for waits where others are skipped because somebody is busy, and has
    something to do: whatever it was asked for. What the wake gate says comes after this.
    """
    is_timed = asked_by is AskedBy.TIMER
    reasons = (
        (not facts.is_on, "disabled"),
        (not facts.is_active_hour and asked_by is not AskedBy.OPERATOR, "active-hours"),
        (facts.is_halted, "halted"),
        (facts.is_asleep, "asleep"),
        (facts.is_busy and is_timed, "busy"),
        (is_timed and not _has_work(facts), "nothing-to-do"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _has_work(facts: BeatFacts) -> bool:
    if facts.has_event or facts.tasks is Tasks.SOME:
        return True
    return facts.tasks is Tasks.ABSENT and facts.has_own_prompt
