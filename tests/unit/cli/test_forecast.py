"""The picture of a forecast."""

from datetime import UTC, datetime
from typing import Any

import pytest

from wakeful.cli.forecast import days_in, picture
from wakeful.vocabulary.errors import InvalidInput

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def at(hours: float) -> str:
    return datetime.fromtimestamp(NOON.timestamp() + hours * 3600, UTC).isoformat()


def line(hours: float, what: str, source: str = "tick", agent: str = "main") -> dict[str, Any]:
    key = f"agent:{agent}:main"
    return {"at": at(hours), "session_key": key, "source": source, "what": what}


def drawn(*lines: dict[str, Any], days: int = 1) -> list[str]:
    rows = [{"agent_id": agent} for agent in ("main", "an-agent-with-a-long-name")]
    found = {"from": at(0), "until": at(24 * days), "timeline": lines, "rows": rows}
    return list(picture(found, datetime.fromisoformat))


def test_a_cell_shows_what_its_turns_came_of():
    told = drawn(
        line(0, "fire"),
        line(0, "turn"),
        line(1, "turn", "cron:mail"),
        line(2, "suppressed", "heartbeat"),
        line(3, "turn"),
        line(3.1, "turn", "heartbeat"),
        line(4, "turn", "user"),
    )

    _, other, main, _ = told
    assert main.split()[1].rstrip("·") == "t·c··-·*··o"
    assert other.split()[0] == "an-agent-wi…"
    assert set(other.split()[1]) == {"·"}


def test_days_stand_above_the_cells_in_which_they_begin():
    axis, *_ = drawn(*(line(hours, "turn") for hours in range(0, 72, 2)), days=3)

    assert axis.split() == ["Mon", "01", "Tue", "02", "Wed", "03", "Thu", "04"]
    assert axis.index("Tue") == 13 + 10


@pytest.mark.parametrize(("span", "days"), [("7d", 7), ("1d", 1), ("48h", 2), ("3", 3)])
def test_a_span_is_so_many_days(span: str, days: int):
    assert days_in(span) == days


@pytest.mark.parametrize("span", ["90m", "x", "", "-1d", "1.5"])
def test_what_is_no_number_of_days_is_refused(span: str):
    with pytest.raises(InvalidInput, match="days"):
        days_in(span)
