"""The commits of a compaction: done, failed, skipped, or begun because the model refused.

Each question for a summary is on record before it is asked. A question that was too long is
settled in the commit that asks the next, smaller one; a summary is written in the commit that goes
on. A kill between any two of them leaves the old view or the new one, and a question to ask again.
"""

from msgspec.structs import replace

from wakeful.approvals import approvals
from wakeful.broker import stimuli
from wakeful.prompts import compaction as template
from wakeful.prompts.approvals import MOST_LISTED, line_of, still_open
from wakeful.prompts.notes import REMEMBER_WHAT_IS_LEFT
from wakeful.transcript import entries, sessions
from wakeful.turn.attempt import Next
from wakeful.turn.commit import TurnCommit
from wakeful.turn.compaction import MOST_RESCUES, CompactionPlan, PreparedCompaction
from wakeful.turn.context import build
from wakeful.turn.next_step import (
    ask,
    ask_or_compact,
    compact,
    end,
    end_interrupted,
    next_step,
    same_step,
)
from wakeful.turn.sizing import is_compaction, is_crowded, is_unheard, must_remember_afterwards
from wakeful.turns import asks
from wakeful.turns.asks import AskState, Purpose
from wakeful.turns.turns import End, Interrupt, Turn, TurnState
from wakeful.vocabulary.entry import CompactionBody, Entry, EntryKind, NoteBody
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.message import AssistantMessage, Usage
from wakeful.vocabulary.stimulus import Stimulus, Trust
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN

TOO_LONG = "This conversation is too long for the model, and could not be made shorter: {why}."
NOTHING = (
    "There is nothing to compact yet: this conversation has about {tokens} tokens, and the newest"
    " part, up to {keep} tokens, stays word for word."
)
COMPACTED = "Compacted: about {before} tokens became {tokens}."
COMPACTED_STEPWISE = "Compacted in several steps: about {tokens} tokens are left."
NO_SHORTER = "Compacted: about {tokens} tokens are left, which cannot be made fewer."
NOT_COMPACTED = "The conversation was not compacted: {why}. Nothing of it was changed."


def compacted(
    commit: TurnCommit, made: PreparedCompaction, reply: AssistantMessage, purpose: Purpose
) -> Next:
    """Write the summary of a conversation, then go on with what the turn was about to do."""
    commit.settle_ask(reply)
    return _write(commit, made, reply.text.strip(), reply.usage, purpose)


def left_out(
    commit: TurnCommit,
    made: PreparedCompaction | None,
    why: str,
    purpose: Purpose,
    fixed_part: str = "",
) -> Next:
    """Go on without what does not fit and cannot be summed up, and say so where it stood.

    Only what the model has refused is left out: without that nobody could speak here any more.
    """
    turn = commit.turn
    if made is None or purpose is not Purpose.RESCUE or turn.interrupt is not Interrupt.NONE:
        return failed(commit, why, purpose, fixed_part)
    commit.fail_ask(AskState.FAILED, why)
    commit.publish("session.compaction_failed", reason=why, because=purpose.value)
    plan = made.plan
    most = plan.most * CHARACTERS_PER_TOKEN // 2
    text = template.left_out(plan.compacted, plan.turn, previous=plan.previous, most=most)
    return _write(commit, made, text, Usage(), purpose)


