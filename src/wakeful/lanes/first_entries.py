"""What a turn shows its model first: notes, whatever opened it, what was overheard, the inbox."""

from wakeful.broker import held, lane_rows
from wakeful.broker.lane_rows import Lane
from wakeful.lanes.choose import Choice
from wakeful.prompts import notes
from wakeful.prompts.heartbeat import asked_again
from wakeful.prompts.inbox import items_wait, more_wait
from wakeful.tools.check_inbox import check_inbox
from wakeful.transcript import entries, overheard, sessions
from wakeful.turn.commit import TurnCommit
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.entry import UserBody
from wakeful.vocabulary.kinds import View, Work
from wakeful.vocabulary.stimulus import State, Stimulus, Trust

MOST_HELD = 10  # items that one turn begins with
MOST_HELD_BYTES = 32 * 1024


def show(commit: TurnCommit, lane: Lane, choice: Choice) -> None:
    """Add the entries that show the model what it is asked, notes first."""
    tx = commit.tx
    if commit.session.stopped_note:
        commit.note("stopped", notes.STOPPED)
        sessions.note_stopped(tx, commit.session.key, False)
    if any(stimulus.is_debounced for stimulus in choice.stimuli):
        lane_rows.forget_window(tx, lane.session_key)
    if lane.overflow is not None:
        lane_rows.forget_overflow(tx, lane.session_key)
        commit.note("overflow", notes.overflow(lane.overflow.count, lane.overflow.lines))
    _show_overheard(commit)
    reopened = [s.id for s in choice.stimuli if s.preemptions]
    shown = entries.shown(tx, commit.session, reopened) if reopened else {}
    if commit.turn.view is View.LIGHT:
        shown = dict.fromkeys(shown, False)  # what an earlier turn was shown, it does not see
    if any(shown.values()):
        again = [_named(one) for one in choice.stimuli if shown.get(one.id)]
        commit.note("still_to_do", notes.still_to_do(again))
    new = [stimulus for stimulus in choice.stimuli if not shown.get(stimulus.id)]
    for number, stimulus in enumerate(new, 1):
        text = notes.collected(number, stimulus.text) if choice.form == "collected" else None
        if stimulus.kind.rule.acknowledges and number > 1:
            text = asked_again(stimulus.source)
        commit.add_stimulus(stimulus, text, is_again=stimulus.id in shown)
    _show_inbox(commit)


def _show_inbox(commit: TurnCommit) -> None:
    """Begin a turn in Activity with what waits in the inbox.

    Whoever the agent works for is only told of it: text from outside would cost the turn its
    tools.
    """
    turn, rule = commit.turn, commit.turn.kind.rule
    if not keys.is_activity(turn.session_key) or rule.work is not Work.REPLY:
        return
    if turn.trust is Trust.EXTERNAL or rule.takes_held:
        _show_held(commit)
    elif waiting := held.count(commit.tx, turn.session_key):
        commit.note("inbox", items_wait(waiting, can_look=_can_look(commit)))


def _show_held(commit: TurnCommit) -> None:
    """Add what is held for the agent; it is given to this turn, whatever becomes of that."""
    tx, turn = commit.tx, commit.turn
    given = held.give(tx, turn.session_key, turn.id, MOST_HELD, MOST_HELD_BYTES)
    for one in given:
        commit.narrow(commit.deps.grants_of(one))
        commit.add_stimulus(one)
        commit.publish("stimulus.claimed", one.id, how="shown")
    commit.deps.settlement.settle(tx, [one.id for one in given], State.MERGED)
    if any(one.trust is Trust.EXTERNAL for one in given):
        commit.taint()
    left = held.count(tx, turn.session_key) if given else 0
    if left:
        commit.note("inbox", more_wait(left, can_look=_can_look(commit)))


def _show_overheard(commit: TurnCommit) -> None:
    """Add what was said in a room since the last turn there."""
    if not overheard.is_room(commit.session.key):
        return
    lines = overheard.take(commit.tx, commit.session.key)
    if lines:
        text = notes.overheard([(line.source, line.text) for line in lines])
        is_external = any(line.is_external for line in lines)
        commit.add(UserBody(text=text, source="room", is_external=is_external))
        if is_external:
            commit.taint()


def _can_look(commit: TurnCommit) -> bool:
    """Tell whether a turn has what it takes to read its inbox."""
    return commit.agent.toolbox.get(check_inbox.name, commit.turn.trust) is not None


def _named(stimulus: Stimulus) -> str:
    """Return what a message is recognised by; text from outside stays inside its fence."""
    if stimulus.trust is Trust.EXTERNAL:
        return f"(the message of {stimulus.source})"
    return stimulus.text
