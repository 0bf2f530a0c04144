"""The loop of a forecast: what is due next, at its instant, by the functions of a runtime."""

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from wakeful.broker import lane_rows
from wakeful.broker.stimuli import NEVER
from wakeful.forecast.account import Account
from wakeful.forecast.simulated import OpenTurn, SimulatedTurns
from wakeful.store.at_once import StoreAtOnce
from wakeful.store.database import Tx, Verb
from wakeful.timers import timers
from wakeful.timers.timekeeper import PAGE, Due, TimerKind
from wakeful.timers.timers import TIMERS, Timer

MOST_STEPS = 1_000_000  # instants; what takes more ends before its time, and says when

TIDY_EVERY_MS = 6 * 3_600_000
KEPT_MS = 25 * 3_600_000  # of turns the gate counts those of a day

_OVER = (
    "DELETE FROM stimuli WHERE settled_at < :before",
    "DELETE FROM asks WHERE settled_at < :before",
    "DELETE FROM turns WHERE ended_at < :before",
    "DELETE FROM automation_runs WHERE ended_at < :before",
)
_LOOKED_AT = "SELECT id, due_at FROM stimuli WHERE id IN :ids"


class VirtualClock:
    """A clock that stands where it is put."""

    def __init__(self, now: int) -> None:
        self.at = now

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        """Never called: nobody waits in a forecast."""
        raise NotImplementedError

    def call_later(self, seconds: float, act: Callable[[], object]) -> Any:
        """Never called either."""
        raise NotImplementedError


class ForecastLoop:
    """Goes from instant to instant: answers, then timers, then lanes."""

    def __init__(
        self,
        store: StoreAtOnce,
        clock: VirtualClock,
        kinds: Mapping[str, TimerKind[Any]],
        firing: Verb[Due[Any], bool],
        turns: SimulatedTurns,
        account: Account,
        pools: Sequence[str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._kinds = kinds
        self._firing = firing
        self._turns = turns
        self._account = account
        self._pools = pools
        self._ready: dict[str, None] = {}  # lanes that may be claimed, in the order of their coming
        self._later: dict[str, None] = {}  # the same, of those in no hurry
        self._looks: list[int] = []  # when other lanes are due
        self._open: list[tuple[int, int, OpenTurn]] = []
        self._count = 0
        self._tidied_at = clock.at
        self._timers_at: int | None = None  # when the next timer is due, or was when it was set
        store.listen(timers.SET, self._on_timer)
        store.listen(lane_rows.READY, partial(_hint, self._ready))
        store.listen(lane_rows.READY_LATER, partial(_hint, self._later))
        store.listen(lane_rows.DUE, lambda at: heapq.heappush(self._looks, int(at)))

    def run(self, until: int, is_enough: Callable[[], bool]) -> int:
        """Go on up to an instant, or until it is enough; return how far it went."""
        self._scan()
        self._look_at_timers()
        self._step()
        for _ in range(MOST_STEPS):
            following = self._next()
            if following is None or following >= until:
                return until
            self._clock.at = max(self._clock.at, following)
            self._step()
            if self._clock.at > self._tidied_at + TIDY_EVERY_MS:
                self._tidy()
            if is_enough():
                break
        return self._clock.at

    def _next(self) -> int | None:
        """Return when something is due next."""
        due: list[int] = []
        if self._timers_at is not None:
            due.append(self._timers_at)
        if self._open:
            due.append(self._open[0][0])
        if self._looks:
            due.append(self._looks[0])
        return min(due, default=None)

    def _tidy(self) -> None:
        """Forget what is over and decides nothing any more: small tables are quick ones."""
        self._tidied_at = self._clock.at
        for sql in _OVER:
            self._store.write(lambda tx, sql=sql: tx.run(sql, before=tx.now - KEPT_MS))

    def _step(self) -> None:
        """Do all that is due now, in the order in which it would be done."""
        while self._answer() or self._fire() or self._claim():
            self._account.settle()

    def _answer(self) -> bool:
        """Go on with the turns whose models have answered."""
        if not self._open or self._open[0][0] > self._clock.at:
            return False
        turn = heapq.heappop(self._open)[2]
        self._keep(self._store.write(lambda tx: self._turns.go_on(tx, turn), _locks(turn)))
        return True

    def _fire(self) -> bool:
        """Fire a page of timers."""
        if self._timers_at is None or self._timers_at > self._clock.at:
            return False
        rows = self._store.look(timers.DUE, now=self._clock.at, kinds=list(self._kinds), limit=PAGE)
        page = sorted(map(TIMERS.read, rows), key=lambda timer: (timer.due_at, timer.id))
        fired = self._store.apply(self._firing, list(map(self._prepared, page)))
        self._look_at_timers()
        return any(fired)

    def _look_at_timers(self) -> None:
        first = self._store.look(timers.NEXT, kinds=list(self._kinds))
        self._timers_at = first[0][0] if first else None

    def _on_timer(self, due_at: str) -> None:
        if self._timers_at is None or int(due_at) < self._timers_at:
            self._timers_at = int(due_at)

    def _prepared(self, timer: Timer) -> Due[Any]:
        prepare = self._kinds[timer.kind].prepare
        return Due(timer, None if prepare is None else prepare(timer))

    def _claim(self) -> bool:
        """Open the next turn of a lane that is ready, those in a hurry first."""
        while self._looks and self._looks[0] <= self._clock.at:
            if heapq.heappop(self._looks) not in self._looks[:1]:
                self._scan()
        ready = self._ready or self._later
        if not ready:
            return False
        key = next(iter(ready))
        del ready[key]
        locks = [lane_rows.lock(key)]
        self._keep(self._store.write(lambda tx: self._turns.open(tx, key), locks))
        return True

    def _scan(self) -> None:
        """Look for lanes that are due by now, of which nobody has told."""
        for pool in self._pools:
            for is_later, ready in ((0, self._ready), (1, self._later)):
                rows = self._store.look(
                    lane_rows.READY_LANES, pool=pool, is_later=is_later, closed_to=[], limit=NEVER
                )
                ready.update((row[0], None) for row in rows if row[1] <= self._clock.at)
                if following := [row[1] for row in rows if row[1] > self._clock.at]:
                    heapq.heappush(self._looks, following[0])

    def _keep(self, turn: OpenTurn | None) -> None:
        if turn is not None:
            self._count += 1
            heapq.heappush(self._open, (turn.answered_at, self._count, turn))


def when_looked_at(store: StoreAtOnce, ids: Collection[str]) -> dict[str, int | None]:
    """Return until when stimuli wait, by id; None where nobody knows."""
    rows = store.look(_LOOKED_AT, ids=list(ids))
    return {row[0]: None if row[1] >= NEVER else row[1] for row in rows}


def _hint(ready: dict[str, None], session_key: str) -> None:
    ready[session_key] = None


def _locks(turn: OpenTurn) -> Sequence[Any]:
    return [lane_rows.lock(turn.session_key)]


def end_open(store: StoreAtOnce, turns: SimulatedTurns) -> None:
    """End what was open when the copy was made."""

    def end(tx: Tx) -> None:
        turns.end_open(tx)

    store.write(end)
