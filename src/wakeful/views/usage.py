"""What was asked of models and what it cost, summed up by who caused it, or by the day."""

from datetime import date
from enum import StrEnum

from wakeful.gate.money import dollars
from wakeful.store.database import Row, Store
from wakeful.views.in_turn import InTurn
from wakeful.vocabulary.record import Record

EVER = 2**62


class UsageBy(StrEnum):
    """What is summed up together."""

    SOURCE = "source"
    AGENT = "agent"
    SESSION = "session"
    DAY = "day"


class UsageSum(Record):
    """What questions used together; an estimate where nobody told."""

    key: str
    turns: int
    calls: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float  # dollars
    unpriced_calls: int


_KEYS = {
    UsageBy.SOURCE: "turns.source",
    UsageBy.AGENT: "turns.agent_id",
    UsageBy.SESSION: "turns.session_key",
    UsageBy.DAY: "asks.day",
}
# One statement per word of ours: none of it is a caller's.
_SUMS = {
    by: (
        f"SELECT {key}, COUNT(DISTINCT asks.turn_id), COUNT(*), SUM(asks.input_tokens), "  # noqa: S608
        "SUM(asks.output_tokens), SUM(asks.cache_read), SUM(asks.cache_write), "
        "COALESCE(SUM(asks.cost), 0), "
        "SUM(CASE WHEN asks.state = 'answered' AND asks.cost IS NULL THEN 1 ELSE 0 END) "
        "FROM asks JOIN turns ON turns.id = asks.turn_id "
        f"WHERE asks.asked_at >= :since AND asks.asked_at < :until AND {key} > :after "
        f"GROUP BY {key} ORDER BY {key} LIMIT :limit"
    )
    for by, key in _KEYS.items()
}


class UsageView:
    """Sums up the questions of turns."""

    def __init__(self, store: Store, in_turn: InTurn | None = None) -> None:
        self._in_turn = in_turn or InTurn(store)

    async def page(
        self, by: UsageBy, since: int | None, until: int | None, after: str | None, limit: int
    ) -> list[UsageSum]:
        """Return sums in the order of their keys, after one."""
        last: str | int = after or ""
        if by is UsageBy.DAY:
            last = date.fromisoformat(after).toordinal() if after else -1
        # It adds up every question of that time.
        rows = await self._in_turn.read(
            "usage",
            _SUMS[by],
            since=since or 0,
            until=EVER if until is None else until,
            after=last,
            limit=limit,
        )
        return [_sum(by, row) for row in rows]


def _sum(by: UsageBy, row: Row) -> UsageSum:
    key, *counts, cost, unpriced = row
    turns, calls, read, written, cache_read, cache_write = map(int, counts)
    return UsageSum(
        key=_day(key) if by is UsageBy.DAY else key,
        turns=turns,
        calls=calls,
        input=read,
        output=written,
        cache_read=cache_read,
        cache_write=cache_write,
        cost=dollars(int(cost)),
        unpriced_calls=int(unpriced),
    )


def _day(number: int) -> str:
    """Return a day as people write it; what was asked before days were counted has none."""
    return date.fromordinal(number).isoformat() if number > 0 else "0001-01-01"
