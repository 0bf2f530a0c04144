"""Compactions that somebody asks for, or wants undone."""

from wakeful.access.principal import Principal
from wakeful.broker import lane_rows
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import existing
from wakeful.store.database import Store, Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.vocabulary.compacting import NO_WISH
from wakeful.vocabulary.entry import CompactionBody, Entry, EntryKind
from wakeful.vocabulary.errors import InvalidInput, Underway
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Draft, Receipt


class Compactions:
    """Compacts conversations on request, and undoes it."""

    def __init__(self, store: Store, bus: Bus, ids: Ids, intake: Intake) -> None:
        self._store = store
        self._bus = bus
        self._ids = ids
        self._intake = intake

    async def ask(
        self, session_key: SessionKey, wish: str, route: Route | None, by: Principal
    ) -> Receipt:
        """File that a conversation is to be compacted, as soon as its lane is free.

        Where the wish came from, the outcome is told; not to whoever spoke there last.
        """
        return await self._store.transact(
            lambda tx: self.ask_in(tx, session_key, wish, route, by),
            locks=[lane_rows.lock(session_key), halts.ASKING],
        )

    def ask_in(
        self, tx: Tx, session_key: SessionKey, wish: str, route: Route | None, by: Principal
    ) -> Receipt:
        """Ask as part of another change; the caller holds the locks of the lane and the halts."""
        existing(tx, session_key)
        draft = Draft(
            session_key=session_key,
            text=wish.strip() or NO_WISH,
            kind=Kind.COMPACTION,
            trust=by.trust,
            owner=by.owner,
            source=by.name,  # who pays for it
            route=route,
        )
        return self._intake.accept_in(tx, [draft])[0]

    async def undo(self, session_key: SessionKey) -> Entry:
        """Give back the view before the last compaction; what was said since then stays.

        An entry of its own says so: nothing that was written is changed.
        """
        return await self._store.transact(
            lambda tx: self._undo(tx, session_key), locks=[lane_rows.lock(session_key)]
        )

    def _undo(self, tx: Tx, session_key: str) -> Entry:
        session = existing(tx, session_key)
        lane = lane_rows.get(tx, session_key)
        if lane is not None and lane.turn_id is not None:
            raise Underway(f"a turn is running in {session_key!r}: stop it, or wait for its end")
        last = entries.get(tx, session.cycle) if session.cycle else None
        undone = None if last is None else last.content()
        if last is None or not isinstance(undone, CompactionBody):
            raise InvalidInput("session", "has no compaction that could be undone")
        before = None if undone.previous is None else entries.get(tx, undone.previous)
        body = CompactionBody(summary="", first_kept_depth=0, tokens_before=session.context_tokens)
        if before is not None and isinstance(earlier := before.content(), CompactionBody):
            body = earlier
        line = NewEntry(
            id=self._ids.entry(),
            kind=EntryKind.COMPACTION,
            body=_undoing(body, last.id, session.context_tokens),
        )
        _, (written,) = entries.append(tx, session, [line])
        # The earlier compaction's cycle counts again; without one, the transcript's first.
        sessions.note_compaction(
            tx,
            session_key,
            context_from=body.first_kept_depth,
            cycle=undone.previous or "",
            tokens=undone.tokens_before,
            by=-min(session.compactions, 1),  # a fork may undo what was not compacted in it
        )
        self._bus.publish(
            tx, "session.compaction_undone", session_key, entry_id=written.id, undoes=last.id
        )
        return written


def _undoing(view: CompactionBody, undone_id: str, tokens: int) -> CompactionBody:
    return CompactionBody(
        summary=view.summary,
        first_kept_depth=view.first_kept_depth,
        tokens_before=tokens,
        details=view.details,
        previous=view.previous,
        undoes=undone_id,
        is_external=view.is_external,
    )
