"""A file from elsewhere, understood line by line; what cannot be kept is told."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from wakeful.transcript.jsonl import images, writing
from wakeful.transcript.jsonl.claude_code import KEPT_AS, ClaudeCode, is_theirs
from wakeful.transcript.jsonl.numbers import Numbers
from wakeful.transcript.jsonl.plain_chat import LEFT_AS, PlainChat, is_plain
from wakeful.transcript.jsonl.reading import (
    LEAF,
    LONGEST_LABEL,
    Object,
    OutOfBounds,
    Unknown,
    Unreadable,
    check_bounds,
    opaque,
    parse,
    read,
    time_of,
    unread_blocks,
)
from wakeful.transcript.jsonl.references import references, renamed
from wakeful.transcript.jsonl.splitting import LONGEST_LINE, FileLine
from wakeful.transcript.jsonl.tree import Tree
from wakeful.transcript.jsonl.writing import VERSION, Links
from wakeful.vocabulary.entry import (
    Body,
    CompactionBody,
    EntryKind,
    NoteBody,
    attachments_of,
    encode_body,
)
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import ReadyAttachment
from wakeful.vocabulary.text import one_line

MOST_TROUBLES = 100  # that are told one by one; the others are counted
LEFT_OUT = "left out"
KEPT = "kept, and read by nobody"

_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")
_SHORT = re.compile(r"[0-9a-f]{8}")
_ROOT = 0xFFFFFFFF  # stands for "no line" where a number is kept
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999

_encode = msgspec.json.Encoder().encode


class Trouble(Record):
    """What was wrong with a line, and what was done about it."""

    line: int
    what: str
    done: str


class Found(Record):
    """A line that becomes an entry."""

    number: int
    id: str
    parent: int | None
    parent_id: str | None
    kind: EntryKind
    at: int
    body: str
    name: str | None  # where it is not the end of the id
    line: str | None  # where it is not what we would write
    brought: tuple[ReadyAttachment, ...] = ()  # images, and what else is attached


def prefix_of(transcript_id: str) -> str:
    """Return what the ids of a transcript's imported entries begin with.

    Then come eight digits of the line's number, so that the ids sort as the file did, and eight
    of its name.
    """
    digits = transcript_id.rpartition("_")[2]
    return f"en_{digits[:12]}{digits[-8:]}"


class File:
    """What is known of a file up to the line that was read last; a few bytes per line."""

    def __init__(self, transcript_id: str) -> None:
        self.header: str | None = None
        self.header_id = ""
        self.label: str | None = None
        self.tree = Tree()
        self.compactions = array("I")
        self.troubles: list[Trouble] = []
        self.trouble_count = 0
        self.unknown_count = 0  # lines that are kept, and that nobody here reads
        self.understood = 0  # entries of kinds that are known here
        self.unread_blocks = 0  # of what was said, that no model reads
        self._translation: ClaudeCode | PlainChat | None = None
        self._line = 0
        self._prefix = prefix_of(transcript_id)
        self._version: int | None = None
        self._numbers = Numbers()
        self._tails = array("I")
        self._long_names: dict[int, str] = {}
        self._places = array("I")  # by position in a file of version 1
        self._last: int | None = None
        self._last_at = 0

    def understand(self, pieces: Sequence[FileLine], *, is_end: bool = False) -> list[Found]:
        """Return the entries of these lines; the last of a file may still wait for its end."""
        found = [entry for piece in pieces for entry in self._understood(piece)]
        if is_end and self._translation is not None:
            last = FileLine(self._line, b"", has_end=True, is_too_long=False)
            found += self._translated(last, self._translation.end())
        return found

    def id_of(self, number: int) -> str:
        return f"{self._prefix}{number:08x}{self._tails[number]:08x}"

    def _understood(self, piece: FileLine) -> list[Found]:
        self._line = piece.number
        if piece.is_too_long:
            self._tell(piece, f"longer than {LONGEST_LINE} bytes")
            return []
        try:
            line = parse(piece.text)
        except Unreadable as why:
            self._tell(piece, str(why) if piece.has_end else "cut off")
            return []
        if self._version is None and self._translation is None:
            self._translation = _translation_for(line)
        if self._translation is not None:
            return self._translated(piece, self._translation.take(line))
        found = self._of_line(piece, line)
        return [] if found is None else [found]

    def _translated(self, piece: FileLine, lines: Sequence[Object]) -> list[Found]:
        """Return the entries of lines that say what a line of another format does."""
        found: list[Found] = []
        for line in lines:
            text = _encode(line)
            same = FileLine(piece.number, text, has_end=True, is_too_long=False)
            try:
                entry = self._of_line(same, parse(text))
            except Unreadable as why:  # it lies one level deeper now
                self._tell(piece, str(why))
                continue
            found += [] if entry is None else [entry]
        return found

    def _of_line(self, piece: FileLine, line: Object) -> Found | None:
        if line.get("type") == "session":
            self._read_header(piece, line)
            return None
        if self._version is None:
            self._tell(piece, "no header before it", "a header was made")
            self._version = VERSION if isinstance(line.get("id"), str) else 1
        return self._entry(piece, line)

    def _read_header(self, piece: FileLine, line: Object) -> None:
        if self._version is not None:
            self._tell(piece, "a second header, or one that comes late")
            return
        version, name = line.get("version", 1), line.get("id")
        is_known = isinstance(version, int) and 1 <= version <= VERSION
        self._version = version if is_known else VERSION
        if not is_known:
            self._tell(piece, f"version {str(version)[:20]} is unknown", f"read as {VERSION}")
        self._places.append(_ROOT)
        self._last_at = time_of(line) or 0
        if not isinstance(name, str):
            self._tell(piece, "a header without an id", "a header was made")
            return
        self.header_id = name
        is_current = version == VERSION
        text = piece.text if is_current else _encode({**line, "version": VERSION})
        self.header = text.decode()

    def _entry(self, piece: FileLine, line: Object) -> Found | None:
        is_changed = self._version == 1 and self._upgrade(line)
        name = line.get("id")
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            self._place(None)
            self._tell(piece, "an entry without a usable id")
            return None
        if self._numbers.get(name) is not None:
            self._place(None)
            self._tell(piece, f"the id {name!r} is there already")
            return None
        parent, is_moved = self._parent(piece, line)
        try:
            kind, body = read(line)
            check_bounds(kind, body)
            self.understood += line.get("customType") not in (KEPT_AS, LEFT_AS)
            self.unread_blocks += unread_blocks(line)
        except Unknown as why:
            self.unknown_count += 1
            if isinstance(why, OutOfBounds):
                self._tell(piece, str(why), KEPT)
            kind, body = opaque(line)
        except Unreadable as why:
            # The lines below it become children of its parent.
            self._numbers.add(name, _ROOT if parent is None else parent)
            self._place(None)
            self._tell(piece, str(why))
            return None
        if is_moved:
            line["parentId"] = None if parent is None else self._name_of(parent)
            if line.get("type") == LEAF:
                line["targetId"] = line["parentId"]
        text = _encode(line) if is_changed or is_moved or self._renames_role(line) else piece.text
        return self._found(name, parent, line, (kind, body), text)

    def _found(
        self, name: str, parent: int | None, line: Object, said: tuple[EntryKind, Body], text: bytes
    ) -> Found:
        kind, body = said
        number = self.tree.add(parent)
        self._numbers.add(name, number)
        is_short = _SHORT.fullmatch(name) is not None
        self._tails.append(int(name, 16) if is_short else 0)
        if not is_short:
            self._long_names[number] = name
        self._place(number)
        self._last, at = number, time_of(line)
        self._last_at = at = self._last_at if at is None else min(max(at, 0), _LATEST_MS)
        first_kept = name
        if isinstance(body, CompactionBody):
            body, first_kept = self._kept(number, line, body)
            self.compactions.append(number)
        if isinstance(body, NoteBody) and line.get("type") == "session_info":
            self.label = one_line(body.text, LONGEST_LABEL) or None
        parent_name = None if parent is None else self._name_of(parent)
        links = Links(name=name, parent=parent_name, first_kept=first_kept)
        brought = images.found_in(line) if attachments_of(body) else []
        written = writing.line(kind, at, body, links, {one.hash: one.data for one in brought})
        return Found(
            number=number,
            id=self.id_of(number),
            parent=parent,
            parent_id=None if parent is None else self.id_of(parent),
            kind=kind,
            at=at,
            body=encode_body(renamed(kind, body, self._our_ids(kind, body))).decode(),
            name=None if is_short else name,
            line=None if written == text else images.folded(text.decode(), brought),
            brought=tuple(brought),
        )

    def _upgrade(self, line: Object) -> bool:
        """Give a line of version 1 what later ones have; such a file has no branches."""
        line["id"] = f"{len(self._places):08x}"
        line["parentId"] = None if self._last is None else self._name_of(self._last)
        place = line.pop("firstKeptEntryIndex", None)
        if isinstance(place, int) and 0 <= place < len(self._places):
            number = self._places[place]
            line["firstKeptEntryId"] = "" if number == _ROOT else self._name_of(number)
        return True

    def _renames_role(self, line: Object) -> bool:
        """Call a message by its name of version 3; return whether it had another."""
        message: Any = line.get("message")
        if self._version == VERSION or not isinstance(message, dict):
            return False
        if message.get("role") != "hookMessage":  # pyright: ignore[reportUnknownMemberType]
            return False
        message["role"] = "custom"
        return True

    def _parent(self, piece: FileLine, line: Object) -> tuple[int | None, bool]:
        """Return the number of the line above, and whether it is another than the line says."""
        is_leaf = line.get("type") == LEAF
        # A leaf marker counts for the line it names, not for the line it was written below.
        name = line.get("targetId" if is_leaf else "parentId")
        if name is None:
            return None, False
        number = self._numbers.get(name) if isinstance(name, str) else None
        if is_leaf and number is not None and number != _ROOT:
            return number, False
        if number is None and is_leaf:
            what = f"it says to stand at {str(name)[:64]!r}, which is not above it"
            self._tell(piece, what, "stands at the line before it")
            return self._last, True
        if number is None:
            above = "made the first" if self._last is None else "put below the line before it"
            self._tell(piece, f"its parent {str(name)[:64]!r} is not above it", above)
            return self._last, True
        if number == _ROOT:
            return None, True
        return number, self._name_of(number) != name

    def _kept(self, number: int, line: Object, body: CompactionBody) -> tuple[CompactionBody, str]:
        """Return a compaction with the depth of the first line it keeps, and that line's name.

        Of the compactions that it names, only those above it count: whoever undoes it goes there.
        """
        name = line.get("firstKeptEntryId")
        kept = self._numbers.get(name) if isinstance(name, str) else None
        if kept is None or kept == _ROOT or not self.tree.is_above(kept, number):
            kept = number  # as elsewhere: nothing before it is kept
        body = msgspec.structs.replace(
            body,
            first_kept_depth=self.tree.depth_of[kept],
            previous=body.previous if self._is_folded(body.previous, number) else None,
            undoes=body.undoes if self._is_folded(body.undoes, number) else None,
        )
        return body, self._name_of(kept)

    def _is_folded(self, name: str | None, line: int) -> bool:
        """Tell whether a name is that of a compaction above a line."""
        number = None if name is None else self._numbers.get(name)
        if number is None or number == _ROOT:
            return False
        place = bisect_left(self.compactions, number)
        is_one = place < len(self.compactions) and self.compactions[place] == number
        return is_one and self.tree.is_above(number, line)

    def _our_ids(self, kind: EntryKind, body: Body) -> dict[str, str]:
        known = {name: self._numbers.get(name) for name in references(kind, body)}
        return {
            name: self.id_of(number)
            for name, number in known.items()
            if number is not None and number != _ROOT
        }

    def _name_of(self, number: int) -> str:
        return self._long_names.get(number) or f"{self._tails[number]:08x}"

    def _place(self, number: int | None) -> None:
        if self._version == 1:
            self._places.append(_ROOT if number is None else number)

    def _tell(self, piece: FileLine, what: str, done: str = LEFT_OUT) -> None:
        self.trouble_count += 1
        if len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(Trouble(line=piece.number, what=what, done=done))


def _translation_for(line: Object) -> ClaudeCode | PlainChat | None:
    """Return who understands a file that begins with this line; None: it is of our format."""
    if is_theirs(line):
        return ClaudeCode()
    return PlainChat() if is_plain(line) else None
