"""Look at what was attached in a session: on the path it goes on, or anywhere in it."""

from collections.abc import Mapping, Sequence

from wakeful import attachments
from wakeful.store.database import Row, Store
from wakeful.transcript.branches import Segment
from wakeful.transcript.entries import ENTRIES
from wakeful.views.cards import owned_branches
from wakeful.views.pages import fitting
from wakeful.views.transcripts import TranscriptView
from wakeful.vocabulary.entry import Entry, ToolBody, UserBody, attached
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import ID_LENGTH, KeptAttachment

MOST_HOLDERS = 1000  # entries that are looked at for the one that is meant

_DIGITS = frozenset("0123456789abcdef")
_HASH_LENGTH = 64

# In JSON a quotation mark inside of a text has a backslash: this is said by nobody.
_EXTERNAL = """CASE WHEN body LIKE '%"is_external":true%' THEN 1 ELSE 0 END"""
_TRANSCRIPTS = (
    "SELECT transcript_id FROM sessions WHERE key = :key "
    "UNION SELECT id FROM past_transcripts WHERE session_key = :key"
)
# What a stranger sent stays a stranger's, even if somebody trusted sent the same.
_HOLDERS = (
    f"SELECT id, branch, depth, transcript_id, {_EXTERNAL} AS is_external "  # noqa: S608 (ours)
    "FROM entries WHERE id IN "
    "(SELECT holder FROM attachment_uses WHERE hash >= :name AND hash < :end) "
    f"AND transcript_id IN ({_TRANSCRIPTS}) ORDER BY is_external DESC, id DESC LIMIT :limit"
)

_NEWEST = (
    "SELECT id, OCTET_LENGTH(body) FROM entries "
    "WHERE branch = :branch AND depth >= :first AND depth <= :last "
    "AND EXISTS (SELECT 1 FROM attachment_uses WHERE holder = entries.id) "
    "ORDER BY depth DESC LIMIT :limit"
)


class FoundAttachment(Record):
    """An attachment, and how far the words that it came with are trusted."""

    kept: KeptAttachment
    is_external: bool


class ListedAttachment(Record):
    """An attachment where it stands in a conversation."""

    kept: KeptAttachment
    entry_id: str
    at: int
    number: int  # among those of its entry


class AttachmentPage(Record):
    """Some of what is attached to a conversation."""

    items: Sequence[ListedAttachment]
    next: str | None  # where the page after it begins


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
        rows = await self._store.read(
            _HOLDERS, key=session_key, name=name, end=f"{name}g", limit=MOST_HOLDERS
        )
        reach = await self._reach(session_key, rows, is_current=is_current)
        for entry_id, branch, depth, *_ in rows:
            first, last = reach.get(branch, (0, -1))
            if not first <= depth <= last:
                continue
            found = await self._store.read(ENTRIES.select("WHERE id = :id"), id=entry_id)
            for entry in map(ENTRIES.read, found):
                for kept in attached(entry):
                    if kept.hash.startswith(name):
                        return FoundAttachment(kept=kept, is_external=_is_external(entry))
        raise _unknown(name)

    async def page(
        self, session_key: str, *, after: str | None = None, limit: int
    ) -> AttachmentPage:
        """Return what is attached on the path that a session goes on, the newest first.

        `after` is where the page before ended. There are fewer than `limit` where the entries that
        name them would not fit on a page.
        """
        path = await self._transcripts.path(session_key)
        before, passed = await self._start(path, after)
        sizes: list[Row] = []  # known without reading the bodies
        for part in reversed(path):
            if len(sizes) > limit:
                break
            sizes += await self._store.read(
                _NEWEST,
                branch=part.branch,
                first=part.first,
                last=min(part.last, before),
                limit=limit + 1 - len(sizes),
            )
        shown = sizes[: fitting(row[1] for row in sizes)]
        rows = await self._store.read(
            ENTRIES.select("WHERE id IN :ids ORDER BY depth DESC"), ids=[row[0] for row in shown]
        )
        listed = [one for row in rows for one in _listed(ENTRIES.read(row))][passed:]
        items = listed[:limit]
        has_more = len(listed) > limit or len(sizes) > len(shown)
        return AttachmentPage(
            items=items, next=f"{items[-1].entry_id}.{items[-1].number}" if has_more else None
        )

    async def read(self, content_hash: str) -> str:
        """Return the bytes of an attachment, in base64."""
        found = await attachments.read(self._store, [content_hash])
        if content_hash not in found:
            raise _unknown(content_hash)
        return found[content_hash]

    async def _reach(
        self, session_key: str, rows: Sequence[Row], *, is_current: bool
    ) -> Mapping[str, tuple[int, int]]:
        """Return which entries of each branch a session has: the depths of the first and last."""
        if not rows:
            return {}
        if is_current:
            path = await self._transcripts.path(session_key)
            return {part.branch: (part.first, part.last) for part in path}
        return await owned_branches(self._store, session_key, {row[3] for row in rows})

    async def _start(self, path: Sequence[Segment], after: str | None) -> tuple[int, int]:
        """Return at which depth to begin, and how many of the first entry to pass over."""
        if after is None:
            return 2**62, 0
        entry_id, _, number = after.partition(".")
        rows = await self._store.read(
            "SELECT branch, depth FROM entries WHERE id = :id", id=entry_id
        )
        for branch, depth in rows:
            is_on = any(part.branch == branch and part.first <= depth <= part.last for part in path)
            if is_on and number.isascii() and number.isdecimal() and len(number) < 9:
                return depth, int(number)
        raise InvalidInput("after", f"is not a cursor of this list: {after[:80]!r}")


def _listed(entry: Entry) -> list[ListedAttachment]:
    return [
        ListedAttachment(kept=kept, entry_id=entry.id, at=entry.at, number=number)
        for number, kept in enumerate(attached(entry), 1)
    ]


def _is_external(entry: Entry) -> bool:
    body = entry.content()
    return isinstance(body, UserBody | ToolBody) and body.is_external


def _unknown(name: str) -> NotFound:
    return NotFound("id", f"no attachment {name[:80]!r}")
