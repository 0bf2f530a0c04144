"""What waits in a lane: what opens its next turn, and what is set aside for now."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from wakeful.automations import runs
from wakeful.broker import held, lane_rows, parking, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.broker.stimuli import NEVER
from wakeful.gate.gate import Asked
from wakeful.intake import waking
from wakeful.intake.decide import WAITS, Action, Decision, decide
from wakeful.intake.facts import arrival_of, lane_facts, wake_of
from wakeful.lanes.choose import Choice, choose
from wakeful.models.tariffs import tariffs_of
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, WokenBy
from wakeful.store.database import Tx
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.commit import TurnDeps
from wakeful.vocabulary.automation import RunState
from wakeful.vocabulary.kinds import Asleep
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, State, Stimulus

LIMIT = 200  # stimuli looked at by one claim
MOST_EVENTS = 50  # that one heartbeat takes along

_WOKEN = Decision(action=Action.SUPPRESS, reason="woken")  # something else ended that sleep


class _Place(Record):
    """Where something waits, and what would be asked about it."""

    lane: Lane
    session: Session
    asked: Asked


class Waiting:
    """Chooses among what waits, under the lane's lock."""

    def __init__(self, deps: TurnDeps) -> None:
        self._deps = deps

    def set_all_aside(self, tx: Tx, session_key: str, reason: str) -> None:
        """Put off, with one statement, whatever waits in a lane that may not run now."""
        settlement = self._deps.settlement
        settlement.settle(tx, stimuli.self_waking(tx, session_key), State.SUPPRESSED, reason)
        parked = parking.park_lane(tx, session_key, reason)
        self._tell(tx, session_key, parked, State.PARKED, reason)
        lane_rows.touch(tx, session_key)

    def choose(self, tx: Tx, lane: Lane, session: Session, agent: ReadyAgent) -> Choice | None:
        """Choose what opens the turn, and decide again, since time has passed."""
        sleep = sleeps.get_all(tx, [lane.session_key]).get(lane.session_key)
        waiting = self._due(tx, lane)
        asked = Asked(
            tariffs=tariffs_of(agent.model), read=max(session.context_tokens, agent.fixed_tokens)
        )
        place = _Place(lane=lane, session=session, asked=asked)
        while True:
            choice = choose(
                waiting,
                now=tx.now,
                debounce_until=lane.debounce_until,
                settings_of=lambda s: self._deps.queue_settings_of(session, s),
            )
            if choice is None:
                lane_rows.touch(tx, lane.session_key)
                return None
            refused = self._moot(tx, choice) or self._refused(tx, place, sleep, choice)
            if not refused:
                return self._with_events(tx, choice)
            waiting = [stimulus for stimulus in waiting if stimulus.id not in refused]

    def _moot(self, tx: Tx, choice: Choice) -> set[str]:
        """End what was to show what is held, where nothing is held any more; return its id."""
        head = choice.stimuli[0]
        if not head.kind.rule.shows_held or head.preemptions:
            return set()
        if held.has_some(tx, head.session_key):
            return set()
        self._deps.settlement.settle(tx, [head.id], State.SUPPRESSED, "nothing-held")
        return {head.id}

    def _with_events(self, tx: Tx, choice: Choice) -> Choice:
        """Let a heartbeat take along what happened since the last one."""
        head = choice.stimuli[0]
        if not head.kind.rule.acknowledges:
            return choice
        known = {stimulus.id for stimulus in choice.stimuli}
        events = stimuli.taken_along(tx, head.session_key, MOST_EVENTS)
        return replace(
            choice, stimuli=(*choice.stimuli, *(one for one in events if one.id not in known))
        )

    def _due(self, tx: Tx, lane: Lane) -> list[Stimulus]:
        """Return what may run now, and what a `now` takes along of what waits for the window."""
        key, is_open = lane.session_key, (lane.debounce_until or 0) > tx.now
        waiting = self._unexpired(
            tx, stimuli.waiting(tx, key, LIMIT, debounced=False if is_open else None)
        )
        if is_open and waiting and waiting[0].priority is Priority.NOW:
            more = self._unexpired(tx, stimuli.waiting(tx, key, LIMIT, debounced=True))
            waiting = sorted(waiting + more, key=lambda s: (s.priority, s.place, s.seq))
        return waiting

    def _unexpired(self, tx: Tx, found: list[Stimulus]) -> list[Stimulus]:
        """Return what is not too late, and end the rest."""
        late = {s.id for s in found if s.expires_at is not None and s.expires_at < tx.now}
        self._deps.settlement.settle(tx, late, State.EXPIRED, "expired")
        return [stimulus for stimulus in found if stimulus.id not in late]

    def _refused(
        self,
        tx: Tx,
        place: _Place,
        sleep: Sleep | None,
        choice: Choice,
        *,
        woken_by: str = "",
    ) -> set[str]:
        """Set aside what may not run now, and whatever is like it; return the ids of those.

        `woken_by` is what has just ended the sleep of this very lane.
        """
        lane, session = place.lane, place.session
        facts = lane_facts(lane, None, sleep, is_halted=False, now=tx.now)
        for stimulus in choice.stimuli:
            if stimulus.id != woken_by and _is_stale_wake(stimulus, sleep):
                return self._put_off(tx, stimulus, _WOKEN)
            (gate,) = self._deps.gate.may_wake(tx, [wake_of(stimulus)], place.asked)
            settings = self._deps.queue_settings_of(session, stimulus)
            decision = decide(arrival_of(stimulus, tx.now), facts, settings, gate)
            if decision.action not in WAITS:
                return self._put_off(tx, stimulus, decision)
            if decision.wakes and sleep is not None:
                is_its_wake = stimulus.id == sleep.wake_id
                by = (sleep.woken_by if is_its_wake else None) or WokenBy.INTERRUPTED
                waking.end(tx, self._deps.bus, sleep, lane.session_key, by)
                return self._refused(tx, place, None, choice, woken_by=stimulus.id)
        return set()

    def _put_off(self, tx: Tx, stimulus: Stimulus, decision: Decision) -> set[str]:
        reason = decision.reason or decision.action.value
        if decision.action is Action.PARK:
            look_at = NEVER if decision.look_at is None else decision.look_at
            parked = parking.park_alike(tx, stimulus, reason, look_at)
            self._tell(tx, stimulus.session_key, parked, State.PARKED, reason, decision.look_at)
            return {*parked, stimulus.id}
        if decision.action is Action.HOLD:
            held.hold(tx, stimulus.id, decision.reason)
            self._tell(tx, stimulus.session_key, [stimulus.id], State.HELD, reason)
            return {stimulus.id}
        # A wake that came too late says nothing about another one.
        ended = [stimulus.id] if decision is _WOKEN else parking.alike(tx, stimulus)
        look_at = dict.fromkeys(ended, decision.look_at)
        self._deps.settlement.settle(tx, ended, State.SUPPRESSED, reason, look_at=look_at)
        return set(ended)

    def _tell(
        self,
        tx: Tx,
        session_key: str,
        ids: Sequence[str],
        state: State,
        reason: str,
        look_at: int | None = None,
    ) -> None:
        data: dict[str, Any] = {"reason": reason}
        if look_at is not None:
            data["look_at"] = look_at
        for stimulus_id in ids:
            self._deps.bus.publish(
                tx, f"stimulus.{state.value}", session_key, stimulus_id=stimulus_id, **data
            )
        if state is State.PARKED:
            for run in runs.of_stimuli(tx, ids).values():
                parked = replace(run, reason=reason)
                runs.publish(tx, self._deps.bus, parked, RunState.PARKED.value)


def _is_stale_wake(stimulus: Stimulus, sleep: Sleep | None) -> bool:
    """Tell whether a wake has come too late: something else ended the sleep it was filed for."""
    is_wake = stimulus.kind.rule.asleep is Asleep.ENDS and not stimulus.preemptions
    return is_wake and (sleep is None or sleep.wake_id != stimulus.id)
