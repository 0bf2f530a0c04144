"""Contexts of sessions that ran lately, kept decoded so that a turn need not read its history."""

import threading
from collections import OrderedDict

from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.sessions import Session
from wakeful.turn.context import Context, build, in_view
from wakeful.vocabulary.entry import Entry, EntryKind
from wakeful.vocabulary.kinds import View

KEPT_CHARACTERS = 32 * 1024 * 1024  # over all sessions; the least used go first


class Contexts:
    """A cache keyed by session and checked against the session's leaf; never trusted blindly.

    A context is taken out (on the writer thread) while its turn runs and kept again (on the event
    loop) only once all of it is committed: a transaction that runs again reads the rows instead.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two fields below
        self._kept: OrderedDict[str, Context] = OrderedDict()
        self._size = 0

    def take(self, tx: Tx, session: Session, open_turn_id: str | None) -> Context:
        """Return the session's whole context up to its leaf."""
        with self._lock:
            context = self._kept.pop(session.key, None)
            self._size -= context.size if context else 0
        if context and open_turn_id is None and self._bring_up_to_leaf(tx, session, context):
            return context
        path = entries.path(tx, session, session.context_from - 1)
        return build(session.branch, path, open_turn_id)

    def light(self, tx: Tx, session: Session, turn_id: str) -> Context:
        """Return what only this turn holds; the session's own context stays where it is."""
        path = entries.path(tx, session, session.context_from - 1)
        return build(session.branch, in_view(path, View.LIGHT, turn_id), turn_id)

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
        if context.branch != session.branch or context.depth > session.leaf_depth:
            return False
        if context.depth < session.leaf_depth:
            new: list[Entry] = entries.path(tx, session, context.depth)
            if any(entry.kind is EntryKind.COMPACTION for entry in new):
                return False
            context.extend(new)
        return context.hash == session.leaf_hash and not context.is_stale
