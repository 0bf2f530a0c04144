"""`status`, `sessions`, `agents`, `why`: looking, also while no server runs."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from wakeful.cli import agent_lines
from wakeful.cli.approvals import line_of as approval_line
from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.entries import said
from wakeful.cli.exits import Missing
from wakeful.cli.output import BOLD, DIM, counted, safe, safe_lines
from wakeful.cli.paging import After, Limit
from wakeful.cli.session_names import session_path
from wakeful.cli.times import money
from wakeful.operations import server_note

SessionName = Annotated[str, typer.Argument(help="For example main, or agent:main:main.")]
Transcript = Annotated[
    str | None,
    typer.Option("--transcript", metavar="ID", help="Another conversation, or a branch's leaf."),
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="Older ones: `next` of a page.")
]
Ids = Annotated[bool, typer.Option("--ids", help="Show the id of each entry.")]
Every = Annotated[bool, typer.Option("--all", help="Also what was said before each reset.")]
AgentId = Annotated[str, typer.Argument(help="For example main.")]
LAST = "last"
MOST_PARKED = 5  # stimuli that are named


def status(context: CliContext) -> None:
    """Show whether a server runs, what the agents do, what waits, and what wakes next."""
    server = server_note.find(context.home)
    reader = context.reader()
    found: list[dict[str, Any]] = reader.get("/api/agents")["items"]
    counts = reader.get("/api/counts")
    stimuli, unread = counts["stimuli"], counts["unread"]
    waiting = stimuli["pending"] + stimuli["parked"] + stimuli["held"]
    data = {
        "is_running": context.server() is not None,
        "url": context.url,
        "pid": None if server is None else server.pid,
        "home": str(context.home),
        "waiting": waiting,
        "unread": unread,
        "automations": counts["automations"],
        "agents": found,
    }
    if server is not None:
        since = context.how_long(server.started_at)
        head = f"running at {server.url} (process {server.pid}), started {since}"
    else:
        head = f"running at {context.url}" if context.url else f"no server runs in {context.home}"
    lines = [
        head,
        f"{waiting} waiting",
        *([f"{unread} unread; `wakeful activity` shows it"] if unread else ()),
        *_automation_lines(counts["automations"]),
        *(_parked_lines(reader.get) if stimuli["parked"] else ()),
        *context.out.table(agent_lines.HEAD, agent_lines.rows(context, found)),
        *agent_lines.rest_lines(context, found),
        *agent_lines.server_lines(found),
    ]
    context.out.data(data, lines)


def list_sessions(context: CliContext, limit: Limit = 50, after: After = None) -> None:
    """List the sessions, the one that was used last first."""
    page = context.reader().get("/api/sessions", limit=limit, order="used", after=after)
    rows = [
        [
            one["key"],
            context.how_long(one.get("last_activity_at")),
            one["entries"],
            one["unread"],
            one["label"] or one["display_name"] or "",
        ]
        for one in page["items"]
    ]
    lines = context.out.table(["session", "last words", "entries", "unread", "label"], rows)
    context.out.data(page, lines or ["no session yet; `wakeful chat` opens one"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")


def show_session(
    context: CliContext,
    session: SessionName,
    limit: Limit = 50,
    transcript: Transcript = None,
    before: Before = None,
    every: Every = False,
    ids: Ids = False,
) -> None:
    """Show the newest lines of a session's transcript, the oldest first."""
    reader, at = context.reader(), session_path(session)
    row = reader.get(at)
    if every:
        cards = _cards(reader.get, f"{at}/transcripts")[::-1]
        for card in cards:
            page = reader.get(f"{at}/entries", limit=limit, transcript=card["id"])
            card |= page
        lines = (line for card in cards for line in _conversation_lines(context, card, ids=ids))
        context.out.data({"session": row, "transcripts": cards}, lines)
        return
    page = reader.get(f"{at}/entries", limit=limit, transcript=transcript, before=before)
    lines = (line for entry in page["items"] for line in _entry_lines(context, entry, ids=ids))
    found = {"session": row, "entries": page["items"], "next": page["next"]}
    context.out.data(found, lines)
    if page["next"] is not None:
        context.out.note(f"older: --before {page['next']}")


def list_agents(context: CliContext) -> None:
    """List the agents and what they are doing."""
    page = context.reader().get("/api/agents")
    found: list[dict[str, Any]] = page["items"]
    table = context.out.table(agent_lines.HEAD, agent_lines.rows(context, found))
    context.out.data(page, [*table, *agent_lines.rest_lines(context, found)])


def show_agent(context: CliContext, agent: AgentId) -> None:
    """Show one agent: what it is, what it may use, when it wakes."""
    found: dict[str, Any] = context.reader().get(f"/api/agents/{segment(agent)}")
    context.out.data(found, agent_lines.all_lines(context, found))