def _write(
    commit: TurnCommit, made: PreparedCompaction, summary: str, usage: Usage, purpose: Purpose
) -> Next:
    tx, turn, plan = commit.tx, commit.turn, made.plan
    tokens_before, is_first = commit.tokens(), not _has_compacted(commit)
    body = CompactionBody(
        summary=summary,
        first_kept_depth=plan.first_kept_depth,
        tokens_before=tokens_before,
        details={
            "files_read": plan.files_read,
            "files_changed": plan.files_changed,
            "template": template.VERSION,
        },
        previous=_previous(commit),
        # Somebody outside may have said what should stand in it.
        is_external=plan.is_external or turn.trust is Trust.EXTERNAL,
    )
    hidden = _hidden(commit, plan.first_kept_depth) if purpose is not Purpose.RESCUE else []
    notes = [note for note in (_waits_for(commit), _remember(commit)) if note is not None]
    is_all = not hidden and not notes
    kept = None if is_all and _is_as_prepared(commit, made) else _kept(commit, plan)
    commit.add(body, kind=EntryKind.COMPACTION)
    commit.flush()
    entry = commit.written[-1]
    for stimulus in hidden:  # what is still to do must not be known by its summary alone
        commit.add_stimulus(stimulus, is_again=True)
    for note in notes:
        commit.add(note, kind=EntryKind.CUSTOM_MESSAGE)
    commit.flush()
    new = commit.written[commit.written.index(entry) :]
    if kept is None:
        commit.show_anew(made.rest.behind(entry, body))
    else:
        commit.show_anew(build(commit.session.branch, [*kept, *new], turn.id))
    sessions.add_usage(tx, turn.session_key, usage, commit.tokens())
    sessions.note_compaction(
        tx,
        turn.session_key,
        context_from=plan.first_kept_depth,
        cycle=entry.id,
        tokens=commit.tokens(),
    )
    session = sessions.get(tx, turn.session_key)
    assert session is not None
    commit.session = session
    commit.publish(
        "session.compacted",
        entry_id=entry.id,
        first_kept_depth=plan.first_kept_depth,
        tokens_before=tokens_before,
        tokens_after=commit.tokens(),
        because=purpose.value,
    )
    done = COMPACTED if is_first else COMPACTED_STEPWISE
    return _go_on(commit, done.format(before=tokens_before, tokens=commit.tokens()))


def _remember(commit: TurnCommit) -> NoteBody | None:
    """Return the line that asks for memories of what there was no room to ask about before: once
    in a turn, which goes on with an answer.
    """
    if is_compaction(commit.turn) or _has_compacted(commit):
        return None
    if not must_remember_afterwards(commit.turn, commit.agent, commit.session):
        return None
    return NoteBody(topic="remember", text=REMEMBER_WHAT_IS_LEFT, is_hidden=True)


def _waits_for(commit: TurnCommit) -> NoteBody | None:
    """Return the line that reminds a model of what it has asked people, if that is open."""
    found = approvals.open_in(commit.tx, commit.turn.session_key, MOST_LISTED)
    if not found:
        return None
    text = still_open([line_of(one.number, one.tool, one.arguments, one.question) for one in found])
    is_external = any(one.trust is Trust.EXTERNAL for one in found)
    return NoteBody(topic="approvals", text=text, is_external=is_external)


def _hidden(commit: TurnCommit, first_kept_depth: int) -> list[Stimulus]:
    """Return what the turn took up again and only named, since it was shown further up, if a
    compaction takes it from there.
    """
    tx, session = commit.tx, commit.session
    taken_up = stimuli.taken_up_again(tx, commit.turn.id)
    if not taken_up:
        return []
    ids = [stimulus.id for stimulus in taken_up]
    before = entries.shown(tx, session, ids)
    after = entries.shown(tx, replace(session, context_from=first_kept_depth), ids)
    return [one for one in taken_up if before.get(one.id) and not after[one.id]]


def _is_as_prepared(commit: TurnCommit, made: PreparedCompaction) -> bool:
    """Tell whether nothing was added to the conversation since the compaction was prepared."""
    session, rest = commit.session, made.rest
    return (session.branch, session.leaf_hash) == (rest.branch, rest.hash)


def _kept(commit: TurnCommit, plan: CompactionPlan) -> list[Entry]:
    return entries.path(commit.tx, commit.session, plan.first_kept_depth - 1)


