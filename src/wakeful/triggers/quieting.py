"""The end of quiet hours: what was put off goes on, and what is held is shown once.

An agent that has quiet hours, now or later, has a timer for their end. It looks at the lanes that
have something parked, so many in a commit, and carries how far it has come; the last commit files
the digest and sets the timer for the next end. Whatever changes the hours meanwhile brings it
forward, so that every lane is looked at again.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from wakeful.broker import held, lane_rows, parking
from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows, parked, quiet
from wakeful.gate.quiet import QuietHours, QuietPeriod, QuietRow
from wakeful.intake.filing import File
from wakeful.prompts.inbox import DIGEST
from wakeful.store.database import Lock, Store, Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import TIMERS, Timer
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

TIMER_KIND = "quiet"
SOURCE = "quiet-hours"

# Wakes so many of an agent's whose wakes were refused for a reason; returns how many there were.
LookAgain = Callable[[Tx, str, str, int], int]


class Progress(Record):
    """What the timer of an end carries: whose end it is, and the last lane that was looked at."""

    since: int
    after: str = ""


_progress = msgspec.json.Decoder(Progress)


class Quieting:
    """Sets and fires the timers of the ends of quiet hours."""

    def __init__(
        self,
        hours: QuietHours,
        agents: Agents,
        bus: Bus,
        clock: Clock,
        file: File,
        look_again: LookAgain,
    ) -> None:
        self.hours = hours
        self._agents = agents
        self._bus = bus
        self._clock = clock
        self._file = file
        self._look_again = look_again

    def locks(self, agent_id: str) -> tuple[Lock, ...]:
        """Return what whoever changes an agent's quiet must hold: its gate refuses under it."""
        return (budget_rows.lock(agent_id),)

    def begin(self, tx: Tx, agent_id: str, until: int) -> None:
        """Keep an agent quiet until an instant."""
        was = self.hours.now_in(tx, agent_id)
        self.hours.begin(tx, agent_id, until)
        self._follow(tx, agent_id, was)

    def end(self, tx: Tx, agent_id: str) -> bool:
        """End an agent's quiet; False if it has none, and nothing is changed."""
        was = self.hours.now_in(tx, agent_id)
        if was is None:
            return False
        self.hours.end(tx, agent_id)
        self._follow(tx, agent_id, was)
        return True

    async def reconcile(self, store: Store, agent_ids: Sequence[str]) -> None:
        """Bring the timers in line with the settings, which may have changed."""
        timer_ids = [timer_id(agent_id) for agent_id in agent_ids]
        rows = await store.read(timers.BY_IDS, ids=timer_ids)
        known = {timer.id: timer for timer in map(TIMERS.read, rows)}
        words = {row[0]: quiet.ROWS.read(row) for row in await store.read(quiet.ALL)}
        for agent_id in agent_ids:
            timer = known.get(timer_id(agent_id))
            if not self._is_set(agent_id, timer, words.get(agent_id), self._clock.now()):
                await store.transact(
                    lambda tx, agent_id=agent_id: self._reset(tx, agent_id),
                    locks=self.locks(agent_id),
                )

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """Look at the next lanes; after the last of them, tell what is held and set the next."""
        for due in dues:
            self._look(tx, keys.agent_of(due.timer.target), due.timer)

    def _look(self, tx: Tx, agent_id: str, timer: Timer) -> None:
        progress = _progress.decode(timer.payload)
        still = self.hours.now_in(tx, agent_id)
        lanes = parking.parked_lanes(tx, agent_id, quiet.PARKED, progress.after, parked.STEP)
        if lanes:
            lane_rows.require(tx, lanes)
            self._free(tx, lanes, still)
            after = replace(progress, after=lanes[-1])
            timers.put(tx, _timer(agent_id, tx.now, after))
            return
        if still is None:
            if self._look_again(tx, agent_id, quiet.PARKED, parked.STEP) == parked.STEP:
                timers.put(tx, _timer(agent_id, tx.now, progress))
                return
            quiet.forget_past(tx, agent_id)
            self._digest(tx, agent_id)
        self._set(tx, agent_id)

    def _free(self, tx: Tx, lanes: Sequence[str], still: QuietPeriod | None) -> None:
        """Let what lanes have parked go on, or wait for an end that has changed."""
        if still is None:
            parked.free(tx, self._bus, lanes, quiet.PARKED, becomes=quiet.LIFTED)
            return
        parking.look_at_parked(tx, lanes, quiet.PARKED, still.until)
        for key in lanes:
            lane_rows.touch(tx, key)

    def _digest(self, tx: Tx, agent_id: str) -> None:
        """File what shows the agent what is held for it, if anything is."""
        key = keys.activity(agent_id)
        if agent_id not in self._agents or not held.has_some(tx, key):
            return
        draft = Draft(
            session_key=key,
            text=DIGEST,
            kind=Kind.DIGEST,
            trust=Trust.OPERATOR,
            owner=OPERATOR,
            source=SOURCE,
        )
        self._file(tx, [draft])

    def _follow(self, tx: Tx, agent_id: str, was: QuietPeriod | None) -> None:
        """Look again at every lane if the agent was quiet, or else only set the timer."""
        if was is None:
            self._set(tx, agent_id)
        else:
            timers.put(tx, _timer(agent_id, tx.now, Progress(since=was.since)))

    def _set(self, tx: Tx, agent_id: str) -> None:
        """Set the timer for the next end, if there will be one."""
        period = self.hours.period_in(tx, agent_id)
        if period is None:
            timers.cancel(tx, timer_id(agent_id))
        else:
            timers.put(tx, _timer(agent_id, period.until, Progress(since=period.since)))

    def _is_set(self, agent_id: str, timer: Timer | None, row: QuietRow | None, now: int) -> bool:
        period = self.hours.period(agent_id, row, now)
        if timer is None or timer.due_at <= now:
            return timer is not None or period is None  # what is due looks by itself
        since = _progress.decode(timer.payload).since
        return period is not None and (since, timer.due_at) == (period.since, period.until)

    def _reset(self, tx: Tx, agent_id: str) -> None:
        """Set the timer anew; where it stood for an end of quiet that had begun, look now."""
        timer = timers.get(tx, timer_id(agent_id))
        row = quiet.get(tx, agent_id)
        if self._is_set(agent_id, timer, row, tx.now):
            return
        since = None if timer is None else _progress.decode(timer.payload).since
        if since is not None and since <= tx.now:
            timers.put(tx, _timer(agent_id, tx.now, Progress(since=since)))
        else:
            self._set(tx, agent_id)


def timer_id(agent_id: str) -> str:
    return f"{TIMER_KIND} {agent_id}"


def _timer(agent_id: str, due_at: int, progress: Progress) -> Timer:
    return Timer(
        id=timer_id(agent_id),
        due_at=due_at,
        kind=TIMER_KIND,
        target=keys.activity(agent_id),
        payload=msgspec.json.encode(progress).decode(),
        owner_kind="agent",
    )
