"""`activity`: what happened in every session, and that it was read."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from wakeful.cli.client import ServerClient
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Unreachable
from wakeful.cli.output import DIM, WIDTH, counted, leave_with_the_reader, safe
from wakeful.cli.paging import After, Limit
from wakeful.cli.times import moment, money
from wakeful.vocabulary.errors import InvalidInput

LEAST_WORDS = 24  # of them for what happened
AGAIN_AFTER_S = 1.0
# Whatever adds a row to the feed.
TOPICS = "turn.finished,notice.added,sleep.*,session.deleted"
MOST_NEW = 100  # rows that are read at once when something happened

Action = Annotated[str, typer.Argument(help="seen: note that you have read it; without it, show.")]
OfOrigin = Annotated[str | None, typer.Option("--origin", help="Such as user, webhook, tick.")]
OfAgent = Annotated[str | None, typer.Option("--agent", help="What one agent did.")]
Follow = Annotated[bool, typer.Option("--follow", help="Go on with what happens.")]


def activity(
    context: CliContext,
    action: Action = "",
    origin: OfOrigin = None,
    agent: OfAgent = None,
    after: After = None,
    limit: Limit = 20,
    follow: Follow = False,
) -> None:
    """Show what happened in every session, the newest first, and what of it nobody has read."""
    wanted: dict[str, object] = {"origin": origin, "agent": agent}
    if action == "seen":
        _see(context, agent)
    elif action:
        raise InvalidInput("action", f"must be nothing or seen, not {action[:40]!r}")
    elif follow:
        _Following(context, wanted, limit).run()
    else:
        page = context.reader().get("/api/activity", limit=limit, after=after, **wanted)
        lines = table(context, page["items"])
        context.out.data(page, lines or ["nothing happened yet"])
        if page["next"] is not None:
            context.out.note(f"older: --after {page['next']}")


def table(context: CliContext, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return rows of the feed as lines that 80 columns hold; * is unread."""
    head = ["", "when", "agent", "origin", "state", "cost"]
    cells = [
        [
            "*" if row["is_unread"] else "",
            context.how_long(row["at"]),
            safe(row["agent_id"] or "–", 16),
            row["origin"],
            row["state"],
            "" if row["cost"] is None else money(row["cost"]),
        ]
        for row in rows
    ]
    taken = sum(max(map(len, column)) + 2 for column in zip(head, *cells, strict=True))
    room = max(WIDTH - taken, LEAST_WORDS)
    full = [[*line, happened(row, room)] for line, row in zip(cells, rows, strict=True)]
    return context.out.table([*head, "what"], full)


def happened(row: dict[str, Any], limit: int) -> str:
    """Return what happened, on one line: what it was about, and what came of it."""
    words = [row["trigger"] or "", row["error"] or row["reply"] or ""]
    return safe(" → ".join(filter(None, words)), limit)


class _Following:
    """Shows each row once, the oldest first, also across a restart of the server."""

    def __init__(self, context: CliContext, wanted: dict[str, object], limit: int) -> None:
        self._context = context
        self._wanted = wanted
        self._limit = limit
        self._since: str | None = None
        self._newest: tuple[datetime, str] | None = None

    def run(self) -> None:
        """Go on for ever."""
        leave_with_the_reader()
        server = self._context.needed_server()
        while True:
            try:
                self._follow(server)
            except Unreachable:
                if self._since is None:
                    raise
                self._context.pause(AGAIN_AFTER_S)
                server = self._context.server() or server

    def _follow(self, server: ServerClient) -> None:
        if self._since is None:
            self._since = server.get("/api/counts")["cursor"]
        with server.events("GET", "/api/events", topics=TOPICS, since=self._since) as frames:
            self._show(server)
            for frame in frames:
                self._since = frame.id or self._since
                self._show(server)

    def _show(self, server: ServerClient) -> None:
        for row in reversed(list(self._fresh(server))):
            at = self._context.out.styled(self._context.when(row["at"]), DIM)
            about = f"{row['agent_id'] or '–'} {row['origin']} {row['state']}"
            self._context.out.item(row, f"{at} {safe(about)}: {happened(row, 200)}".rstrip(": "))
            self._newest = _place(row)

    def _fresh(self, server: ServerClient) -> Iterator[dict[str, Any]]:
        """Yield the rows that were not shown yet, the newest first."""
        after: str | None = None
        is_first = self._newest is None
        while True:
            limit = self._limit if is_first else MOST_NEW
            page = server.get("/api/activity", limit=limit, after=after, **self._wanted)
            for row in page["items"]:
                if self._newest is not None and _place(row) <= self._newest:
                    return
                yield row
            after = page["next"]
            if after is None or is_first:
                return


def _place(row: dict[str, Any]) -> tuple[datetime, str]:
    return moment(row["at"]), row["id"]


def _see(context: CliContext, agent: str | None) -> None:
    server = context.needed_server()
    newest = server.get("/api/activity", limit=1, agent=agent)["items"]
    if not newest:
        context.out.data({"unread": 0}, ["nothing happened yet"])
        return
    body = {"until": newest[0]["at"], **({} if agent is None else {"agent": agent})}
    left = server.post("/api/activity/seen", body)
    context.out.data(left, [f"read; {counted(left['unread'], 'thing')} left"])