def _previous(commit: TurnCommit) -> str | None:
    """Return the id of the summary so far, if there is one."""
    session = commit.session
    segments = entries.segments_of(commit.tx, session, session.context_from - 1)
    entry = entries.last_compaction(commit.tx, segments)
    if entry is None:
        return None
    body = entry.content()
    return entry.id if isinstance(body, CompactionBody) and body.summary else None


def question_refused(commit: TurnCommit, refusal: str, purpose: Purpose) -> Next:
    """The question for a summary was too long, too: ask for the summary of a smaller part."""
    commit.fail_ask(AskState.FAILED, refusal)
    return same_step(commit, lambda commit, step: compact(commit, step, purpose))


def failed(commit: TurnCommit, why: str, purpose: Purpose, fixed_part: str = "") -> Next:
    """Leave the conversation as it is, and say why it was not compacted."""
    commit.fail_ask(AskState.FAILED, why)
    turn = commit.turn
    sessions.note_failed_compaction(commit.tx, turn.session_key)
    commit.publish("session.compaction_failed", reason=why, because=purpose.value)
    if turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    if purpose is Purpose.RESCUE:
        return _ended(commit, "context_overflow", TOO_LONG.format(why=why) + fixed_part)
    if is_compaction(turn):
        return _ended(commit, "compaction_failure", NOT_COMPACTED.format(why=why))
    return next_step(commit, ask)  # there may still be room for an answer


def skipped(commit: TurnCommit, purpose: Purpose, fixed_part: str = "") -> Next:
    """Go on without a compaction: there is nothing that could be left out."""
    turn = commit.turn
    if not is_compaction(turn):
        why = "there is nothing in it that could be left out"
        return failed(commit, why, purpose, fixed_part)
    commit.fail_ask(AskState.FAILED, "nothing to compact")
    if turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    keep = commit.agent.config.compaction.keep_recent_tokens
    sentence = (NO_SHORTER if _has_compacted(commit) else NOTHING).format(
        tokens=commit.tokens(), keep=keep
    )
    return end(commit, End(state=TurnState.DONE, reply=_reply_to_asker(turn, sentence)))


def _has_compacted(commit: TurnCommit) -> bool:
    """Tell whether this turn has made a summary already, and came back for more."""
    session = commit.session
    segments = entries.segments_of(commit.tx, session, session.context_from - 1)
    last = entries.last_compaction(commit.tx, segments)
    return last is not None and last.turn_id == commit.turn.id


def refused(commit: TurnCommit, refusal: str, fixed_part: str = "") -> Next:
    """The model refused a conversation as too long: compact it, and keep less each time."""
    commit.fail_ask(AskState.FAILED, refusal)
    turn = commit.turn
    if turn.interrupt is not Interrupt.NONE:
        return end_interrupted(commit)
    may_compact = commit.agent.config.compaction.enabled and turn.view is not View.LIGHT
    if not may_compact or asks.rescues(commit.tx, turn.id) >= MOST_RESCUES:
        return _ended(commit, "context_overflow", refusal + fixed_part)
    return next_step(commit, lambda commit, step: compact(commit, step, Purpose.RESCUE))


def _go_on(commit: TurnCommit, sentence: str) -> Next:
    turn = commit.turn
    is_enough = not is_crowded(commit.agent, commit.session, commit.tokens())
    if is_compaction(turn) and is_enough and turn.interrupt is Interrupt.NONE:
        return end(commit, End(state=TurnState.DONE, reply=_reply_to_asker(turn, sentence)))
    return next_step(commit, ask_or_compact)


def _reply_to_asker(turn: Turn, sentence: str) -> str | None:
    """Return what is said at the end; nobody waits for what the runtime does by itself."""
    return None if is_unheard(turn) else sentence


def _ended(commit: TurnCommit, kind: str, sentence: str) -> Next:
    reply = _reply_to_asker(commit.turn, sentence)
    return end(commit, End(state=TurnState.FAILED, reply=reply, error_kind=kind, error=sentence))
