"""Choose which waiting stimuli open the next turn of a lane: a pure function."""

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from wakeful.gate import quiet
from wakeful.vocabulary.kinds import Answer, Joins, Limit, View, Work
from wakeful.vocabulary.queueing import RULES, QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Place, Priority, Stimulus

# Why something waited for the end of quiet hours, looked at in time or freed by whoever ended them.
_QUIET = frozenset({quiet.PARKED, quiet.LIFTED})
# Where an answer goes that is for all who opened a turn together, if their routes agree.
_SHARED = frozenset({Answer.ROUTE, Answer.SESSION, Answer.TARGET, Answer.ACTIVITY})

SettingsOf = Callable[[Stimulus], QueueSettings]


class Choice(Record):
    """The stimuli of one turn, in order."""

    stimuli: tuple[Stimulus, ...]
    form: Literal["together", "collected"] = "together"

    def only(self, numbers: Collection[int]) -> "Choice":
        """Return the choice without the stimuli that must wait for another turn."""
        kept = tuple(one for one in self.stimuli if one.seq in numbers)
        return Choice(stimuli=kept, form=self.form if len(kept) > 1 else "together")


def choose(
    waiting: Sequence[Stimulus], *, now: int, debounce_until: int | None, settings_of: SettingsOf
) -> Choice | None:
    """Return what opens a turn now, or None if nothing is due.

    `waiting` is in lane order. Interrupted work comes back with all its stimuli; messages that
    waited through one window, or for one turn to end, open one turn together if their modes,
    routes and trust agree.
    """
    due = [stimulus for stimulus in waiting if _is_due(stimulus, now, debounce_until)]
    if not due:
        return None
    head = due[0]
    if head.place is Place.INTERRUPTED:
        return Choice(stimuli=tuple(s for s in due if _is_same_work(s, head)))
    if _was_quiet(head):
        return Choice(stimuli=tuple(s for s in due if s is head or _waited_along(s, head)))
    if head.kind.rule.acknowledges:
        return Choice(stimuli=tuple(s for s in due if _asks_for_the_same(s, head)))
    if head.kind.rule.joins is not Joins.BY_MODE:
        return Choice(stimuli=(head,))
    drain = RULES[settings_of(head).mode].drain
    if drain == "one-each" and head.priority is not Priority.NOW:
        return Choice(stimuli=(head,))
    # A `now` goes at once and takes along what was still waiting for the window.
    candidates = waiting if head.priority is Priority.NOW else due
    group = [head]
    for stimulus in candidates:
        if stimulus is head or not _may_join(stimulus, head, now):
            continue
        rule = RULES[settings_of(stimulus).mode]
        if rule.drain == drain or (head.priority is Priority.NOW and rule.drain != "one-each"):
            group.append(stimulus)
    is_collected = drain == "collected" and len(group) > 1
    return Choice(stimuli=tuple(group), form="collected" if is_collected else "together")


def _is_due(stimulus: Stimulus, now: int, debounce_until: int | None) -> bool:
    if stimulus.due_at > now:
        return False
    return not stimulus.is_debounced or debounce_until is None or debounce_until <= now


def _was_quiet(stimulus: Stimulus) -> bool:
    """Tell whether a stimulus waited for the end of quiet hours, and may open a turn with others.

    A job has a turn of its own, and so has what is answered or works in a way of its own.
    """
    rule = stimulus.kind.rule
    is_plain = rule.work is Work.REPLY and rule.view is View.FULL and rule.limit is Limit.TURN
    is_shared = rule.answer in _SHARED and not rule.shows_held
    return stimulus.state_reason in _QUIET and is_plain and is_shared


def _waited_along(stimulus: Stimulus, head: Stimulus) -> bool:
    """Tell whether two that waited for the end of quiet hours open one turn together."""
    is_alike = stimulus.trust is head.trust and stimulus.route == head.route
    return _was_quiet(stimulus) and stimulus.place is not Place.INTERRUPTED and is_alike


def _is_same_work(stimulus: Stimulus, head: Stimulus) -> bool:
    return stimulus.place is Place.INTERRUPTED and stimulus.turn_id == head.turn_id


def _asks_for_the_same(stimulus: Stimulus, head: Stimulus) -> bool:
    """Tell whether one heartbeat will do for both."""
    return stimulus.kind is head.kind and stimulus.trust is head.trust


def _may_join(stimulus: Stimulus, head: Stimulus, now: int) -> bool:
    """Tell whether two stimuli may open one turn: same receiver, same trust, same class."""
    is_urgent_head = head.priority is Priority.NOW
    return (
        stimulus.kind.rule.joins is Joins.BY_MODE
        and stimulus.place is not Place.INTERRUPTED
        and stimulus.due_at <= now
        and stimulus.trust is head.trust
        and stimulus.route == head.route
        and (
            stimulus.priority is head.priority
            or (is_urgent_head and stimulus.is_debounced and stimulus.kind.rule.is_debounced)
        )
    )
