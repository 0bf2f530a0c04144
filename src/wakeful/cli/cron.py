"""`cron add`, `list`, `show`, `edit`, `pause` and so on: automations, and what came of them."""

import inspect
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.cron_lines import job_lines, job_paragraph, run_lines, run_paragraph
from wakeful.cli.exits import CommandFailed, Missing
from wakeful.cli.output import safe
from wakeful.cli.paging import After, Limit
from wakeful.cli.session_names import session_named
from wakeful.cli.talk import given_text
from wakeful.cli.times import coming
from wakeful.vocabulary.automation import Overlap, PostMode, WakeMode
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import is_span, parse_span

AT = "/api/automations"


class JobState(StrEnum):
    ENABLED = "enabled"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILURES = "failures"


Name = Annotated[str, typer.Argument(help="What it is called.")]
Which = Annotated[str, typer.Argument(help="Its name or its id.")]
RunId = Annotated[str, typer.Argument(help="A run, or an automation: its last run.")]
InSession = Annotated[str | None, typer.Option("--session", "-s", help="Those of this session.")]
OfAgent = Annotated[str | None, typer.Option("--agent", "-a", help="Those of this agent.")]
InState = Annotated[JobState | None, typer.Option("--state", help="Those that are on, or off.")]

# What is said of an automation, when it is made and when it is changed: by name and type.
OPTIONS: dict[str, Any] = {
    "message": Annotated[
        str | None,
        typer.Option("--message", "-m", help="What the agent is told; - reads standard input."),
    ],
    "event": Annotated[
        str | None,
        typer.Option("--event", metavar="TEXT", help="Instead: what the next heartbeat hears of."),
    ],
    "every": Annotated[
        str | None, typer.Option("--every", metavar="SPAN", help="Such as 30m, 2h or 1 day.")
    ],
    "at": Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Once: 7:00, 2h (from now), 2026-01-01T07:00."),
    ],
    "cron": Annotated[
        str | None,
        typer.Option("--cron", metavar="EXPR", help="Five fields, such as '0 9 * * 1-5', or @daily."),
    ],
    "tz": Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="By whose clocks --cron goes; default: yours."),
    ],
    "session": Annotated[
        str | None, typer.Option("--session", "-s", help="The conversation in which it runs.")
    ],
    "isolated": Annotated[
        bool,
        typer.Option("--isolated", help="Instead: in a session of its own, anew each time."),
    ],
    "agent": Annotated[str | None, typer.Option("--agent", "-a", help="Which agent, isolated.")],
    "description": Annotated[str | None, typer.Option("--description", help="For people.")],
    "model": Annotated[str | None, typer.Option("--model", help="Instead of the session's.")],
    "thinking": Annotated[str | None, typer.Option("--thinking", help="off, low, medium, high.")],
    "post": Annotated[
        PostMode | None,
        typer.Option("--post", help="What main hears of an isolated run; default: summary."),
    ],
    "deliver_to": Annotated[
        str | None,
        typer.Option(
            "--deliver-to",
            metavar="DOOR:ADDRESS",
            help="Where the answer of an isolated run is sent, too.",
        ),
    ],
    "best_effort": Annotated[
        bool | None,
        typer.Option("--best-effort/--no-best-effort", help="Say nothing if it cannot be sent."),
    ],
    "wake": Annotated[
        WakeMode | None, typer.Option("--wake", help="When an event or a post is heard.")
    ],
    "missed": Annotated[
        str | None,
        typer.Option(
            "--missed",
            metavar="POLICY",
            help="What was missed: skip, once, all, or once if not older than a span (6h).",
        ),
    ],
    "overlap": Annotated[
        Overlap | None, typer.Option("--overlap", help="While a run waits or runs.")
    ],
    "timeout": Annotated[
        str | None, typer.Option("--timeout", metavar="SPAN", help="How long a run may take.")
    ],
    "delete_after_run": Annotated[
        bool | None,
        typer.Option("--delete-after-run/--keep", help="Remove it when it went well; with --at."),
    ],
    "respect_quiet_hours": Annotated[
        bool | None,
        typer.Option(
            "--respect-quiet-hours/--pass-quiet-hours", help="Wait for the end of quiet hours."
        ),
    ],
    "dry_run": Annotated[bool, typer.Option("--dry-run", help="Only say when it would be due.")],
}
PAUSED = Annotated[bool, typer.Option("--paused", help="Make it, but let nothing be due yet.")]
RENAMED = Annotated[str | None, typer.Option("--name", help="What it is called from now on.")]

_SAME_NAME = ("description", "wake", "overlap", "best_effort", "delete_after_run")
_FLAGS = ("isolated", "dry_run", "paused")


