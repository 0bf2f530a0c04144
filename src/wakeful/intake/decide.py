"""What happens to a stimulus: one pure function, asked at the door and again in the lane."""

from enum import StrEnum

from msgspec.structs import replace

from wakeful.gate.wakes import PASSED, GateVerdict, Verdict
from wakeful.sleeps.sleeps import SleepPolicy
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary.kinds import Asleep, Held, Joins, Kind, KindRule, Refused
from wakeful.vocabulary.queueing import RULES, Drop, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Priority, Trust


class LaneState(StrEnum):
    IDLE = "idle"
    DEBOUNCING = "debouncing"
    STREAMING = "streaming"
    TOOLS = "tools"
    COMPACTING = "compacting"
    ASLEEP = "asleep"
    HALTED = "halted"


class Arrival(Record):
    """What the decision must know of the stimulus."""

    kind: Kind
    priority: Priority
    trust: Trust
    route: Route | None
    has_home: bool  # it names a session of its own, not the activity session
    is_due: bool = True  # it may start now, as far as its sender is concerned

    @property
    def rule(self) -> KindRule:
        return self.kind.rule


class RunningTurn(Record):
    """What the decision must know of the turn that runs."""

    priority: Priority
    trust: Trust
    route: Route | None
    is_preemptible: bool
    is_ending: bool  # it was interrupted already
    is_joinable: bool = True  # not the runtime's own work, of which nobody hears


class LaneFacts(Record):
    """What the decision must know of the lane, read under its lock."""

    state: LaneState
    running: RunningTurn | None = None  # exactly while `state` is a running one
    sleep_policy: SleepPolicy | None = None  # of the sleep that is armed
    is_full: bool = False  # as many messages wait as the cap allows


class Action(StrEnum):
    START = "start"
    DEBOUNCE = "debounce"
    STEER = "steer"
    QUEUE = "queue"
    HOLD = "hold"
    PARK = "park"
    SUPPRESS = "suppress"


class Decision(Record):
    """What to do with a stimulus."""

    action: Action
    reason: str | None = None
    look_at: int | None = None
    interrupt: Interrupt = Interrupt.NONE  # raised on the running turn
    wakes: bool = False  # ends the sleep
    drops_oldest: bool = False  # makes room for itself under the cap


WAITS = frozenset({Action.START, Action.DEBOUNCE, Action.STEER, Action.QUEUE})
_KEPT_WAITING = WAITS | {Action.PARK}
_MARKED = frozenset({SleepPolicy.DEFAULT, SleepPolicy.BUFFER, SleepPolicy.DROP})


def decide(
    arrival: Arrival, lane: LaneFacts, settings: QueueSettings, gate: GateVerdict = PASSED
) -> Decision:
    """Return what happens to a stimulus; total over every kind, priority, mode and state."""
    if gate.verdict is Verdict.STORM:
        return Decision(action=Action.HOLD, reason="storm")
    if gate.verdict is Verdict.LOOP:
        return Decision(action=Action.SUPPRESS, reason="loop")
    decision = _decide(arrival, lane, settings, gate)
    if arrival.rule.is_capped and lane.is_full and decision.action in _KEPT_WAITING:
        if settings.drop is Drop.NEW:
            return Decision(action=Action.SUPPRESS, reason="queue-cap")
        decision = replace(decision, drops_oldest=True)
    return decision


def _decide(
    arrival: Arrival, lane: LaneFacts, settings: QueueSettings, gate: GateVerdict
) -> Decision:
    if lane.state is LaneState.HALTED:
        return _set_aside(arrival, "halted", None)
    if gate.verdict is not Verdict.PASS and _is_asked_for(arrival):
        return _set_aside(arrival, gate.verdict.value, gate.look_at)
    if not arrival.is_due:
        return Decision(action=Action.QUEUE)
    kept_out = _kept_out(arrival, lane)
    if kept_out is not None:
        return Decision(action=kept_out, reason="asleep")
    decision = _awake(arrival, lane, settings)
    if lane.sleep_policy is SleepPolicy.WAKE and _wakes(arrival):
        decision = replace(decision, wakes=True)
    return decision


def _is_asked_for(arrival: Arrival) -> bool:
    """Tell whether the wake gate has a say: only over what would have a model asked."""
    return arrival.rule.refused is not Refused.NEVER and opens_turn(arrival)


