"""What a turn does next, decided at the end of each of its commits, under the lane's lock.

Facts are always written; nothing new starts once the turn was interrupted, its agent halted or a
limit reached.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.approvals import approvals
from wakeful.broker import lane_rows, stimuli
from wakeful.gate import halts
from wakeful.gate.budgets import BudgetRefusal
from wakeful.gate.chains import is_person
from wakeful.gate.money import Grant
from wakeful.intake.decide import Action, LaneState, decide
from wakeful.intake.facts import arrival_of, lane_facts
from wakeful.prompts import approvals as prompts
from wakeful.prompts import notes
from wakeful.transcript import resets, sessions
from wakeful.turn import calls, heartbeats, jobs, limits, sizing
from wakeful.turn.attempt import (
    Act,
    Ask,
    Compact,
    Ended,
    Left,
    Next,
    StepResult,
    StepState,
    TurnAttempt,
)
from wakeful.turn.commit import TurnCommit
from wakeful.turn.sizing import cycle_of, due_after, is_compaction, is_flush
from wakeful.turn.usage_line import usage_line
from wakeful.turns import asks, turns
from wakeful.turns.asks import AskState, Purpose, Reserved
from wakeful.turns.turns import ENDS, End, Interrupt, Phase, TurnState
from wakeful.vocabulary.entry import EntryKind, NoteBody
from wakeful.vocabulary.errors import Garbled, Transient
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.stimulus import KeptAttachment, Place, State, Stimulus, Trust
from wakeful.vocabulary.text import error_text

STEER_LIMIT = 100  # waiting stimuli looked at by one boundary

Begin = Callable[[TurnCommit, int], Next]  # how the step of this number begins


def advance(commit: TurnCommit, result: StepResult) -> Next:
    """Write what happened and go on: every ordinary commit after the opening.

    A reply with the intents of its first calls, results with the next intents, the last results
    with steers and the next question, the final reply with the end.
    """
    if result.reply is not None:
        commit.write_reply(result.reply)
    calls.write_outcomes(commit, result.outcomes)
    return go_on(commit)


def go_on(commit: TurnCommit) -> Next:
    """Run the calls that are open; then end, or ask again."""
    if commit.turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    while commit.step.open_calls:
        if halts.is_halted(commit.tx, commit.turn.agent_id):
            return leave(commit, "halted", None)
        # What was approved runs, whoever speaks meanwhile.
        if commit.step.approved is None and _steers(commit):
            calls.skip_open(commit, notes.SKIPPED)
            break
        group = calls.next_group(commit)
        sentence = limits.before_calls(commit.turn, commit.agent.config.limits, len(group))
        if sentence is not None:
            return _end_at_limit(commit, sentence)
        if calls.settle_at_once(commit, group[0]):
            continue
        calls.intend(commit, group)
        return Act(calls=group)
    return _rest_or_ask(commit)


def next_step(commit: TurnCommit, begin: Begin) -> Next:
    """Begin another step, unless the turn may not go on."""
    if commit.turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    if halts.is_halted(commit.tx, commit.turn.agent_id):
        return leave(commit, "halted", None)
    sentence = limits.before_ask(commit.turn, commit.agent.config.limits)
    if sentence is not None:
        return _end_at_limit(commit, sentence)
    return begin(commit, commit.turn.step + 1)


def same_step(commit: TurnCommit, begin: Begin) -> Next:
    """Begin the same step anew, of which nothing was answered, unless the turn may not go on."""
    if commit.turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    if halts.is_halted(commit.tx, commit.turn.agent_id):
        return leave(commit, "halted", None)
    return begin(commit, commit.turn.step)


def ask(commit: TurnCommit, step: int) -> Next:
    """Write down that the model is about to be asked, if that may be paid."""
    reserved = _set_aside(commit, step, None)
    if isinstance(reserved, BudgetRefusal):
        return _end_or_wait(commit, reserved)
    _write_ask(commit, step, Purpose.REPLY, Phase.STREAMING, reserved)
    return Ask(step=step, grant=grant_of(reserved))


def ask_without(commit: TurnCommit, refused: Sequence[KeptAttachment], sentence: str) -> Next:
    """Note that the provider did not take what is attached, and ask again without it."""
    commit.fail_ask(AskState.FAILED, sentence)
    text = notes.refused(refused, sentence)
    body = NoteBody(topic="refused", text=text, refused=tuple(one.hash for one in refused))
    commit.add(body, kind=EntryKind.CUSTOM_MESSAGE)
    return next_step(commit, ask)


def compact(commit: TurnCommit, step: int, purpose: Purpose) -> Next:
    """Write down that the model is about to be asked for a summary, if that may be paid."""
    reserved = _set_aside(commit, step, sizing.summary_tokens(sizing.room(commit.agent)))
    if isinstance(reserved, BudgetRefusal):
        return _end_or_wait(commit, reserved)
    _write_ask(commit, step, purpose, Phase.COMPACTING, reserved)
    return Compact(step=step, purpose=purpose, grant=grant_of(reserved))


def ask_or_compact(commit: TurnCommit, step: int) -> Next:
    """Ask the model, or make room first if its answer might not fit.

    Memories are written of what will be compacted, so never after it: a flush is not compacted,
    and a turn that comes before one asks for them itself; there is the reserve. What a light turn
    sees has nothing in it that could be compacted.
    """
    turn = commit.turn
    if (
        not is_flush(turn)
        and turn.view is not View.LIGHT
        and sizing.is_crowded(commit.agent, commit.session, commit.tokens())
    ):
        return remember_or_compact(commit, step)
    return ask(commit, step)


def remember_or_compact(commit: TurnCommit, step: int) -> Next:
    """Compact; before the first time in a cycle, let the agent write down its memories."""
    session = commit.session
    if not sizing.must_remember_first(commit.turn, commit.agent, session, commit.tokens()):
        return compact(commit, step, Purpose.SUMMARY)
    note = NoteBody(topic="remember", text=notes.REMEMBER, is_hidden=True)
    commit.add(note, kind=EntryKind.CUSTOM_MESSAGE)
    sessions.note_flush(commit.tx, session.key, cycle_of(session))
    return ask(commit, step)


def is_moot(commit: TurnCommit) -> bool:
    """Tell whether the turn has nothing left to do: the runtime gave it to itself too soon."""
    return sizing.is_moot(commit.turn, commit.agent, commit.session, commit.tokens())


def end_interrupted(commit: TurnCommit) -> Ended:
    """End a turn that was told to end."""
    return end(commit, End(state=ENDS[commit.turn.interrupt]))


def end(commit: TurnCommit, how: End) -> Ended:
    """End the turn; its open calls get results, its sentence an entry."""
    calls.skip_open(commit, notes.SKIPPED_STOP)
    if commit.turn.kind.rule.acknowledges:
        how = heartbeats.closing(commit, how)
    how = jobs.closing(commit, how)
    if how.reply is not None and how.error_kind is not None and not is_compaction(commit.turn):
        commit.say(how.reply, "limit" if how.error_kind == "limit" else "error")
    commit.flush()
    if how.reply is not None:
        how = replace(how, usage_line=usage_line(commit, how.reply))
    if how.state is TurnState.DONE:
        _file_what_is_due(commit)
    commit.deps.ending.end_turn(commit.tx, commit.turn, how, commit.epoch)
    return Ended(state=how.state)


def end_attempt(commit: TurnCommit, attempt: TurnAttempt, how: End) -> Ended:
    """End a turn for a reason of the attempt's own; an interrupt that came first wins."""
    _write_facts(commit, attempt)
    commit.fail_ask(AskState.FAILED, how.error or how.state.value)
    if commit.turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    return end(commit, how)


