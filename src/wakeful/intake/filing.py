"""What is filed for a stimulus: its row, and what its sender is told."""

from collections.abc import Callable, Sequence

from wakeful import attachments
from wakeful.broker.lane_rows import Lane, Overflow
from wakeful.broker.stimuli import NEVER
from wakeful.intake.decide import (
    Action,
    Decision,
)
from wakeful.store.database import Tx
from wakeful.turns.turns import Interrupt, Turn
from wakeful.vocabulary.queueing import RULES, QueueSettings
from wakeful.vocabulary.stimulus import (
    Draft,
    Outcome,
    Place,
    Receipt,
    State,
    Stimulus,
    Trust,
)
from wakeful.vocabulary.text import one_line

LONGEST_OVERFLOW_LINE = 160  # characters kept of a message that the cap dropped

# Files drafts as part of another change, which holds the locks of their lanes.
File = Callable[[Tx, Sequence[Draft]], list[Receipt]]

_STATES: dict[Action, State] = {
    Action.HOLD: State.HELD,
    Action.PARK: State.PARKED,
}
_OUTCOMES: dict[Action, Outcome] = {
    Action.START: Outcome.STARTED,
    Action.DEBOUNCE: Outcome.DEBOUNCING,
    Action.STEER: Outcome.STEERED,
    Action.QUEUE: Outcome.QUEUED,
    Action.HOLD: Outcome.HELD,
    Action.PARK: Outcome.PARKED,
    Action.SUPPRESS: Outcome.SUPPRESSED,
}


def row_of(
    tx: Tx,
    draft: Draft,
    stimulus_id: str,
    lane: Lane,
    decision: Decision,
    settings: QueueSettings,
    *,
    in_inbox: bool = False,
) -> Stimulus:
    # What is suppressed is filed as if it waited: only a settlement ends it.
    state = _STATES.get(decision.action, State.PENDING)
    not_before = max(tx.now, draft.not_before or 0)
    due_at = NEVER if draft.is_taken_along else not_before
    if state is State.PARKED:
        due_at = NEVER if decision.look_at is None else decision.look_at
    goes_first = decision.action is Action.STEER or decision.interrupt is Interrupt.SUPERSEDE
    return Stimulus(
        id=stimulus_id,
        session_key=draft.session_key,
        agent_id=lane.agent_id,
        kind=draft.kind,
        priority=draft.priority,
        place=Place.STEER if goes_first else Place.REST,
        seq=lane.seq + 1,
        text=draft.text,
        attachments=attachments.keep(tx, stimulus_id, draft.attachments),
        trust=draft.trust,
        source=draft.source,
        scope=draft.scope,
        cause_id=draft.cause_id,
        root_id=draft.root_id or stimulus_id,
        depth=draft.depth,
        route=draft.route,
        mode=draft.mode,
        not_before=not_before,
        due_at=due_at,
        expires_at=draft.expires_at,
        is_debounced=is_debounced(draft, decision, settings),
        state=state,
        state_reason=decision.reason,
        turn_id=None,
        preemptions=0,
        accepted_at=tx.now,
        settled_at=None,
        message_id=draft.message_id,
        ignores_quiet_hours=draft.ignores_quiet_hours,
        dedup_key=draft.dedup_key,
        in_inbox=in_inbox,
    )


def overflow_of(known: Overflow | None, dropped: Stimulus, settings: QueueSettings) -> Overflow:
    """Add a dropped message to what the next turn is told; no text from outside gets in here."""
    is_external = dropped.trust is Trust.EXTERNAL
    line = "(a message from outside)" if is_external else dropped.text
    known = known or Overflow(count=0, lines=())
    lines = (*known.lines, one_line(line, LONGEST_OVERFLOW_LINE))
    return Overflow(count=known.count + 1, lines=lines[-settings.cap :])


def is_debounced(draft: Draft, decision: Decision, settings: QueueSettings) -> bool:
    """Tell whether a stimulus waits for the window, now or when the running turn has ended."""
    if decision.action is Action.DEBOUNCE:
        return True
    return (
        decision.action is Action.QUEUE
        and draft.kind.rule.is_debounced
        and settings.debounce_ms > 0
        and RULES[settings.mode].debounces_drain
    )


def receipt_of(
    stimulus: Stimulus,
    decision: Decision,
    turn: Turn | None,
    waiting: int,
    *,
    is_unpriced: bool = False,
) -> Receipt:
    outcome = _OUTCOMES[decision.action]
    if outcome is Outcome.STARTED and waiting:
        outcome = Outcome.QUEUED
    return Receipt(
        stimulus_id=stimulus.id,
        session_key=stimulus.session_key,
        outcome=outcome,
        turn_id=turn.id if turn and outcome is Outcome.STEERED else None,
        position=waiting + 1 if outcome is Outcome.QUEUED else None,
        reason=decision.reason,
        look_at=decision.look_at,
        unpriced=is_unpriced,
    )
