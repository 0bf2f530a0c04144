"""Imports: a transcript's file becomes a session; who brought it is audited in the same commit."""

from collections.abc import AsyncIterator

from wakeful.access import audit
from wakeful.bus.bus import Bus
from wakeful.intake.bindings import Bindings
from wakeful.store.database import Store, Tx
from wakeful.transcript.jsonl.importing import Importer, ImportReport
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR


class TranscriptImports:
    """The one way in for files, whatever door they come through."""

    def __init__(self, store: Store, bus: Bus, ids: Ids, bindings: Bindings) -> None:
        self._store = store
        self._bus = bus
        self._ids = ids
        self._bindings = bindings

    async def run(
        self,
        chunks: AsyncIterator[bytes],
        session: SessionKey | None = None,
        *,
        by: str = OPERATOR,
        is_trial: bool = False,
    ) -> ImportReport:
        """Make a session of a file, or only say what would become of it."""

        def note(tx: Tx, key: str) -> None:
            audit.note(tx, self._ids, who=by, action="sessions.import", target=key)

        importer = Importer(
            self._store, self._bus, self._ids, self._bindings.default_agent, on_shown=note
        )
        return await importer.run(chunks, session, is_trial=is_trial)