def leave_attempt(
    commit: TurnCommit,
    attempt: TurnAttempt,
    reason: str,
    resume_at: int | None,
    failure: Transient | None = None,
) -> Next:
    """Leave a turn open without a task, to go on at `resume_at`, unless it was told to end."""
    if commit.turn.interrupt is not Interrupt.NONE:
        _write_facts(commit, attempt)
        commit.fail_ask(AskState.FAILED, ENDS[commit.turn.interrupt].value)
        return end_interrupted(commit)
    calls.write_outcomes(commit, attempt.finished)
    return leave(commit, reason, resume_at, failure)


def leave(
    commit: TurnCommit, reason: str, resume_at: int | None, failure: Transient | None = None
) -> Left:
    """Leave the turn open without a task; the attempt is given back."""
    tx, turn, is_garbled = commit.tx, commit.turn, isinstance(failure, Garbled)
    ask_error = None if failure is None else error_text(failure)
    state = AskState.ABANDONED if failure is None else AskState.FAILED
    commit.fail_ask(AskState.GARBLED if is_garbled else state, ask_error)
    failed_ask = failure is not None and not is_garbled
    turns.leave(tx, turn.id, failed_ask=failed_ask, used_ms=round(commit.used_s() * 1000))
    lane_rows.release(tx, turn.session_key, resume_at=resume_at, keeps_turn=True)
    commit.publish(
        "turn.left", reason=reason, resume_at=resume_at, error=ask_error, epoch=commit.epoch
    )
    return Left(reason=reason)


def _write_facts(commit: TurnCommit, attempt: TurnAttempt) -> None:
    """Write what an attempt knows that no commit has yet: words said, calls finished."""
    partial = "".join(attempt.partial)
    if partial.strip() and not commit.step.calls:
        commit.say(partial, "aborted")
    calls.write_outcomes(commit, attempt.finished)


def _rest_or_ask(commit: TurnCommit) -> Next:
    """All calls have results: end if there were none or one said so, else ask again."""
    step = commit.step
    if is_compaction(commit.turn) and not step.calls:  # it has written down its memories
        return next_step(commit, lambda commit, step: compact(commit, step, Purpose.SUMMARY))
    if not step.calls or step.rests:
        return end(commit, End(state=TurnState.DONE, reply=_reply(commit) or None))
    return next_step(commit, _steer_and_ask)


