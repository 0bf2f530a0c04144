"""Heartbeat rows: one for each agent that has, or had, a heart that beats."""

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

_CHANGES = ", ".join(f"{name} = :{name}" for name in HEARTBEATS.fields if name != "agent_id")


def get(tx: Tx, agent_id: str) -> HeartbeatRow | None:
    row = tx.one(OF_AGENT, agent_id=agent_id)
    return None if row is None else HEARTBEATS.read(row)


def put(tx: Tx, row: HeartbeatRow) -> None:
    tx.run(
        f"{HEARTBEATS.insert} ON CONFLICT (agent_id) DO UPDATE SET {_CHANGES}",
        **HEARTBEATS.params(row),
    )


def note(tx: Tx, agent_id: str, outcome: str) -> None:
    """Keep what came of the last one."""
    tx.run(
        "UPDATE heartbeats SET last_run_at = :now, last_outcome = :outcome "
        "WHERE agent_id = :agent_id",
        agent_id=agent_id,
        outcome=outcome,
        now=tx.now,
    )


def due_after(phase_at: int, every_ms: int, now: int) -> int:
    """Return the first instant after now that is in step with an earlier one."""
    if phase_at > now:
        return phase_at - (phase_at - now - 1) // every_ms * every_ms
    return phase_at + ((now - phase_at) // every_ms + 1) * every_ms
