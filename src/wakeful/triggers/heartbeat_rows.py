"""Heartbeat rows: one for each agent that has, or had, a heart that beats."""

from collections.abc import Mapping, Sequence

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record


class HeartbeatRow(Record):
    """When an agent's heart beats, and what came of it last."""

    agent_id: str
    every_ms: int  # that its timer was set by; 0: it is off
    phase_at: int  # an instant at which it was due: the next ones count from it
    is_off: bool = False  # by the operator's word
    last_run_at: int | None = None
    last_outcome: str | None = None


HEARTBEATS = RowTable("heartbeats", HeartbeatRow)
OF_AGENT = HEARTBEATS.select("WHERE agent_id = :agent_id")
_OF_AGENTS = HEARTBEATS.select("WHERE agent_id IN :agent_ids")

_PUT = (
    HEARTBEATS.insert
    + " ON CONFLICT (agent_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in HEARTBEATS.fields if name != "agent_id")
)
_NOTE = (
    "UPDATE heartbeats SET last_run_at = :now, last_outcome = :outcome WHERE agent_id = :agent_id"
)


def get(tx: Tx, agent_id: str) -> HeartbeatRow | None:
    row = tx.one(OF_AGENT, agent_id=agent_id)
    return None if row is None else HEARTBEATS.read(row)


def get_all(tx: Tx, agent_ids: Sequence[str]) -> dict[str, HeartbeatRow]:
    """Return the rows that are there, by agent."""
    rows = tx.all(_OF_AGENTS, agent_ids=list(agent_ids))
    return {row[0]: HEARTBEATS.read(row) for row in rows}


def put(tx: Tx, *rows: HeartbeatRow) -> None:
    tx.many(_PUT, [HEARTBEATS.params(row) for row in rows])


def note(tx: Tx, outcomes: Mapping[str, str]) -> None:
    """Keep, by agent, what came of the last one."""
    tx.many(
        _NOTE,
        [
            {"agent_id": agent_id, "outcome": outcome, "now": tx.now}
            for agent_id, outcome in outcomes.items()
        ],
    )


def due_after(phase_at: int, every_ms: int, now: int) -> int:
    """Return the first instant after now that is in step with an earlier one."""
    if phase_at > now:
        return phase_at - (phase_at - now - 1) // every_ms * every_ms
    return phase_at + ((now - phase_at) // every_ms + 1) * every_ms