def _with(**more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb that takes `**said` the options of an automation, and some of its own."""

    def register(act: Callable[..., None]) -> Callable[..., None]:
        options = {**OPTIONS, **more}
        own = [
            one
            for one in inspect.signature(act).parameters.values()
            if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(
                name, keyword, default=False if name in _FLAGS else None, annotation=kind
            )
            for name, kind in options.items()
        ]
        vars(act)["__signature__"] = inspect.Signature([*own, *added])
        hints = {name: kind for name, kind in act.__annotations__.items() if name != "said"}
        act.__annotations__ = {**hints, **options}
        return act

    return register


@_with(paused=PAUSED)
def add(context: CliContext, name: Name, **said: Any) -> None:
    """Have an agent do something at certain times, and say when."""
    _check_whole(said)
    body = {"name": name, **_body(context, said, {})}
    if said["paused"]:
        body["enabled"] = False
    made: dict[str, Any] = context.needed_server().post(AT, body, **_dry(said))
    head = "would be made" if said["dry_run"] else "made"
    context.out.data(made, [f"{head}: {safe(made['name'])}", *job_lines(context, made)])


@_with(name=RENAMED)
def edit(context: CliContext, which: Which, **said: Any) -> None:
    """Change an automation; another time voids what was due, other changes move nothing."""
    server, path = context.needed_server(), f"{AT}/{segment(which)}"
    needs_old = said["message"] is None and (said["model"] or said["thinking"])
    old: dict[str, Any] = server.get(path)["payload"] if needs_old else {}
    body = _body(context, said, old) | ({"name": said["name"]} if said["name"] else {})
    edited = server.patch(path, body, **_dry(said))
    head = "would be changed" if said["dry_run"] else "changed"
    context.out.data(edited, [f"{head}: {safe(edited['name'])}", *job_lines(context, edited)])


def list_(
    context: CliContext,
    session: InSession = None,
    agent: OfAgent = None,
    state: InState = None,
    limit: Limit = 50,
    after: After = None,
) -> None:
    """List the automations, the newest first: when each is due, and how its last run ended."""
    page = context.reader().get(
        AT,
        session=None if session is None else session_named(session),
        agent=agent,
        state=None if state is None else state.value,
        limit=limit,
        after=after,
    )
    lines = [line for one in page["items"] for line in job_paragraph(context, one)]
    context.out.data(page, lines or ["no automation; `wakeful cron add` makes one"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")


def show(context: CliContext, which: Which) -> None:
    """Show an automation: what is done, when next, and what came of it."""
    found: dict[str, Any] = context.reader().get(f"{AT}/{segment(which)}")
    context.out.data(found, [safe(found["name"]), *job_lines(context, found)])


def pause(context: CliContext, which: Which) -> None:
    """Let nothing of an automation be due until it is resumed."""
    found = context.needed_server().post(f"{AT}/{segment(which)}/pause")
    hint = f"`wakeful cron resume {found['id']}` goes on"
    context.out.data(found, [f"{safe(found['name'])} is paused; {hint}"])


def resume(context: CliContext, which: Which) -> None:
    """Let an automation be due again, from now on."""
    found = context.needed_server().post(f"{AT}/{segment(which)}/resume")
    context.out.data(found, [f"{safe(found['name'])} goes on", *job_lines(context, found)])


def run(context: CliContext, which: Which) -> None:
    """Run an automation now; its schedule stays as it is."""
    asked = context.needed_server().post(f"{AT}/{segment(which)}/run")
    hint = f"`wakeful cron why {asked['run_id']}` tells what comes of it"
    context.out.data(asked, ["it runs when its session is idle", hint])


def runs(context: CliContext, which: Which, limit: Limit = 20, after: After = None) -> None:
    """List the runs of an automation, the newest first."""
    path = f"{AT}/{segment(which)}/runs"
    page = context.reader().get(path, limit=limit, after=after)
    lines = [line for one in page["items"] for line in run_paragraph(context, one)]
    context.out.data(page, lines or ["it has not run yet"])
    if page["next"] is not None:
        context.out.note(f"older: --after {page['next']}")


def why(context: CliContext, which: RunId) -> None:
    """Tell what came of a run: what the agent was told, and what went wrong."""
    reader, run_id = context.reader(), which
    if ":" not in which:
        newest = reader.get(f"{AT}/{segment(which)}/runs", limit=1)["items"]
        if not newest:
            raise Missing(f"{which} has not run yet")
        run_id = newest[0]["run_id"]
    found: dict[str, Any] = reader.get(f"/api/runs/{segment(run_id)}")
    context.out.data(found, run_lines(context, found))


def remove(context: CliContext, which: Which) -> None:
    """Remove an automation; what waits of it is cancelled, what runs goes on."""
    gone = context.needed_server().delete(f"{AT}/{segment(which)}")
    runs_stay = f"`wakeful cron runs {gone['id']}` still shows what it did"
    context.out.data(gone, [f"{safe(gone['name'])} is gone", runs_stay])


def _check_whole(said: dict[str, Any]) -> None:
    """Refuse a new automation that lacks a part, in the words of the command line."""
    if not any(said[name] is not None for name in ("every", "at", "cron")):
        raise InvalidInput("schedule", "say when: --every, --at or --cron")
    if said["session"] is None and not said["isolated"]:
        raise InvalidInput("session", "say where it runs: --session, such as main, or --isolated")
    if said["message"] is None and said["event"] is None:
        raise InvalidInput("message", "say what the agent is told: -m, or --event")
    if said["wake"] is not None and not said["isolated"] and said["event"] is None:
        raise InvalidInput("wake", "only with --event or --isolated; -m runs at its time anyway")


def _dry(said: dict[str, Any]) -> dict[str, str]:
    return {"dry_run": "true"} if said["dry_run"] else {}


def _body(context: CliContext, said: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of an automation, in the words of the API."""
    body: dict[str, Any] = {
        name: said[name] for name in (*_SAME_NAME, "respect_quiet_hours") if said[name] is not None
    }
    body |= dict(_where(said))
    body |= dict(_what(said, old))
    schedule = _schedule(context, said)
    if schedule is not None:
        body["schedule"] = schedule
    if said["missed"] is not None:
        body["missed"] = _missed(said["missed"])
    if said["timeout"] is not None:
        body["timeout_s"] = parse_span(said["timeout"], "timeout") // 1000
    return body


def _where(said: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if said["session"] is not None:
        yield "session_key", session_named(said["session"])
    if said["isolated"]:
        yield "isolated", True
    if said["agent"] is not None:
        yield "agent_id", said["agent"]
    if said["post"] is not None:
        yield "post_to_main", {"mode": said["post"].value}
    if said["deliver_to"] is not None:
        door, _, address = said["deliver_to"].partition(":")
        yield "deliver_to", {"door": door, "address": address}


def _what(said: dict[str, Any], old: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    message = None if said["message"] is None else given_text(said["message"])
    chosen = {name: said[name] for name in ("model", "thinking") if said[name] is not None}
    if said["event"] is not None:
        if message is not None or chosen:
            raise InvalidInput("event", "not with --message, --model or --thinking")
        yield "payload", {"kind": "system_event", "text": given_text(said["event"])}
    elif chosen:
        words = {**old, "kind": "agent_turn", **chosen}
        yield "payload", words if message is None else {**words, "message": message}
    elif message is not None:
        yield "message", message


def _schedule(context: CliContext, said: dict[str, Any]) -> dict[str, Any] | None:
    given = [name for name in ("every", "at", "cron") if said[name] is not None]
    if len(given) > 1:
        raise InvalidInput("schedule", "give one of --every, --at and --cron")
    if said["tz"] is not None and given != ["cron"]:
        raise InvalidInput("tz", "only with --cron")
    match given:
        case ["every"]:
            return {"kind": "every", "every_s": parse_span(said["every"], "every") // 1000}
        case ["at"]:
            return {"kind": "at", "at": _instant(context, said["at"])}
        case ["cron"]:
            zone = {} if said["tz"] is None else {"tz": said["tz"]}
            return {"kind": "cron", "expr": said["cron"], **zone}
        case _:
            return None


def _instant(context: CliContext, text: str) -> str:
    """Return an instant; one that is written is read by the server, on the user's clocks."""
    text = text.removeprefix("in ").removeprefix("+").strip()
    is_clock = text[1:2] == ":" or text[2:3] == ":"
    if is_span(text) or is_clock:
        return coming(text, "at", context.clock.now(), context.zone)
    return text


def _missed(text: str) -> Any:
    return {"within_s": parse_span(text, "missed") // 1000} if is_span(text) else text


File = Annotated[Path, typer.Argument(help="nanobot's `cron/jobs.json`.")]
Mapped = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="THEIRS=OURS", help="Which session stands for one of theirs."),
]


def import_(context: CliContext, file: File, map_: Mapped = None) -> None:
    """Take over the jobs of nanobot: all of them, or none if one is bad; again changes nothing."""
    body = {"jobs": _jobs_of(file), "map": dict(map(_pair, map_ or []))}
    done = context.needed_server().post(f"{AT}/import", body)
    lines = [_import_line(one) for one in done["items"]]
    context.out.data(done, lines or ["the file has no job"])
    if any(one["outcome"] == "bad" for one in done["items"]):
        raise CommandFailed("nothing was imported: mend what is bad, or take it out of the file")


def _jobs_of(file: Path) -> list[Any]:
    """Return the jobs of a file, or say what is wrong with it as a whole."""
    try:
        read = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidInput("file", f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput("file", f"{file} is no whole JSON: {error}") from None
    jobs = cast("dict[str, Any]", read).get("jobs") if isinstance(read, dict) else read
    if not isinstance(jobs, list):
        raise InvalidInput("file", f"{file} has no list of jobs")
    return cast("list[Any]", jobs)


def _pair(words: str) -> tuple[str, str]:
    theirs, is_there, ours = words.rpartition("=")
    if not is_there or not theirs or not ours:
        raise InvalidInput("map", f"must be THEIRS=OURS, not {words[:80]!r}")
    return theirs, session_named(ours)


def _import_line(one: dict[str, Any]) -> str:
    why = f": {safe(one['why'])}" if one["why"] else ""
    return f"{one['outcome']:<9} {safe(one['name'] or one['id'])}{why}"