def _reply(commit: TurnCommit) -> str:
    """Return what people hear: what the model said, and what it waits for."""
    said = commit.step.said
    asked = approvals.asked_by(commit.tx, commit.turn.id) if commit.step.rests else []
    # Strangers hear what they are asked; what waits for the operator is the operator's.
    is_operators = commit.turn.trust is Trust.OPERATOR
    lines = [
        prompts.for_people(one.number, one.tool, one.question)
        for one in asked
        if is_operators or one.question is not None
    ]
    return "\n\n".join(filter(None, (said.rstrip(), *lines))) if lines else said


def _steer_and_ask(commit: TurnCommit, step: int) -> Next:
    _take_steers(commit)
    return ask_or_compact(commit, step)


def _end_at_limit(commit: TurnCommit, sentence: str) -> Ended:
    how = End(state=TurnState.FAILED, reply=sentence, error_kind="limit", error=sentence)
    return end(commit, how)


def _take_steers(commit: TurnCommit) -> None:
    """Claim what joins now, together with the entries that show it to the model."""
    joining = _steers(commit)
    if not joining:
        return
    stimuli.claim(commit.tx, [stimulus.id for stimulus in joining], commit.turn.id)
    for stimulus in joining:
        commit.narrow(commit.deps.grants_of(stimulus))
        if not commit.turn.for_people and is_person(stimulus.kind, stimulus.trust):
            commit.turn = turns.note_for_people(commit.tx, commit.turn)
        commit.add_stimulus(stimulus)
        commit.publish("stimulus.claimed", stimulus.id, how="steered")


def _steers(commit: TurnCommit) -> list[Stimulus]:
    """Return waiting stimuli that join this turn at its next boundary."""
    tx, session, now = commit.tx, commit.session, commit.tx.now
    waiting = stimuli.waiting(tx, session.key, STEER_LIMIT)
    if not waiting:
        return []
    lane = lane_rows.get(tx, session.key)
    assert lane is not None
    facts = lane_facts(lane, commit.turn, None, is_halted=False, now=now)
    at_boundary = replace(facts, state=LaneState.TOOLS)
    settings_of = commit.deps.queue_settings_of
    return [
        stimulus
        for stimulus in waiting
        if _may_steer(stimulus, now)
        and resets.may_join(session.resets, stimulus.seq)
        and decide(arrival_of(stimulus, now), at_boundary, settings_of(session, stimulus)).action
        is Action.STEER
    ]


def _may_steer(stimulus: Stimulus, now: int) -> bool:
    """Tell whether a waiting stimulus is allowed to run, not too late, and new to the model.

    Interrupted work has been shown already: it opens a turn of its own.
    """
    return (
        stimulus.state is State.PENDING
        and stimulus.place is not Place.INTERRUPTED
        and (stimulus.expires_at is None or stimulus.expires_at >= now)
    )


def grant_of(reserved: Reserved) -> Grant:
    return Grant(reserved=reserved.reserved, max_tokens=reserved.max_tokens)


def _set_aside(commit: TurnCommit, step: int, most: int | None) -> Reserved | BudgetRefusal:
    """Set aside what a question may cost; one that was left behind is settled before."""
    if step == commit.turn.step:
        commit.abandon_ask()
    reserved = commit.reserve(most)
    if isinstance(reserved, BudgetRefusal) and not reserved.sentence and not reserved.look_at:
        return BudgetRefusal(sentence=limits.out_of_money(commit.turn, commit.agent.config.limits))
    return reserved


def _end_or_wait(commit: TurnCommit, refusal: BudgetRefusal) -> Next:
    """End a turn that cannot be paid for, or wait for what is only set aside for others."""
    if refusal.look_at is not None:
        return leave(commit, "budget", refusal.look_at)
    return _end_at_limit(commit, refusal.sentence)


def _write_ask(
    commit: TurnCommit, step: int, purpose: Purpose, phase: Phase, reserved: Reserved
) -> None:
    commit.flush()
    asks.add(
        commit.tx,
        commit.turn.id,
        step,
        epoch=commit.epoch,
        leaf_hash=commit.session.leaf_hash,
        purpose=purpose,
        reserved=reserved,
    )
    tool_calls = commit.turn.tool_calls
    commit.enter(phase, step=step, tool_calls=tool_calls, reserved=reserved.reserved)
    commit.step = StepState()


def _file_what_is_due(commit: TurnCommit) -> None:
    """File what the size of the conversation asks for, to be done when nobody waits."""
    if commit.turn.view is View.LIGHT:
        return
    session = commit.session
    drafts = due_after(
        commit.turn, commit.agent, session, commit.tokens(), can_remember=commit.can_remember
    )
    if any(is_flush(draft) for draft in drafts):
        sessions.note_flush(commit.tx, session.key, cycle_of(session))
    if drafts:
        commit.deps.file(commit.tx, drafts)