def opens_turn(arrival: Arrival) -> bool:
    """Tell whether a stimulus would open or join a turn by itself, rather than be held."""
    return not is_inbox_item(arrival) or arrival.priority is Priority.NOW


def _set_aside(arrival: Arrival, reason: str, look_at: int | None) -> Decision:
    """Park, but let the agent's own clockwork go: its trigger sets itself again."""
    if arrival.rule.refused is Refused.SUPPRESSED:
        return Decision(action=Action.SUPPRESS, reason=reason, look_at=look_at)
    return Decision(action=Action.PARK, reason=reason, look_at=look_at)


def _kept_out(arrival: Arrival, lane: LaneFacts) -> Action | None:
    """Return what a sleep does to what may not disturb it, or None for all the rest.

    While a turn runs, only the policies that an agent set for its room hold: the sleep of a
    session does not outlast what wakes it. What is held anyway disturbs nobody.
    """
    if not opens_turn(arrival):
        return None
    if lane.sleep_policy in _MARKED:
        if not arrival.rule.obeys_markers:
            return None
        return Action.SUPPRESS if lane.sleep_policy is SleepPolicy.DROP else Action.PARK
    if lane.state is not LaneState.ASLEEP or _wakes(arrival):
        return None
    match arrival.rule.asleep:
        case Asleep.SUPPRESSED:
            return Action.SUPPRESS
        case Asleep.WAKES | Asleep.WAITS:
            return Action.PARK
        case _:
            return None


def _wakes(arrival: Arrival) -> bool:
    if not opens_turn(arrival):
        return False  # no turn would come of it, and the wake would be lost
    match arrival.rule.asleep:
        case Asleep.ENDS:
            return True
        case Asleep.WAKES:
            return arrival.priority is not Priority.LATER
        case Asleep.WAKES_NOW:
            return arrival.priority is Priority.NOW
        case _:
            return False


def _awake(arrival: Arrival, lane: LaneFacts, settings: QueueSettings) -> Decision:
    if is_inbox_item(arrival) and arrival.priority is not Priority.NOW:
        return Decision(action=Action.HOLD)
    if lane.running is None:
        return _idle(arrival, settings)
    if arrival.priority is Priority.NOW:
        return _urgent(arrival, lane.running)
    if arrival.rule.joins is not Joins.BY_MODE or arrival.priority is Priority.LATER:
        return Decision(action=Action.QUEUE)
    return _by_mode(arrival, lane, lane.running, settings)


def is_inbox_item(arrival: Arrival) -> bool:
    """Tell whether a stimulus lands in the inbox: it is held there unless it is urgent."""
    held = arrival.rule.held
    return held is Held.ALWAYS or (held is Held.WITHOUT_A_HOME and not arrival.has_home)


def _idle(arrival: Arrival, settings: QueueSettings) -> Decision:
    waits = (
        arrival.rule.is_debounced
        and arrival.priority is Priority.NEXT
        and settings.debounce_ms > 0
        and RULES[settings.mode].debounces
    )
    return Decision(action=Action.DEBOUNCE if waits else Action.START)


def _urgent(arrival: Arrival, running: RunningTurn) -> Decision:
    """A `now` ends what runs, unless that is a `now` itself or was interrupted too often."""
    may_preempt = (
        arrival.rule.preempts
        and running.priority is not Priority.NOW
        and running.is_preemptible
        and not running.is_ending
    )
    level = Interrupt.PREEMPT if may_preempt else Interrupt.NONE
    return Decision(action=Action.QUEUE, interrupt=level)


def _by_mode(
    arrival: Arrival, lane: LaneFacts, running: RunningTurn, settings: QueueSettings
) -> Decision:
    """The session's queue mode decides; different trust or another receiver never joins."""
    if running.is_ending or arrival.trust is not running.trust:
        return Decision(action=Action.QUEUE)
    rule = RULES[settings.mode]
    if rule.while_running == "interrupt" and not arrival.rule.supersedes:
        return Decision(action=Action.QUEUE)
    if rule.while_running == "interrupt":
        level = Interrupt.SUPERSEDE if running.is_preemptible else Interrupt.NONE
        return Decision(action=Action.QUEUE, interrupt=level)
    if arrival.route != running.route or not running.is_joinable:
        return Decision(action=Action.QUEUE)
    if rule.while_running == "steer" or (
        rule.while_running == "steer-if-able" and lane.state is not LaneState.COMPACTING
    ):
        return Decision(action=Action.STEER)
    return Decision(action=Action.QUEUE)
