"""What becomes of an occurrence that was missed, and of one that failed: pure decisions.

Up to a minute is no lateness: whoever is busy for a moment catches nothing up.
"""

from collections.abc import Iterator
from typing import assert_never

from wakeful.automations.schedules import MOST_NAMED, between
from wakeful.vocabulary.automation import Missed, MissedWithin, RunCause, Schedule
from wakeful.vocabulary.record import Record

ON_TIME_MS = 60_000
CATCH_UP_SPACING_MS = 5_000
RETRY_AFTER_S = (30, 60, 300, 900, 3_600)
FAILURES_TO_DISABLE = 10


class Start(Record):
    """An occurrence that runs, and when it may begin."""

    scheduled_at: int
    not_before: int
    cause: RunCause


class FallenDue(Record):
    """What becomes of all that fell due: some of it runs, the rest was missed."""

    starts: tuple[Start, ...]  # oldest first
    missed: int = 0
    newest_missed: int | None = None


def fallen_due(
    schedule: Schedule, policy: Missed, pending: int, now: int, catch_up_from: int = 0
) -> FallenDue:
    """Return what becomes of an occurrence that is due and of all after it, until now.

    While the oldest is not late, all of them run. After downtime the policy says how many of the
    newest do; those that are late begin one after the other, the first not before `catch_up_from`,
    where other automations have caught up by then.
    """
    wanted = MOST_NAMED + 1  # one more than may run: the newest that was missed
    later = between(schedule, pending, now, wanted)
    newest = (pending, *later.newest)[-wanted:]
    most = _so_many(policy, newest[-1], now) if _is_late(pending, now) else MOST_NAMED
    running = min(most, len(newest))
    left = newest[: len(newest) - running]
    return FallenDue(
        starts=tuple(_starts(newest[len(left) :], now, max(now, catch_up_from))),
        missed=later.count + 1 - running,
        newest_missed=left[-1] if left else None,
    )


def _is_late(at: int, now: int) -> bool:
    return now - at > ON_TIME_MS


def _so_many(policy: Missed, newest: int, now: int) -> int:
    """Return how many of the newest occurrences run after downtime."""
    match policy:
        case "all":
            return MOST_NAMED
        case "once":
            return 1
        case "skip":
            return int(not _is_late(newest, now))  # what is not late was not missed
        case MissedWithin(within_s=within_s):
            return int(now - newest <= max(within_s * 1_000, ON_TIME_MS))
        case _:
            assert_never(policy)


def _starts(occurrences: tuple[int, ...], now: int, first: int) -> Iterator[Start]:
    is_catching_up = any(_is_late(at, now) for at in occurrences)
    for position, at in enumerate(occurrences):
        # Whoever is not late waits behind those that are: the order stays.
        begin = first + position * CATCH_UP_SPACING_MS if is_catching_up else now
        cause = RunCause.CATCH_UP if _is_late(at, now) else RunCause.SCHEDULE
        yield Start(scheduled_at=at, not_before=begin, cause=cause)


def retry_at(failures: int, now: int, next_due: int | None) -> int | None:
    """Return when an occurrence that has failed so often runs again; None: not any more.

    It never does so when the next one is due, which takes its place.
    """
    if not 1 <= failures <= len(RETRY_AFTER_S):
        return None
    again = now + RETRY_AFTER_S[failures - 1] * 1_000
    return again if next_due is None or again < next_due else None


def is_disabled_by(failures_in_a_row: int) -> bool:
    """Tell whether so many failed occurrences, one after the other, are the last."""
    return failures_in_a_row >= FAILURES_TO_DISABLE
