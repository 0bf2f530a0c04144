"""Look at lanes: what each one is doing, and what it waits for."""

from wakeful.broker.lane_rows import LANES, Lane
from wakeful.gate import halts
from wakeful.store.database import Store
from wakeful.turns.turns import SUSPECT_STOPS, TURNS, Phase, Turn
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.record import Record


class LaneStatus(Record):
    """What a lane is doing now."""

    session_key: str
    state: str  # idle, debouncing, queued, streaming, tools, compacting, waiting, asleep, halted
    waits_for: str | None = None
    turn_id: str | None = None
    holder: str | None = None  # the node that runs it
    ready_at: int | None = None
    failure: str | None = None  # of the model that is waited for
    waiting: int = 0  # stimuli in line


class LaneView:
    """Reads lanes; the state is derived, nobody stores it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def status(self, session_key: str) -> LaneStatus:
        rows = await self._store.read(LANES.select("WHERE session_key = :key"), key=session_key)
        if not rows:
            return LaneStatus(session_key=session_key, state="idle")
        lane = LANES.read(rows[0])
        ((count,),) = await self._store.read(
            "SELECT COUNT(*) FROM stimuli WHERE session_key = :key "
            "AND state IN ('pending', 'parked') AND priority >= 0",
            key=session_key,
        )
        state, waits_for = await self._state(lane)
        if state == "idle" and lane.ready_at is not None:
            is_due = lane.ready_at <= self._clock.now()
            is_window = lane.debounce_until is not None and lane.debounce_until == lane.ready_at
            state = "queued" if is_due else "debouncing" if is_window else "idle"
            waits_for = f"a free lane in the pool {lane.pool!r}" if is_due else "its time"
        return LaneStatus(
            session_key=session_key,
            state=state,
            waits_for=waits_for,
            turn_id=lane.turn_id,
            holder=lane.owner,
            ready_at=lane.ready_at,
            failure=await self._failure(lane.turn_id) if state == Phase.WAITING else None,
            waiting=count,
        )

    async def _failure(self, turn_id: str | None) -> str | None:
        rows = await self._store.read(
            "SELECT error FROM asks WHERE turn_id = :id ORDER BY step DESC, attempt DESC LIMIT 1",
            id=turn_id,
        )
        return rows[0][0] if rows else None

    async def _state(self, lane: Lane) -> tuple[str, str | None]:
        halted = await self._store.read(
            "SELECT scope FROM halts WHERE scope = :agent_id OR scope = :everything",
            agent_id=lane.agent_id,
            everything=halts.EVERYTHING,
        )
        if halted:
            return "halted", "resume"
        if lane.turn_id is not None:
            rows = await self._store.read(TURNS.select("WHERE id = :id"), id=lane.turn_id)
            return _of_turn(lane, TURNS.read(rows[0])) if rows else (Phase.ENDED.value, None)
        asleep = await self._store.read(
            "SELECT reason FROM sleeps WHERE owner = :key", key=lane.session_key
        )
        return ("asleep", f"the end of its sleep: {asleep[0][0]}") if asleep else ("idle", None)


def _of_turn(lane: Lane, turn: Turn) -> tuple[str, str | None]:
    if turn.phase is Phase.WAITING:
        return turn.phase.value, "the model"
    if lane.owner is None and turn.attempts >= SUSPECT_STOPS:
        return Phase.WAITING.value, "another turn that was open when the process was stopped"
    return turn.phase.value, None
