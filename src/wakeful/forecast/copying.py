"""The copy: every row that determines what comes, and no word that anybody said.

What a conversation holds is its size alone; of what was answered, nothing is copied.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wakeful.store.at_once import StoreAtOnce
from wakeful.store.database import Row, Store
from wakeful.vocabulary.forecast import DAY_MS
from wakeful.vocabulary.kinds import kinds_where

TRIES = 5  # until nothing was committed between the first row read and the last

_HEAD = "SELECT epoch, seq FROM bus_head"
_WAITS = "state IN ('pending', 'parked', 'claimed', 'held')"
# Sessions in which something may happen by itself: those that have a timer, or something waiting.
_STIRRING = (
    "SELECT target FROM timers UNION "  # noqa: S608 (words of ours)
    f"SELECT session_key FROM stimuli WHERE {_WAITS} UNION "
    "SELECT session_key FROM lanes WHERE turn_id IS NOT NULL OR ready_at IS NOT NULL UNION "
    "SELECT key FROM sessions WHERE key IN :keys"
)
# By table, which rows are copied; a row may be named by more than one.
_ROWS: Sequence[tuple[str, str]] = (
    ("budgets", ""),
    ("halts", ""),
    ("sleeps", ""),
    ("heartbeats", ""),
    ("quiet", ""),
    ("greetings", ""),
    ("inbox_counts", ""),
    ("timers", ""),
    ("sessions", f"WHERE key IN ({_STIRRING})"),
    ("lanes", f"WHERE session_key IN ({_STIRRING})"),
    ("stimuli", f"WHERE {_WAITS}"),
    (
        "stimuli",  # what began what waits: a person may have
        f"WHERE id IN (SELECT root_id FROM stimuli WHERE {_WAITS})",  # noqa: S608
    ),
    ("approvals", "WHERE state = 'open' OR (state = 'granted' AND used_at IS NULL)"),
    ("approval_head", ""),
    ("automations", ""),
    ("automation_runs", "WHERE ended_at IS NULL"),
    ("turns", "WHERE state = 'open'"),
    ("turns", "WHERE id > :yesterday AND kind IN :own_kinds"),
    ("asks", "WHERE turn_id IN (SELECT id FROM turns WHERE state = 'open')"),
)
_OWN_KINDS = kinds_where(lambda rule: rule.is_of_its_own)
# Words that decide nothing; of a reply it only counts whether there is one.
_LEFT_OUT: Mapping[str, frozenset[str]] = {"turns": frozenset({"reply", "error", "usage_line"})}

Copied = Sequence[tuple[str, Sequence[str], Sequence[Row]]]


async def read(store: Store, into: StoreAtOnce, session_keys: Sequence[str], now: int) -> Copied:
    """Read what determines the future; `session_keys` are copied whether or not anything stirs.

    Each row is read by itself: if others wrote meanwhile, all is read again, a few times.
    """
    found: Copied = []
    for _ in range(TRIES):
        before = await store.read(_HEAD)
        found = [
            await _read_table(store, into, table, where, session_keys, now)
            for table, where in _ROWS
        ]
        if await store.read(_HEAD) == before:
            break
    return found


async def _read_table(
    store: Store,
    into: StoreAtOnce,
    table: str,
    where: str,
    session_keys: Sequence[str],
    now: int,
) -> tuple[str, Sequence[str], Sequence[Row]]:
    left_out = _LEFT_OUT.get(table, frozenset())
    columns = [row[1] for row in into.look(f"PRAGMA table_info({table})") if row[1] not in left_out]
    given: dict[str, Any] = {
        "keys": list(session_keys),
        "yesterday": f"tn_{max(0, now - DAY_MS):012x}",
        "own_kinds": _OWN_KINDS,
    }
    wanted = {name: value for name, value in given.items() if f":{name}" in where}
    sql = f"SELECT {', '.join(columns)} FROM {table} {where}"  # noqa: S608 (names of ours)
    return table, columns, await store.read(sql, **wanted)


def fill(into: StoreAtOnce, copied: Copied, agent_ids: Collection[str]) -> None:
    """Put into the copy what was read, as far as it is some agents'."""
    for table, columns, rows in copied:
        place = columns.index("agent_id") if "agent_id" in columns else None
        wanted = [row for row in rows if place is None or row[place] in agent_ids]
        into.put_rows(table, columns, wanted)
