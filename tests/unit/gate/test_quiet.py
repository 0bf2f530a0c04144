"""When an agent is quiet: by its settings, by the operator's word, and by both."""

from datetime import UTC, datetime

import pytest

from wakeful.gate.days import Days
from wakeful.gate.quiet import QuietHours, QuietPeriod, QuietRow, of_now, status_of
from wakeful.vocabulary.agent import AgentConfig, Agents
from wakeful.vocabulary.hours import DailyHours

NIGHT = DailyHours(start="22:00", end="07:00")


def at(text: str) -> int:
    day, _, time = text.rpartition(" ")
    moment = datetime.fromisoformat(f"2026-06-{day or '01'}T{time}").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def word(since: str, until: str, *, is_quiet: bool = True) -> QuietRow:
    return QuietRow(agent_id="main", is_quiet=is_quiet, since=at(since), until=at(until))


def period(hours: DailyHours | None, row: QuietRow | None, now: str) -> QuietPeriod | None:
    agents = Agents({"main": AgentConfig(id="main", quiet_hours=hours)})
    return QuietHours(agents, Days(UTC)).period("main", row, at(now))


@pytest.mark.parametrize(
    ("hours", "row", "now", "found"),
    [
        (None, None, "12:00", None),
        (NIGHT, None, "12:00", ("22:00", "02 07:00", "settings")),
        (NIGHT, None, "23:00", ("22:00", "02 07:00", "settings")),
        # By hand alone, and no longer than that.
        (None, word("11:00", "13:00"), "12:00", ("11:00", "13:00", "operator")),
        (None, word("11:00", "13:00"), "13:00", None),
        # Where one ends inside the other, that one goes on.
        (NIGHT, word("21:00", "23:00"), "21:30", ("21:00", "02 07:00", "operator")),
        (NIGHT, word("23:00", "02 09:00"), "23:30", ("23:00", "02 09:00", "operator")),
        (NIGHT, word("12:00", "13:00"), "12:30", ("12:00", "13:00", "operator")),
        # Ended by hand: the next night is another one.
        (
            NIGHT,
            word("23:00", "02 07:00", is_quiet=False),
            "23:30",
            ("02 22:00", "03 07:00", "settings"),
        ),
        (
            NIGHT,
            word("23:00", "02 07:00", is_quiet=False),
            "02 22:00",
            ("02 22:00", "03 07:00", "settings"),
        ),
        (
            DailyHours(start="07:00", end="07:00"),
            word("12:00", "02 07:00", is_quiet=False),
            "13:00",
            ("02 07:00", "03 07:00", "settings"),
        ),
    ],
)
def test_the_quiet_of_an_instant_is_the_one_it_lies_in_or_the_next(
    hours: DailyHours | None,
    row: QuietRow | None,
    now: str,
    found: tuple[str, str, str] | None,
):
    quiet = period(hours, row, now)

    shown = None if quiet is None else (quiet.since, quiet.until, quiet.by)
    assert shown == (None if found is None else (at(found[0]), at(found[1]), found[2]))


def test_a_quiet_that_is_still_to_come_is_not_told_as_one():
    assert not status_of(of_now(period(NIGHT, None, "12:00"), at("12:00"))).is_quiet
    assert status_of(of_now(period(NIGHT, None, "22:00"), at("22:00"))).is_quiet
