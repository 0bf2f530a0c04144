"""Look at what a tool said beyond what its model was shown."""

import re

from wakeful.store.database import Store
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Trust

LARGEST_PAGE = 16_000  # characters

_ID = re.compile(
    r"(?P<turn_id>[A-Za-z0-9_]{1,64})\.(?P<step>0|[1-9]\d{0,5})\.(?P<position>0|[1-9]\d{0,5})"
)


class Output(Record):
    """A part of what a tool said."""

    id: str
    session_key: str
    tool: str
    text: str
    offset: int
    size: int  # characters of the whole
    is_external: bool  # its turn was shown text from outside, of which this may be a part

    @property
    def next(self) -> int | None:
        """Return where to read on, or None at the end."""
        end = self.offset + len(self.text)
        return end if self.text and end < self.size else None


class OutputView:
    """Reads outputs that were cut; those that were shown whole are in the transcript."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def session_of(self, output_id: str) -> str:
        """Return the session whose turn an output belongs to."""
        return (await self._turn_of(output_id))[0]

    async def _turn_of(self, output_id: str) -> tuple[str, str]:
        rows = await self._store.read(
            "SELECT session_key, trust FROM turns WHERE id = :id", id=_parts(output_id)["turn_id"]
        )
        if not rows:
            raise _unknown(output_id)
        return rows[0][0], rows[0][1]

    async def read(self, output_id: str, *, offset: int, limit: int) -> Output:
        """Return a page of an output."""
        if offset < 0:
            raise InvalidInput("offset", f"must not be negative, not {offset}")
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}, not {limit}")
        session_key, trust = await self._turn_of(output_id)
        parts = _parts(output_id)
        rows = await self._store.read(
            "SELECT name, SUBSTR(output, :first, :limit), LENGTH(output) FROM tool_calls "
            "WHERE turn_id = :turn_id AND step = :step AND position = :position "
            "AND output IS NOT NULL",
            turn_id=parts["turn_id"],
            step=int(parts["step"]),
            position=int(parts["position"]),
            first=min(offset, 2**31 - 2) + 1,
            limit=limit,
        )
        if not rows:
            raise _unknown(output_id)
        name, text, size = rows[0]
        return Output(
            id=output_id,
            session_key=session_key,
            tool=name,
            text=text,
            offset=offset,
            size=size,
            is_external=trust != Trust.OPERATOR,
        )


def _parts(output_id: str) -> dict[str, str]:
    found = _ID.fullmatch(output_id) if output_id.isascii() else None
    if found is None:
        raise _unknown(output_id)
    return found.groupdict()


def _unknown(output_id: str) -> NotFound:
    return NotFound("id", f"no output {output_id[:80]!r}")
