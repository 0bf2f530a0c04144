"""Look at turns and wait for them."""

from wakeful.broker.stimuli import STIMULI
from wakeful.bus.bus import Bus
from wakeful.store.database import Store
from wakeful.turns.turns import TURNS, Turn, TurnState
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.stimulus import TERMINAL, Receipt, Stimulus


class TurnView:
    """Reads turns and stimuli, and waits for their ends."""

    def __init__(self, store: Store, bus: Bus, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock

    async def turn(self, turn_id: str) -> Turn:
        rows = await self._store.read(TURNS.select("WHERE id = :id"), id=turn_id)
        if not rows:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        return TURNS.read(rows[0])

    async def stimulus(self, stimulus_id: str) -> Stimulus:
        rows = await self._store.read(STIMULI.select("WHERE id = :id"), id=stimulus_id)
        if not rows:
            raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
        return STIMULI.read(rows[0])

    async def wait_for_stimulus(self, receipt: Receipt, timeout_s: float) -> Turn | None:
        """Return the turn that settled a stimulus; None if it ended, or time did, without one."""
        stimulus_id = receipt.duplicate_of or receipt.stimulus_id
        if not stimulus_id:
            return None  # a command that filed nothing
        try:
            async with time_limit(self._clock, timeout_s):
                with self._bus.watch(receipt.session_key) as watch:
                    while (stimulus := await self.stimulus(stimulus_id)).state not in TERMINAL:
                        await watch.until(
                            lambda event: (
                                event.stimulus_id == stimulus_id
                                and event.kind.removeprefix("stimulus.") in TERMINAL
                            )
                        )
        except TimeoutError:
            return None
        return None if stimulus.turn_id is None else await self.turn(stimulus.turn_id)

    async def wait_for_turn(self, turn_id: str, timeout_s: float) -> Turn:
        """Return a turn when it has ended, or as it is when the time is over."""
        turn = await self.turn(turn_id)
        try:
            async with time_limit(self._clock, timeout_s):
                with self._bus.watch(turn.session_key) as watch:
                    while (turn := await self.turn(turn_id)).state is TurnState.OPEN:
                        await watch.until(
                            lambda event: event.turn_id == turn_id and event.kind == "turn.finished"
                        )
        except TimeoutError:
            pass
        return turn