def why(
    context: CliContext,
    what: Annotated[str, typer.Argument(help="A turn, a stimulus, or last.")] = LAST,
) -> None:
    """Tell what caused a turn, back to the first cause, and what it did."""
    reader = context.reader()
    turn_id = what
    if what == LAST:
        newest = reader.get("/api/stimuli", limit=50)["items"]
        turn_id = next((one["turn_id"] for one in newest if one.get("turn_id")), None)
        if turn_id is None:
            raise Missing("there was no turn yet")
    elif what.startswith("st_"):
        stimulus = reader.get(f"/api/stimuli/{segment(what)}")
        turn_id = stimulus.get("turn_id")
        if turn_id is None:
            text = stimulus.get("state_reason") or stimulus["state"]
            context.out.data(stimulus, [f"{what} led to no turn: {safe(text)}"])
            return
    answer = reader.get(f"/api/turns/{segment(turn_id)}/why")
    context.out.data(answer, _why_lines(context, answer))


def notices(context: CliContext, limit: Limit = 20, after: After = None) -> None:
    """List what the runtime wants people to know, the newest first."""
    page = context.reader().get("/api/notices", limit=limit, after=after)
    lines = [
        f"{context.out.styled(context.when(one['at']), DIM)} {safe(one['text'], 500)}"
        for one in page["items"]
    ]
    context.out.data(page, lines or ["nothing to tell"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")


def _automation_lines(count: int) -> Iterator[str]:
    """Tell of what agents do at certain times."""
    if count:
        yield f"{counted(count, 'automation')}; `wakeful cron list` shows when each is due"


def _parked_lines(get: Callable[..., Any]) -> Iterator[str]:
    """Tell of what waits for the end of a rest, or for money: where, and for which."""
    page = get("/api/stimuli", state="parked", limit=MOST_PARKED)
    for one in page["items"]:
        where, why = safe(one["session_key"]), safe(one["state_reason"] or "parked")
        yield f"  {one['origin']} in {where} waits, {why}: {safe(one['text'], 80)}"
    if page["next"] is not None:
        yield "  … and more"


def _cards(get: Callable[..., Any], path: str) -> list[dict[str, Any]]:
    """Return every conversation of a session, the newest first."""
    page = get(path)
    cards: list[dict[str, Any]] = page["items"]
    while page["next"] is not None:
        page = get(path, after=page["next"])
        cards += page["items"]
    return cards


def _conversation_lines(context: CliContext, card: dict[str, Any], *, ids: bool) -> Iterator[str]:
    head = f"{card['id']}, begun {context.when(card['started_at'])}"
    if not card["is_current"]:
        head += f", ended {context.when(card['ended_at'])} by {card['ended_by']}"
    yield context.out.styled(head, DIM)
    if card["next"] is not None:
        older = f"--transcript {card['id']} --before {card['next']}"
        yield context.out.styled(f"… and more before this: {older}", DIM)
    for entry in card["items"]:
        yield from _entry_lines(context, entry, ids=ids)


def _entry_lines(context: CliContext, entry: dict[str, Any], *, ids: bool) -> Iterator[str]:
    who, text = said(entry)
    at = f"{context.when(entry['at'])} {entry['id']}" if ids else context.when(entry["at"])
    yield f"{context.out.styled(safe(who), BOLD)} {context.out.styled(at, DIM)}"
    yield safe_lines(text)


def _why_lines(context: CliContext, answer: Any) -> Iterator[str]:
    links: list[dict[str, Any]] = answer.get("chain", [])
    for depth, link in enumerate(links):
        turn = link["turn"]
        if depth:
            yield "which was caused by"
        text = f"{turn['state']}, {counted(turn['steps'], 'step')}{_lives(turn, link)}"
        yield f"{turn['id']} in {turn['session_key']}: {text}"
        yield from _cause_lines(context, link)
        for ask in link.get("asks", []):
            if ask.get("state") == "abandoned":
                yield f"  question of step {ask['step']} was cut off, and asked again"
            elif ask.get("error"):
                when, text = context.when(ask["settled_at"]), safe(ask["error"], 300)
                yield f"  question of step {ask['step']} {ask['state']}, {when}: {text}"
        for call in link.get("tools", []):
            yield f"  tool {safe(call['name'], 80)}: {call['state']}"
        for one in link.get("approvals", []):
            yield f"  {approval_line(one)}"
        if turn.get("reply"):
            yield f"  reply: {safe(turn['reply'], 200)}"
    if answer.get("next"):
        yield f"… and more; ask for it with `wakeful why {answer['next']}`"


def _cause_lines(context: CliContext, link: dict[str, Any]) -> Iterator[str]:
    for stimulus in link["stimuli"]:
        yield (
            f"  {stimulus['origin']} of {safe(stimulus['source'], 80)}, "
            f"{context.when(stimulus['created_at'])}: {safe(stimulus['text'], 200)}"
        )
    if link.get("more_stimuli"):
        yield f"  … and {link['more_stimuli']} more"


def _lives(turn: dict[str, Any], link: dict[str, Any]) -> str:
    """Tell how often a turn was begun again, and what it cost."""
    attempts = max(turn.get("attempts") or 1, len(link.get("epochs") or ()))
    again = f", begun {attempts} times" if attempts > 1 else ""
    cost = turn.get("cost")
    return f"{again}, {money(cost)}" if cost else again
