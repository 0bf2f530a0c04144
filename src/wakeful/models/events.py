"""Server-sent events, as bytes: whatever comes in any pieces leaves as the data of whole events."""

from wakeful.vocabulary.errors import Garbled

LONGEST_LINE = 8 * 1024 * 1024  # bytes; of an event too

_DATA = b"data:"


class EventReader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._held: list[bytes] = []  # what belongs to an event that is not whole yet
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of every event that is whole now."""
        self._held.append(chunk)
        self._size += len(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._refuse_endless()
            return []
        whole = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        tail = b""
        if b"\r" in whole:
            if whole.endswith(b"\r"):  # the other half of a line end may come
                whole, tail = whole[:-1], b"\r"
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *events, rest = whole.split(b"\n\n")
        rest += tail
        self._held, self._size = [rest] if rest else [], len(rest)
        self._refuse_endless()
        return [data for event in events if (data := _data(event))]

    def end(self) -> list[bytes]:
        """Return the data of a last event that nobody has closed."""
        last = self.feed(b"\n\n")
        self._held, self._size = [], 0
        return last

    def _refuse_endless(self) -> None:
        if self._size > LONGEST_LINE:
            raise Garbled(f"the answer has a line of more than {LONGEST_LINE} bytes")


def _data(event: bytes) -> bytes:
    """Return what an event says; comments and names are left out."""
    if event.startswith(_DATA) and b"\n" not in event:
        return event[5:].strip()
    lines = (line[5:].strip() for line in event.split(b"\n") if line.startswith(_DATA))
    return b"\n".join(lines)
