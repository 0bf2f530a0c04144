"""Turn rows of the ledgers into the facts that decisions are made of."""

from wakeful.broker.lane_rows import Lane
from wakeful.gate.wakes import Wake
from wakeful.intake.decide import Arrival, LaneFacts, LaneState, RunningTurn
from wakeful.sleeps.sleeps import Sleep
from wakeful.turns.turns import Interrupt, Phase, Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.stimulus import Draft, Stimulus

_STATES: dict[Phase, LaneState] = {
    Phase.STREAMING: LaneState.STREAMING,
    Phase.TOOLS: LaneState.TOOLS,
    Phase.COMPACTING: LaneState.COMPACTING,
    Phase.WAITING: LaneState.STREAMING,
    Phase.ENDED: LaneState.IDLE,
}


def arrival_of(what: Draft | Stimulus, now: int) -> Arrival:
    return Arrival(
        kind=what.kind,
        priority=what.priority,
        trust=what.trust,
        route=what.route,
        has_home=not keys.is_activity(what.session_key),
        is_due=(what.not_before is None or what.not_before <= now) and not _waits(what),
    )


def _waits(what: Draft | Stimulus) -> bool:
    """Tell whether something is to be taken along by a turn of another kind."""
    return isinstance(what, Draft) and what.is_taken_along


def wake_of(stimulus: Stimulus) -> Wake:
    """Return what the gate must know of a stimulus that is about to open a turn."""
    return Wake(
        id=stimulus.id,
        agent_id=stimulus.agent_id,
        session_key=stimulus.session_key,
        kind=stimulus.kind,
        priority=stimulus.priority,
        trust=stimulus.trust,
        source=stimulus.source,
        root_id=stimulus.root_id,
        depth=stimulus.depth,
        ignores_quiet_hours=stimulus.ignores_quiet_hours,
    )


def lane_facts(
    lane: Lane,
    turn: Turn | None,
    sleep: Sleep | None,
    *,
    is_halted: bool,
    now: int,
    is_full: bool = False,
) -> LaneFacts:
    """Derive a lane's state from its row, its open turn and its sleep."""
    policy = None if sleep is None else sleep.policy
    running = None if turn is None else _running(turn)
    if is_halted:
        state = LaneState.HALTED
    elif turn is not None:
        state = _STATES[turn.phase]
    elif sleep is not None:
        state = LaneState.ASLEEP
    elif lane.debounce_until is not None and lane.debounce_until > now:
        state = LaneState.DEBOUNCING
    else:
        state = LaneState.IDLE
    return LaneFacts(state=state, running=running, sleep_policy=policy, is_full=is_full)


def _running(turn: Turn) -> RunningTurn:
    return RunningTurn(
        priority=turn.priority,
        trust=turn.trust,
        route=turn.route,
        is_preemptible=turn.is_preemptible,
        is_ending=turn.interrupt is not Interrupt.NONE,
        is_joinable=turn.kind.rule.is_joinable and turn.view is View.FULL,
    )
