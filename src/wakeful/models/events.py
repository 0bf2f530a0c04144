"""Server-sent events, as bytes: whatever comes in any pieces leaves as the data of whole events."""

from wakeful.vocabulary.errors import Garbled

LONGEST_LINE = 8 * 1024 * 1024  # bytes; of an event too

_DATA = b"data:"


class EventReader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._held = bytearray()  # what belongs to an event that is not whole yet
        self._has_return = False  # the other half of a line end may come

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of every event that is whole now."""
        if self._has_return or b"\r" in chunk:
            chunk = self._with_plain_ends(chunk)
        # Looked at once, however it was cut: what is held has no end of an event in it.
        is_over = b"\n\n" in chunk or (chunk.startswith(b"\n") and self._held.endswith(b"\n"))
        if not is_over:
            self._held += chunk
            self._refuse_endless()
            return []
        whole = bytes(self._held) + chunk if self._held else chunk
        *events, rest = whole.split(b"\n\n")
        self._held = bytearray(rest)
        self._refuse_endless()
        return [data for event in events if (data := _data(event))]

    def end(self) -> list[bytes]:
        """Return the data of a last event that nobody has closed."""
        last = self.feed(b"\n\n")
        self._held = bytearray()
        return last

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if self._has_return:
            chunk = b"\r" + chunk
        self._has_return = chunk.endswith(b"\r")
        if self._has_return:
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _refuse_endless(self) -> None:
        if len(self._held) > LONGEST_LINE:
            raise Garbled(f"the answer has a line of more than {LONGEST_LINE} bytes")


def _data(event: bytes) -> bytes:
    """Return what an event says; comments and names are left out."""
    if event.startswith(_DATA) and b"\n" not in event:
        return event[5:].strip()
    lines = (line[5:].strip() for line in event.split(b"\n") if line.startswith(_DATA))
    return b"\n".join(lines)
