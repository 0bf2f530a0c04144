"""`tail`: what happens, as it happens."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from wakeful.cli.client import Frame, ServerClient
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Unreachable
from wakeful.cli.output import DIM, safe

AGAIN_AFTER_S = 1.0
LONGEST_VALUE = 60  # characters
LONGEST_ERROR = 400  # it is what somebody looks for at night

Topics = Annotated[str, typer.Option("--topics", help="Kinds, with commas: turn.*,stimulus.*")]
Since = Annotated[
    str | None, typer.Option("--since", help="A position: the last `id` that --json printed.")
]


def tail(desk: CliContext, topics: Topics = "*", since: Since = None) -> None:
    """Follow the bus: every event after `--since`, then live ones, also across a restart."""
    follower = _Follower(desk, topics, since)
    server = desk.needed_server()
    while True:
        try:
            follower.follow(server)
        except Unreachable:
            if not follower.has_begun:
                raise
            desk.pause(AGAIN_AFTER_S)
            server = desk.server() or server


class _Follower:
    """Remembers its position, so that nothing is missed or shown twice."""

    def __init__(self, desk: CliContext, topics: str, since: str | None) -> None:
        self._desk = desk
        self._topics = topics
        self._since = since
        self.has_begun = False

    def follow(self, server: ServerClient) -> None:
        """Show events until the stream ends."""
        with server.events("GET", "/api/events", topics=self._topics, since=self._since) as frames:
            if not self.has_begun:
                self._desk.out.complain(f"following {server.url}; Ctrl-C ends")
            self.has_begun = True
            for frame in frames:
                self._since = frame.id or self._since
                self._show(frame)

    def _show(self, frame: Frame) -> None:
        data = frame.data
        at = self._desk.when(data.get("at"))
        session = data.get("session_key") or ""
        more = brief(data, self._desk.when)
        line = f"{self._desk.out.styled(at, DIM)} {frame.kind} {session} {more}"
        self._desk.out.item({"id": frame.id, "event": frame.kind, **data}, safe(line))


def brief(data: dict[str, Any], when: Callable[[int], str]) -> str:
    """Return what an event says besides its time and place, on one line."""
    return " ".join(
        f"{name}={_short(name, value, when)}"
        for name, value in data.items()
        if name not in ("at", "session_key") and value not in (None, "", [])
    )


def _short(name: str, value: object, when: Callable[[int], str]) -> str:
    if name.endswith("_at") and isinstance(value, int):
        return when(value)
    return safe(str(value), LONGEST_ERROR if name == "error" else LONGEST_VALUE)
