"""The commits of a compaction: folded, failed, or begun because the model refused."""

from wakeful.prompts import compaction as template
from wakeful.transcript import entries, sessions
from wakeful.turn.compaction import Plan
from wakeful.turn.context import build, last_compaction
from wakeful.turn.journal import Next
from wakeful.turn.page import Page
from wakeful.turn.sizing import is_compaction, is_unheard
from wakeful.turns import asks
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import End, Interrupt, Turn, TurnState
from wakeful.vocabulary.entry import CompactionBody, EntryKind
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.message import AssistantMessage

TOO_LONG = "This conversation is too long for the model, and could not be made shorter: {why}."
NOTHING = "There is nothing to fold yet."
NOT_FOLDED = "The conversation was not folded: {why}. Nothing of it was changed."


def fold(page: Page, plan: Plan, reply: AssistantMessage, purpose: Purpose) -> Next:
    """Write the summary of a conversation, then go on with what the turn was about to do."""
    tx, turn, sheet = page.tx, page.turn, page.sheet
    tokens_before = page.tokens()
    path = entries.path(tx, sheet.session, sheet.session.context_from - 1)
    counted = last_compaction(path)
    page.note_answer(reply)
    body = CompactionBody(
        summary=reply.text.strip(),
        first_kept_depth=plan.first_kept_depth,
        tokens_before=tokens_before,
        details={
            "files_read": plan.files_read,
            "files_changed": plan.files_changed,
            "template": template.VERSION,
        },
        previous=None if counted is None or not counted[1].summary else counted[0].id,
    )
    sheet.add(body, kind=EntryKind.COMPACTION)
    sheet.flush()
    entry = sheet.written[-1]
    kept = [line for line in (*path, entry) if line.depth >= plan.first_kept_depth]
    page.show_anew(build(sheet.session.branch, kept, turn.id))
    sessions.add_usage(tx, turn.session_key, reply.usage, page.tokens())
    sessions.note_compaction(
        tx,
        turn.session_key,
        context_from=plan.first_kept_depth,
        cycle=entry.id,
        tokens=page.tokens(),
    )
    session = sessions.get(tx, turn.session_key)
    assert session is not None
    sheet.session = session
    sheet.publish(
        "session.compacted",
        entry_id=entry.id,
        first_kept_depth=plan.first_kept_depth,
        tokens_before=tokens_before,
        tokens_after=page.tokens(),
        because=purpose.value,
    )
    return _go_on(page, f"Folded: about {tokens_before} tokens became {page.tokens()}.")


def fail(page: Page, why: str, purpose: Purpose) -> Next:
    """Leave the conversation as it is, and say why it was not folded."""
    turn = page.turn
    asks.failed(page.tx, turn.id, turn.step, why)
    sessions.note_failed_compaction(page.tx, turn.session_key)
    page.sheet.publish("session.compaction_failed", reason=why, because=purpose.value)
    if turn.interrupt is not Interrupt.NONE:
        return page.interrupted()
    if purpose is Purpose.RESCUE:
        return _ended(page, "context_overflow", TOO_LONG.format(why=why))
    if is_compaction(turn):
        return _ended(page, "compaction_failure", NOT_FOLDED.format(why=why))
    return page.next_step(page.ask)  # there may still be room for an answer


def skip(page: Page, purpose: Purpose) -> Next:
    """Go on without a compaction: there is nothing that could be left out."""
    turn = page.turn
    if not is_compaction(turn):
        return fail(page, "there is nothing in it that could be left out", purpose)
    asks.failed(page.tx, turn.id, turn.step, "nothing to fold")
    if turn.interrupt is not Interrupt.NONE:
        return page.interrupted()
    return page.end(End(state=TurnState.DONE, reply=_told(turn, NOTHING)))


def rescue(page: Page, refusal: str) -> Next:
    """The model refused a conversation as too long: fold it, once in a turn."""
    turn = page.turn
    asks.failed(page.tx, turn.id, turn.step, refusal)
    if turn.interrupt is not Interrupt.NONE:
        return page.interrupted()
    may_fold = page.mind.config.compaction.enabled and turn.view is not View.LIGHT
    if not may_fold or asks.was_rescued(page.tx, turn.id):
        return _ended(page, "context_overflow", refusal)
    return page.next_step(lambda step: page.compact(step, Purpose.RESCUE))


def _go_on(page: Page, told: str) -> Next:
    turn = page.turn
    if is_compaction(turn) and turn.interrupt is Interrupt.NONE:
        return page.end(End(state=TurnState.DONE, reply=_told(turn, told)))
    return page.next_step(page.ask_or_compact)


def _told(turn: Turn, sentence: str) -> str | None:
    """Return what is said at the end; nobody waits for what the runtime does by itself."""
    return None if is_unheard(turn) else sentence


def _ended(page: Page, kind: str, sentence: str) -> Next:
    reply = _told(page.turn, sentence)
    return page.end(End(state=TurnState.FAILED, reply=reply, error_kind=kind, error=sentence))
