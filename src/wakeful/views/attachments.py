"""Look at what was attached in a session: on the path it goes on, or anywhere in it."""

from msgspec import structs

from wakeful import attachments
from wakeful.store.database import Store
from wakeful.transcript.branches import Segment
from wakeful.transcript.entries import ENTRIES
from wakeful.views.transcripts import TranscriptView
from wakeful.vocabulary.entry import Entry, ToolBody, UserBody, attached
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import ID_LENGTH, KeptAttachment

MOST_HOLDERS = 200  # entries of one transcript that are looked at for the one that is meant

_DIGITS = frozenset("0123456789abcdef")
_HASH_LENGTH = 64


class FoundAttachment(Record):
    """An attachment, and how far the words that it came with are trusted."""

    kept: KeptAttachment
    is_external: bool


class ListedAttachment(Record):
    """An attachment where it stands in a conversation."""

    kept: KeptAttachment
    entry_id: str
    at: int


class AttachmentView:
    """Finds attachments by the digits that a model or a program names them by."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._transcripts = TranscriptView(store)

    async def find(
        self, session_key: str, name: str, *, is_current: bool = False
    ) -> FoundAttachment:
        """Return what an entry of the session names so; with `is_current`, of its present path."""
        if not ID_LENGTH <= len(name) <= _HASH_LENGTH or not _DIGITS.issuperset(name):
            raise _unknown(name)
        for path in await self._transcripts.paths(session_key, is_current=is_current):
            for entry in await self._holders(path, name):
                for kept in attached(entry):
                    if kept.hash.startswith(name):
                        return FoundAttachment(kept=kept, is_external=_is_external(entry))
        raise _unknown(name)

    async def newest(self, session_key: str, limit: int) -> list[ListedAttachment]:
        """Return what is attached on the path that a session goes on, the newest first."""
        found: list[ListedAttachment] = []
        for path in await self._transcripts.paths(session_key, is_current=True):
            for part in reversed(path):
                rows = await self._store.read(
                    ENTRIES.select(
                        "WHERE branch = :branch AND depth >= :first AND depth <= :last AND EXISTS "
                        "(SELECT 1 FROM attachment_uses WHERE holder = entries.id) "
                        "ORDER BY depth DESC LIMIT :limit"
                    ),
                    **structs.asdict(part),
                    limit=limit,
                )
                for entry in map(ENTRIES.read, rows):
                    found += [
                        ListedAttachment(kept=kept, entry_id=entry.id, at=entry.at)
                        for kept in attached(entry)
                    ]
        return found[:limit]

    async def read(self, content_hash: str) -> str:
        """Return the bytes of an attachment, in base64."""
        found = await attachments.read(self._store, [content_hash])
        if content_hash not in found:
            raise _unknown(content_hash)
        return found[content_hash]

    async def _holders(self, path: list[Segment], name: str) -> list[Entry]:
        """Return entries of a path that name an attachment, those from outside first."""
        found: list[Entry] = []
        for part in path:
            rows = await self._store.read(
                ENTRIES.select(
                    "WHERE branch = :branch AND depth >= :first AND depth <= :last AND id IN "
                    "(SELECT holder FROM attachment_uses WHERE hash >= :name AND hash < :end) "
                    "ORDER BY depth DESC LIMIT :limit"
                ),
                **structs.asdict(part),
                name=name,
                end=f"{name}g",
                limit=MOST_HOLDERS,
            )
            found += map(ENTRIES.read, rows)
        # What a stranger sent stays a stranger's, even if somebody trusted sent the same.
        return sorted(found, key=_is_external, reverse=True)


def _is_external(entry: Entry) -> bool:
    body = entry.content()
    return isinstance(body, UserBody | ToolBody) and body.is_external


def _unknown(name: str) -> NotFound:
    return NotFound("id", f"no attachment {name[:80]!r}")
