"""Contexts of sessions that ran lately, kept decoded so that a turn need not read its history."""

import asyncio
import threading
from collections import OrderedDict

from wakeful.store.database import Store, Tx
from wakeful.transcript import entries
from wakeful.transcript.branches import Segment
from wakeful.transcript.sessions import Session
from wakeful.turn.context import Context, build
from wakeful.vocabulary.entry import Entry, EntryKind

KEPT_CHARACTERS = 32 * 1024 * 1024  # over all sessions; the least used go first
MOST_AT_ONCE = 2_000  # entries that are read on the writer thread: some 30 ms


class ContextUnread(Exception):
    """A conversation is too long to be read in a transaction: read it ahead, then try again."""

    def __init__(self, session: Session, path: list[Segment], open_turn_id: str | None) -> None:
        super().__init__(session.key)
        self.session = session
        self.path = path
        self.open_turn_id = open_turn_id


class Contexts:
    """A cache keyed by session and checked against the session's leaf; never trusted blindly.

    A context is taken out (on the writer thread) while its turn runs and kept again (on the event
    loop) only once all of it is committed: a transaction that runs again reads the rows instead.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below
        self._kept: OrderedDict[str, Context] = OrderedDict()
        self._size = 0
        self._ahead: dict[str, Context] = {}  # of lanes that are about to be opened

    def take(self, tx: Tx, session: Session, open_turn_id: str | None) -> Context:
        """Return the session's whole context up to its leaf; raise if it is to be read first."""
        with self._lock:
            context = self._kept.pop(session.key, None)
            self._size -= context.size if context else 0
            ahead = self._ahead.get(session.key)  # it stays: a transaction may run again
        for known in (context, ahead):
            if known and open_turn_id is None and self._bring_up_to_leaf(tx, session, known):
                return known
        if ahead and (ahead.branch, ahead.hash) == (session.branch, session.leaf_hash):
            return ahead
        if ahead is None and session.leaf_depth - session.context_from >= MOST_AT_ONCE:
            path = entries.segments_of(tx, session, session.context_from - 1)
            raise ContextUnread(session, path, open_turn_id)
        path = entries.path(tx, session, session.context_from - 1)
        return build(session.branch, path, open_turn_id)

    async def read_ahead(self, store: Store, unread: ContextUnread) -> None:
        """Read a long conversation while others write; `take` finds it until `forget`."""
        session = unread.session
        rows = await entries.read_path(store, unread.path)

        def built() -> Context:
            return build(session.branch, entries.decoded(rows), unread.open_turn_id)

        context = await asyncio.to_thread(built)
        with self._lock:
            self._ahead[session.key] = context

    def forget(self, session_key: str) -> None:
        """Drop what was read ahead: its lane is open now, or will not be."""
        with self._lock:
            self._ahead.pop(session_key, None)

    def light(self, tx: Tx, session: Session, turn_id: str) -> Context:
        """Return what only this turn holds; the session's own context stays where it is."""
        return build(session.branch, entries.path_of_turn(tx, session, turn_id), turn_id)

    def keep(self, session_key: str, context: Context) -> None:
        """Keep a context whose every entry is committed."""
        if context.is_stale:
            return
        with self._lock:
            self._kept[session_key] = context
            self._size += context.size
            while self._size > KEPT_CHARACTERS and self._kept:
                _, dropped = self._kept.popitem(last=False)
                self._size -= dropped.size

    def _bring_up_to_leaf(self, tx: Tx, session: Session, context: Context) -> bool:
        missing = session.leaf_depth - context.depth
        if context.branch != session.branch or not 0 <= missing < MOST_AT_ONCE:
            return False
        if context.depth < session.leaf_depth:
            new: list[Entry] = entries.path(tx, session, context.depth)
            if any(entry.kind is EntryKind.COMPACTION for entry in new):
                return False
            context.extend(new)
        return context.hash == session.leaf_hash and not context.is_stale
