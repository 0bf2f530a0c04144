"""Whether an agent's heart beats, when next, and what came of the last time."""

from wakeful.prompts.heartbeat import PROMPT
from wakeful.store.database import Store
from wakeful.triggers.beating import timer_id
from wakeful.triggers.heartbeat_rows import HEARTBEATS, OF_AGENT
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route


class HeartbeatStatus(Record):
    """An agent's heartbeat, as it is set and as it went."""

    enabled: bool
    every: str
    every_ms: int | None  # None: off
    prompt: str
    target: str
    model: str | None
    ack_max_chars: int
    last_run_at: int | None
    last_outcome: str | None
    next_due_at: int | None


class HeartbeatView:
    """Reads the heartbeats."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, agent_id: str, rules: HeartbeatRules) -> HeartbeatStatus:
        rows = await self._store.read(OF_AGENT, agent_id=agent_id)
        row = HEARTBEATS.read(rows[0]) if rows else None
        due = await self._store.read(
            "SELECT due_at FROM timers WHERE id = :id", id=timer_id(agent_id)
        )
        enabled = rules.every_ms > 0 and not (row is not None and row.is_off)
        return HeartbeatStatus(
            enabled=enabled,
            every=str(rules.every),
            every_ms=rules.every_ms if enabled else None,
            prompt=rules.prompt or PROMPT,
            target=_named(rules.target),
            model=rules.model,
            ack_max_chars=rules.ack_max_chars,
            last_run_at=None if row is None else row.last_run_at,
            last_outcome=None if row is None else row.last_outcome,
            next_due_at=due[0][0] if due else None,
        )


def _named(target: str | Route) -> str:
    return f"{target.door}:{target.address}" if isinstance(target, Route) else target
