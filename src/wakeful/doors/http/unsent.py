"""Answers that nobody takes: they wait only so long, and only so much of them at once."""

from typing import Protocol

from wakeful.vocabulary.clock import Alarm, Clock

LOOK_S = 10.0
# Long, since what a slow reader takes is only seen when the system has room for more of it.
TAKE_S = 120.0  # whoever takes nothing for so long is cut off
MOST_UNSENT = 128 * 1024 * 1024  # bytes, for all connections together


class Sending(Protocol):
    """The sending half of a connection."""

    @property
    def taken(self) -> int:
        """Bytes that the other side has taken so far."""
        ...

    def get_write_buffer_size(self) -> int: ...

    def abort(self) -> None: ...


class Unsent:
    """Knows the connections that owe their readers something, and cuts off who does not read.

    When there is too much of it, those make room that have taken nothing for the longest time: a
    client that asks for much and reads nothing must not have the memory of the whole process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # By when something of it was last taken, the longest ago first: how much, and when.
        self._owing: dict[Sending, tuple[int, float]] = {}
        self._alarm: Alarm | None = None

    def note(self, line: Sending) -> None:
        """Note that something was written which the other side has not taken yet."""
        if line not in self._owing:
            self._owing[line] = (line.taken, self._clock.monotonic())
        self._make_room()
        if self._alarm is None and self._owing:
            self._alarm = self._clock.call_later(LOOK_S, self._look)

    def forget(self, line: Sending) -> None:
        """Forget a connection that is gone."""
        self._owing.pop(line, None)

    def _make_room(self) -> None:
        left = sum(line.get_write_buffer_size() for line in self._owing)
        if left <= MOST_UNSENT:
            return
        self._see_who_reads()
        for line in tuple(self._owing):
            if left <= MOST_UNSENT:
                return
            left -= line.get_write_buffer_size()
            self._cut_off(line)

    def _look(self) -> None:
        """Cut off who has taken nothing for too long; look again as long as somebody owes."""
        self._alarm = None
        self._see_who_reads()
        late = self._clock.monotonic() - TAKE_S
        for line in [line for line, (_, since) in self._owing.items() if since <= late]:
            self._cut_off(line)
        if self._owing:
            self._alarm = self._clock.call_later(LOOK_S, self._look)

    def _see_who_reads(self) -> None:
        now = self._clock.monotonic()
        for line, (taken, _) in tuple(self._owing.items()):
            if line.taken > taken:
                del self._owing[line]
                if line.get_write_buffer_size():
                    self._owing[line] = (line.taken, now)

    def _cut_off(self, line: Sending) -> None:
        self.forget(line)
        line.abort()
