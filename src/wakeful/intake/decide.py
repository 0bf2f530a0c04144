"""What happens to a stimulus: one pure function, asked at the door and again in the lane."""

from enum import StrEnum

from msgspec.structs import replace

from wakeful.sleeps.sleeps import SleepPolicy
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary.queueing import RULES, Drop, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import (
    CAPPED,
    HUMAN,
    JOINING,
    PREEMPTING,
    SELF_WAKING,
    Origin,
    Priority,
    Trust,
)


class LaneState(StrEnum):
    IDLE = "idle"
    DEBOUNCING = "debouncing"
    STREAMING = "streaming"
    TOOLS = "tools"
    COMPACTING = "compacting"
    ASLEEP = "asleep"
    HALTED = "halted"


RUNNING = frozenset({LaneState.STREAMING, LaneState.TOOLS, LaneState.COMPACTING})


class Arrival(Record):
    """What the decision must know of the stimulus."""

    origin: Origin
    priority: Priority
    trust: Trust
    route: Route | None
    has_home: bool  # it names a session of its own, not the activity session
    is_due: bool = True  # it may start now, as far as its sender is concerned


class Running(Record):
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
    running: Running | None = None  # exactly while `state` is a running one
    sleep_policy: SleepPolicy | None = None  # of the sleep that is armed
    is_full: bool = False  # as many messages wait as the cap allows


class Verdict(StrEnum):
    PASS = "pass"
    STORM = "storm"
    LOOP = "loop"
    BUDGET = "budget"
    QUIET_HOURS = "quiet-hours"


class Guard(Record):
    """What the guards and the wake gate said."""

    verdict: Verdict = Verdict.PASS
    look_at: int | None = None


PASSED = Guard()


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

_WAKERS = JOINING | {Origin.APPROVAL}


def decide(
    arrival: Arrival, lane: LaneFacts, settings: QueueSettings, guard: Guard = PASSED
) -> Decision:
    """Return what happens to a stimulus; total over every origin, priority, mode and state."""
    if guard.verdict is Verdict.STORM:
        return Decision(action=Action.HOLD, reason="storm")
    if guard.verdict is Verdict.LOOP:
        return Decision(action=Action.SUPPRESS, reason="loop")
    decision = _decide(arrival, lane, settings, guard)
    if arrival.origin in CAPPED and lane.is_full and decision.action in _KEPT_WAITING:
        if settings.drop is Drop.NEW:
            return Decision(action=Action.SUPPRESS, reason="queue-cap")
        decision = replace(decision, drops_oldest=True)
    return decision


def _decide(arrival: Arrival, lane: LaneFacts, settings: QueueSettings, guard: Guard) -> Decision:
    if lane.state is LaneState.HALTED:
        return _set_aside(arrival, "halted", None)
    if guard.verdict is not Verdict.PASS:
        return _set_aside(arrival, guard.verdict.value, guard.look_at)
    if not arrival.is_due:
        return Decision(action=Action.QUEUE)
    decide_now = _asleep if lane.state is LaneState.ASLEEP else _awake
    decision = decide_now(arrival, lane, settings)
    if lane.sleep_policy is not None and _wakes(arrival, lane.sleep_policy):
        decision = replace(decision, wakes=True)
    return decision


def opens_turn(arrival: Arrival) -> bool:
    """Tell whether a stimulus would open or join a turn by itself, rather than be held."""
    return not _is_inbox_item(arrival) or arrival.priority is Priority.NOW


def _set_aside(arrival: Arrival, reason: str, look_at: int | None) -> Decision:
    """Park, but let the agent's own clockwork go: its trigger sets itself again."""
    if arrival.origin in SELF_WAKING:
        return Decision(action=Action.SUPPRESS, reason=reason)
    return Decision(action=Action.PARK, reason=reason, look_at=look_at)


def _asleep(arrival: Arrival, lane: LaneFacts, settings: QueueSettings) -> Decision:
    """The sleep's own policy decides; work that is due runs and leaves the sleep armed."""
    policy = lane.sleep_policy
    if _wakes(arrival, policy):
        return _awake(arrival, lane, settings)
    if arrival.origin in (Origin.HEARTBEAT, Origin.TICK):
        return Decision(action=Action.SUPPRESS, reason="asleep")
    if arrival.origin is Origin.HUB and policy is SleepPolicy.DROP:
        return Decision(action=Action.SUPPRESS, reason="asleep")
    if arrival.origin in _WAKERS or arrival.origin is Origin.SYSTEM:
        return Decision(action=Action.PARK, reason="asleep")
    return _awake(arrival, lane, settings)


def _wakes(arrival: Arrival, policy: SleepPolicy | None) -> bool:
    if arrival.origin is Origin.HUB and policy in (SleepPolicy.BUFFER, SleepPolicy.DROP):
        return False
    if arrival.priority is Priority.NOW:
        return arrival.origin in PREEMPTING | _WAKERS
    return arrival.origin in _WAKERS and arrival.priority is not Priority.LATER


def _awake(arrival: Arrival, lane: LaneFacts, settings: QueueSettings) -> Decision:
    if _is_inbox_item(arrival) and arrival.priority is not Priority.NOW:
        return Decision(action=Action.HOLD)
    if lane.running is None:
        return _idle(arrival, settings)
    if arrival.priority is Priority.NOW:
        return _urgent(arrival, lane.running)
    if arrival.origin not in JOINING or arrival.priority is Priority.LATER:
        return Decision(action=Action.QUEUE)
    return _by_mode(arrival, lane, lane.running, settings)


def _is_inbox_item(arrival: Arrival) -> bool:
    return arrival.origin is Origin.INBOX or (
        arrival.origin is Origin.WEBHOOK and not arrival.has_home
    )


def _idle(arrival: Arrival, settings: QueueSettings) -> Decision:
    waits = (
        arrival.origin in HUMAN
        and arrival.priority is Priority.NEXT
        and settings.debounce_ms > 0
        and RULES[settings.mode].debounces
    )
    return Decision(action=Action.DEBOUNCE if waits else Action.START)


def _urgent(arrival: Arrival, running: Running) -> Decision:
    """A `now` ends what runs, unless that is a `now` itself or was interrupted too often."""
    may_preempt = (
        arrival.origin in PREEMPTING
        and running.priority is not Priority.NOW
        and running.is_preemptible
        and not running.is_ending
    )
    level = Interrupt.PREEMPT if may_preempt else Interrupt.NONE
    return Decision(action=Action.QUEUE, interrupt=level)


def _by_mode(
    arrival: Arrival, lane: LaneFacts, running: Running, settings: QueueSettings
) -> Decision:
    """The session's queue mode decides; different trust or another receiver never joins."""
    if running.is_ending or arrival.trust is not running.trust:
        return Decision(action=Action.QUEUE)
    rule = RULES[settings.mode]
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
