"""Record: each commit of a turn writes what happened and, with it, what happens next.

`advance` makes every ordinary commit after the opening: a reply with the intents of its first
calls, results with the next intents, the last results with steers and the next question, the
final reply with the end.
"""

from collections.abc import Callable

from wakeful.broker import lanes
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Session
from wakeful.turn.journal import Ended, Fenced, Journal, News, Next
from wakeful.turn.page import Advanced, Page
from wakeful.turn.resume import load_step
from wakeful.turn.sheet import Pen
from wakeful.turns import turns
from wakeful.turns.turns import End, Interrupt, Turn, TurnState
from wakeful.vocabulary.errors import Invariant, Transient


class Recorder:
    """Writes turns down."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen

    def advance(self, tx: Tx, journal: Journal, news: News) -> Advanced:
        """Write the news of an attempt and decide, under the lane's lock, what comes next."""
        page = self.page(tx, journal)
        if page is None:
            return Advanced(next=Fenced(), turn=journal.turn)
        page.calls.ledger_failures = news.ledger_failures
        if news.reply is not None:
            page.write_reply(news.reply)
        page.write_outcomes(news.outcomes)
        return page.close(page.go_on())

    def end(self, tx: Tx, journal: Journal, how: End) -> Advanced:
        """End a turn for a reason of the attempt's own; an interrupt that came first wins."""
        page = self.page(tx, journal)
        if page is None:
            return Advanced(next=Fenced(), turn=journal.turn)
        page.write_facts(journal)
        if page.turn.interrupt is not Interrupt.NONE:
            return page.close(page.interrupted())
        return page.close(page.end(how))

    def leave(
        self,
        tx: Tx,
        journal: Journal,
        *,
        reason: str,
        resume_at: int | None,
        failure: Transient | None = None,
    ) -> Advanced:
        """Leave a turn open without a task, to go on at `resume_at`; the attempt is given back."""
        page = self.page(tx, journal)
        if page is None:
            return Advanced(next=Fenced(), turn=journal.turn)
        if page.turn.interrupt is not Interrupt.NONE:
            page.write_facts(journal)
            return page.close(page.interrupted())
        page.write_outcomes(journal.finished)
        return page.close(page.leave(reason, resume_at, failure))

    def on_page(self, tx: Tx, journal: Journal, act: Callable[[Page], Next]) -> Advanced:
        """Make a commit of another kind: `act` writes it and decides what comes next."""
        page = self.page(tx, journal)
        if page is None:
            return Advanced(next=Fenced(), turn=journal.turn)
        return page.close(act(page))

    def give_up(self, tx: Tx, journal: Journal) -> Advanced:
        """End a turn and nothing else; for when its end as it should be cannot be written."""
        attempt = journal.attempt
        turn = turns.get(tx, attempt.turn_id)
        held = lanes.is_held(tx, attempt.session_key, attempt.owner, attempt.epoch)
        if not held or turn is None or turn.state is not TurnState.OPEN:
            return Advanced(next=Fenced(), turn=journal.turn)
        how = End(state=TurnState.FAILED, error_kind="internal", error="its end was not writable")
        self._pen.ending.end_turn(tx, turn, how, attempt.epoch)
        return Advanced(next=Ended(state=how.state), turn=turn)

    def page(self, tx: Tx, journal: Journal) -> Page | None:
        """Open a page for a commit, or return None if the attempt was fenced."""
        attempt = journal.attempt
        if not lanes.is_held(tx, attempt.session_key, attempt.owner, attempt.epoch):
            return None
        turn = turns.get(tx, attempt.turn_id)
        session = sessions.get(tx, attempt.session_key)
        if turn is None or session is None or turn.state is not TurnState.OPEN:
            raise Invariant(f"the lane of {attempt.session_key!r} is held without an open turn")
        if journal.is_stale:
            self._catch_up(tx, journal, turn, session)
        return Page(self._pen, tx, journal, turn, session)

    def _catch_up(self, tx: Tx, journal: Journal, turn: Turn, session: Session) -> None:
        """Drop what an attempt takes for news although a commit it never heard of has it."""
        if turn.step != journal.turn.step:
            journal.partial.clear()
            journal.finished.clear()
        journal.turn = turn
        if load_step(tx, session, journal):
            journal.partial.clear()
