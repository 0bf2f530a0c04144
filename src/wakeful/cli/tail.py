"""`tail`: what happens, as it happens."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from wakeful.cli.client import ServerClient, SseFrame
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Misused, Unreachable
from wakeful.cli.output import DIM, leave_with_the_reader, safe

AGAIN_AFTER_S = 1.0
LONGEST_VALUE = 60  # characters
LONGEST_WORDS = 200
UNTOLD = ("at", "session_key", "epoch", "live")
# The first words of all kinds of events.
KINDS = (
    *(
        "stimulus",
        "turn",
        "session",
        "delivery",
        "timer",
        "sleep",
        "heartbeat",
        "approval",
        "automation",
        "budget",
        "notice",
        "activity",
        "storm",
        "inbox",
        "loop",
        "halt",
    ),
    *("gap", "reset"),
)
LONGEST_ERROR = 400  # it is what somebody looks for at night

Topics = Annotated[str, typer.Option("--topics", help="Kinds, with commas: turn.*,stimulus.*")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="A position: the last `id` that --json printed; 0 is all there is."
    ),
]


def tail(context: CliContext, topics: Topics = "*", since: Since = None) -> None:
    """Follow the bus: every event after `--since`, then live ones, also across a restart."""
    if unknown := unknown_topics(topics):
        raise Misused(f"no event is called {unknown[0]!r}; kinds begin with {', '.join(KINDS)}")
    leave_with_the_reader()
    follower = _Follower(context, topics, since)
    server = context.needed_server()
    while True:
        try:
            follower.follow(server)
        except Unreachable:
            if not follower.has_begun:
                raise
            context.pause(AGAIN_AFTER_S)
            server = context.server() or server


class _Follower:
    """Remembers its position, so that nothing is missed or shown twice."""

    def __init__(self, context: CliContext, topics: str, since: str | None) -> None:
        self._context = context
        self._topics = topics
        self._since = since
        self._words: dict[str, str] = {}  # of each turn, since its last event of another kind
        self.has_begun = False

    def follow(self, server: ServerClient) -> None:
        """Show events until the stream ends."""
        with server.events("GET", "/api/events", topics=self._topics, since=self._since) as frames:
            if not self.has_begun:
                self._context.out.complain(f"following {server.url}; Ctrl-C ends")
            self.has_begun = True
            for frame in frames:
                self._since = frame.id or self._since
                self._show(frame)

    def _show(self, frame: SseFrame) -> None:
        if self._context.out.is_json:
            self._context.out.item(flat(frame), "")
            return
        if frame.kind == "reset":
            self._context.out.complain("that position is not known here; only what is new is shown")
            return
        turn = str(frame.data.get("turn_id") or "")
        if frame.kind == "turn.delta" and "restarted" not in frame.data:
            # A line for each word would hide all else: they are shown together.
            self._words[turn] = self._words.get(turn, "") + str(frame.data.get("text", ""))
            return
        if words := self._words.pop(turn, ""):
            self._line(frame.data, "turn.words", safe(words, LONGEST_WORDS))
        self._line(frame.data, frame.kind, brief(frame.data, self._context.when))

    def _line(self, data: dict[str, Any], kind: str, more: str) -> None:
        at = self._context.out.styled(self._context.when(data.get("at")), DIM)
        session = data.get("session_key") or ""
        self._context.out.line(f"{at} {kind:<18} {safe(f'{session} {more}')}".rstrip())


def flat(frame: SseFrame) -> dict[str, Any]:
    """Return an event as one object; its `id` is its position, from which one may go on.

    The id of what it tells of, a sleep or an item, is named after that: `sleep_id`.
    """
    what = frame.kind.partition(".")[0]
    data = {f"{what}_id" if name == "id" else name: value for name, value in frame.data.items()}
    return {"id": frame.id, "event": frame.kind, **data}


def unknown_topics(topics: str) -> list[str]:
    """Return the topics that no event has."""
    wanted = [topic.strip() for topic in topics.split(",")]
    return [topic for topic in wanted if topic.rstrip("*").partition(".")[0] not in ("", *KINDS)]


def brief(data: dict[str, Any], when: Callable[[int | str], str]) -> str:
    """Return what an event says besides its time and place, on one line."""
    return " ".join(
        f"{name}={_short(name, value, when)}"
        for name, value in data.items()
        if name not in UNTOLD and value not in (None, "", [])
    )


def _short(name: str, value: object, when: Callable[[int | str], str]) -> str:
    if name.endswith(("_at", "_until")) and isinstance(value, int | str):
        return when(value)
    return safe(str(value), LONGEST_ERROR if name == "error" else LONGEST_VALUE)
