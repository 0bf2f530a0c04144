"""`forecast`: what the schedule alone will do, as a picture and a table."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.output import BOLD, DIM, counted, safe
from wakeful.cli.times import moment, money, shown
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import is_span, parse_span

DAY_MS = 86_400_000
LINES = 20_000  # of the timeline, which the picture is drawn from
CELLS = 60  # of the picture
NAME = 12  # columns of an agent's name
MOST_MARKS = 10
HEAD = (
    *("agent", "source", "fires", "turns", "supp", "park", "wait", "coll"),
    *("tokens", "p50", "p90"),
)
WIDTHS = (9, 12, 5, 5, 4, 4, 4, 4, 6, 8, 8)
# What one cell shows; several causes in it are a star.
TURNS = {"tick": "t", "heartbeat": "h", "wake": "w", "digest": "d"}
CRON, OTHER, SEVERAL, PUT_OFF, NOTHING = "c", "o", "*", "-", "·"
LEGEND = "t tick  h heartbeat  w wake  c cron  d digest  o other  * several  - put off"

Span = Annotated[str, typer.Argument(metavar="[DAYS]", help="How far to look, from 1d to 31d.")]
Agent = Annotated[str, typer.Option("--agent", help="Of one agent alone.")]


def forecast(context: CliContext, span: Span = "7d", agent: Agent = "") -> None:
    """Show what will wake the agents, and what that will cost; nothing is written."""
    query: dict[str, Any] = {"days": days_in(span), "limit": LINES}
    if agent:
        query["agent"] = agent
    found: dict[str, Any] = context.reader().get("/api/forecast", **query)
    context.out.data(found, _lines(context, found))


def days_in(span: str) -> int:
    """Return how many days a span has: 7d, or 7."""
    if span.isascii() and span.isdecimal():
        return int(span[:6])
    length = parse_span(span, "days") if is_span(span) else 0
    if length <= 0 or length % DAY_MS:
        raise InvalidInput("days", f"must be whole days such as 7d, not {span[:40]!r}")
    return length // DAY_MS


def _lines(context: CliContext, found: Mapping[str, Any]) -> Iterator[str]:
    zone, style = context.zone, context.out.styled
    first, last = shown(found["from"], zone), shown(found["until"], zone)
    yield style(f"from {first} to {last}", BOLD)
    if not found["rows"]:
        yield "nothing is due"
        return
    yield ""
    yield from picture(found, lambda at: moment(at).astimezone(zone))
    if found["next"] is not None:
        yield style(f"(drawn from the first {len(found['timeline'])} lines)", DIM)
    marks = list(_marks(found, lambda at: shown(at, zone)))
    yield from ("", *marks[:MOST_MARKS]) if marks else ()
    if len(marks) > MOST_MARKS:
        yield style(f"and {len(marks) - MOST_MARKS} more such days", DIM)
    yield ""
    yield style(_aligned(HEAD), BOLD)
    yield from map(_aligned, _table(found["rows"]))
    yield from _reasons(found["rows"])
    yield ""
    yield from _assumed(found["assumptions"])


def picture(found: Mapping[str, Any], local: Callable[[str], datetime]) -> Iterator[str]:
    """Draw one row per agent, from now on to the end, below the days."""
    begin, end = moment(found["from"]).timestamp(), moment(found["until"]).timestamp()
    seconds = max(1.0, (end - begin) / CELLS)

    def cell(at: str) -> int:
        return min(CELLS - 1, max(0, int((moment(at).timestamp() - begin) / seconds)))

    cells: defaultdict[str, dict[int, str]] = defaultdict(dict)
    days: dict[str, int] = {}
    for line in found["timeline"]:
        place = cell(line["at"])
        days.setdefault(f"{local(line['at']):%a %d}", place)
        known = cells[_agent_of(line["session_key"])]
        known[place] = _drawn(known.get(place, NOTHING), line)
    yield f"{'':{NAME}} {_axis(days)}".rstrip()
    for agent_id in sorted({*cells, *(row["agent_id"] for row in found["rows"])}):
        row = "".join(cells[agent_id].get(place, NOTHING) for place in range(CELLS))
        yield f"{_short(agent_id, NAME):{NAME}} {row}"
    yield LEGEND


def _axis(days: Mapping[str, int]) -> str:
    """Write the days above the cells in which they begin, as far as there is room."""
    axis = ""
    order = sorted(days.items(), key=lambda day: day[1])
    if len(order) > 1 and order[1][1] <= len(order[0][0]):
        del order[0]  # what is left of today is too short for its name
    for name, place in order:
        if place >= len(axis) + bool(axis) and place + len(name) <= CELLS:
            axis = f"{axis:{place}}{name}"
    return axis


def _drawn(was: str, line: Mapping[str, Any]) -> str:
    if line["what"] == "turn":
        source = line["source"]
        sign = CRON if source.startswith("cron:") else TURNS.get(source, OTHER)
        return sign if was in (NOTHING, PUT_OFF, sign) else SEVERAL
    if line["what"] in ("suppressed", "parked") and was == NOTHING:
        return PUT_OFF
    return was


def _marks(found: Mapping[str, Any], written: Callable[[str], str]) -> Iterator[str]:
    """Tell when agents have nothing left to spend, once for each day."""
    marked: set[tuple[str, str]] = set()
    for line in found["timeline"]:
        at = written(line["at"])
        key = _agent_of(line["session_key"]), at[:10]
        if line.get("reason") == "budget" and key not in marked:
            marked.add(key)
            yield f"{at}  {_short(key[0], NAME)}: a {safe(line['source'], 20)} is put off (budget)"


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[str]]:
    total: Counter[str] = Counter()
    for row in rows:
        numbers = {
            "fires": row["fires"],
            "turns": row["turns"],
            "supp": sum(row["suppressed"].values()),
            "park": row["parked"],
            "wait": row["deferred"],
            "coll": row["collisions"],
            "tokens": row["input"] + row["output"],
            "p50": row["money_p50"],
            "p90": row["money_p90"],
        }
        total.update(numbers)
        yield _row(row["agent_id"], row["source"], numbers)
    yield _row("all", "", total)


def _row(agent_id: str, source: str, numbers: Mapping[str, float]) -> Sequence[str]:
    counts = [str(numbers[name]) for name in ("fires", "turns", "supp", "park", "wait", "coll")]
    tokens = _thousands(int(numbers["tokens"]))
    return (agent_id, source, *counts, tokens, _dollars(numbers["p50"]), _dollars(numbers["p90"]))


def _reasons(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say why wakes are suppressed, and which calls have no price."""
    reasons: Counter[str] = Counter()
    for row in rows:
        reasons.update(row["suppressed"])
    if reasons:
        named = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        yield f"suppressed: {safe(named, 68)}"
    unpriced = sum(row["unpriced"] for row in rows)
    if unpriced:
        yield f"nobody knows the price of {counted(unpriced, 'call')}: `models` takes it"


def _assumed(assumptions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say what the numbers rest on."""
    measured = sum(one["basis"] == "history" for one in assumptions)
    yield f"turns are taken to be like those of 30 days ({measured} of {len(assumptions)} sources),"
    yield "or to last 10 s and to say 500 tokens; no tick sleeps, nobody writes, nothing"
    yield "fails: what people, models, failures and clocks change is not in it"


def _aligned(cells: Sequence[str]) -> str:
    parts = [
        f"{_short(cell, width):{width}}" if number < 2 else f"{cell:>{width}}"
        for number, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return " ".join(parts).rstrip()


def _short(text: str, width: int) -> str:
    text = safe(text)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _thousands(count: int) -> str:
    for unit, size in (("g", 10**9), ("m", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def _dollars(cost: float) -> str:
    return money(cost) if cost < 100 else f"${cost:.0f}"


def _agent_of(session_key: str) -> str:
    """Return the second word of a key: whose session it is."""
    return session_key.split(":", 2)[1] if ":" in session_key else session_key
