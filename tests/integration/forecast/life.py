"""A runtime on a manual clock whose models answer as a forecast assumes, and what came of it."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from tests.patience import patience
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.prices import Price, Rate
from wakeful.models.tariffs import Tariff
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.forecast import Forecast, What
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import Text, Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.tokens import tokens_of

TURN_S = 10.0
OUTPUT = 500
PRICE = Price(input=Rate(base=1.0), output=Rate(base=4.0))
PAID = Tariff(price=PRICE, max_output=8_192)
PATIENT = Limits(first_token_s=86_400, idle_s=86_400, answer_s=86_400, wall_s=86_400)

Seen = list[tuple[int, str, str]]  # when, in which session, what


class AssumedModel:
    """Takes as long, and reads and says as much, as is assumed of any model."""

    context_window = 10_000_000

    def __init__(self, tariff: Tariff = PAID) -> None:
        self.name = "assumed"
        self.tariffs = (tariff,)
        self.runtime: Runtime | None = None
        self.answers_at: list[int] = []
        self.bases: dict[str, tuple[float, int | None, int]] = {}
        # Of each conversation, how many messages were counted, and as how many tokens.
        self._known: dict[str, tuple[int, int]] = {}
        self._said: defaultdict[str, int] = defaultdict(int)  # added since there are bases

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        runtime = self.runtime
        assert runtime is not None
        ((key, kind, view, agent_id),) = await runtime.store.read(
            "SELECT session_key, kind, view, agent_id FROM turns WHERE id = :id", id=request.turn_id
        )
        agent = runtime._running.built.followers.ready_agents.get(agent_id)  # pyright: ignore[reportPrivateUsage]
        assert agent is not None
        source = Kind(kind).origin.value
        seconds, base, output = self.bases.get(source, (TURN_S, None, OUTPUT))
        output = min(output, request.max_tokens or output)
        asked = tokens_of(request.messages[-1])
        if view != "full":
            read = base or agent.fixed_tokens + sum(map(tokens_of, request.messages))
        elif base is not None:
            read = base + self._said[key]
            self._said[key] += 0 if source == "heartbeat" else output + asked
        else:
            count, tokens = self._known.get(key, (0, agent.fixed_tokens))
            read = tokens + sum(map(tokens_of, request.messages[count:]))
        await self._think(runtime.clock, seconds)
        if view == "full" and source != "heartbeat":  # of which nothing stays
            self._known[key] = len(request.messages) + 1, read + output
        price = self.tariffs[0].price
        usage = Usage(input=read, output=output)
        cost = None if price is None else price.cost(usage)
        text = "HEARTBEAT_OK" if source == "heartbeat" else "…"
        yield Reply(
            content=(Text(text=text),),
            usage=Usage(input=read, output=output, cost=cost),
            model=self.name,
        )

    async def _think(self, clock: object, seconds: float) -> None:
        assert isinstance(clock, ManualClock)
        until = clock.now() + round(seconds * 1000)
        self.answers_at.append(until)
        passed = asyncio.Event()
        clock.call_later(seconds, passed.set)
        await passed.wait()
        self.answers_at.remove(until)


class Life:
    """A runtime that is driven from instant to instant."""

    def __init__(
        self, agents: Sequence[Agent], settings: Settings, clock: ManualClock, model: AssumedModel
    ) -> None:
        self.clock = clock
        self.model = model
        self.runtime = Runtime(agents=agents, settings=settings, clock=clock)
        model.runtime = self.runtime

    async def begin(self) -> int:
        """Let pass what a start brings by itself; return the time by then."""
        await self.run_until(self.clock.now() + 60_000)
        return self.clock.now()

    async def run_until(self, until: int) -> None:
        """Let time pass up to an instant, halting at each at which something is due."""
        while True:
            await self.rest()
            following = await self._next()
            if following is None or following >= until:
                break
            self.clock.advance((following - self.clock.now()) / 1000)
        self.clock.advance((until - 1 - self.clock.now()) / 1000)

    async def rest(self) -> None:
        """Wait until nothing is due: there is no event for that."""
        async with asyncio.timeout(patience(20)):
            while await self._has_something_due():
                pass  # each look waits for the store

    async def _has_something_due(self) -> bool:
        now = self.clock.now()
        ((due, held),) = await self.runtime.store.read(
            "SELECT (SELECT COUNT(*) FROM timers WHERE due_at <= :now) + "
            "(SELECT COUNT(*) FROM lanes WHERE owner IS NULL AND ready_at <= :now), "
            "(SELECT COUNT(*) FROM lanes WHERE owner IS NOT NULL)",
            now=now,
        )
        return (
            due > 0
            or held != len(self.model.answers_at)
            or min(self.model.answers_at, default=now + 1) <= now
        )

    async def _next(self) -> int | None:
        rows = await self.runtime.store.read(
            "SELECT MIN(due_at) FROM timers UNION ALL SELECT MIN(ready_at) FROM lanes"
        )
        found = [*self.model.answers_at, *(row[0] for row in rows if row[0] is not None)]
        return min(found, default=None)


class Came(Record):
    """What came of a life since an instant, as its ledgers have it."""

    fires: dict[tuple[str, str], Seen]
    turns: Seen
    suppressed: Seen
    parked: Seen
    deferred: Seen
    calls: dict[tuple[str, str], tuple[int, int, int, int, int]]  # n, input, output, nano, unpriced


async def came(runtime: Runtime, since: int) -> Came:
    """Read the ledgers."""
    read = runtime.store.read
    fires: defaultdict[tuple[str, str], Seen] = defaultdict(list)
    for row in await read(
        "SELECT agent_id, kind, accepted_at, session_key, source FROM stimuli "
        "WHERE accepted_at >= :since ORDER BY id",
        since=since,
    ):
        source = _source(row[1], row[4])
        fires[row[0], source].append((row[2], row[3], source))
    events = await read(
        "SELECT events.at, events.session_key, events.kind, stimuli.kind, stimuli.source, "
        "events.data FROM events JOIN stimuli ON stimuli.id = events.stimulus_id "
        "WHERE events.at >= :since AND events.seq > :head AND events.kind IN "
        "('stimulus.accepted', 'stimulus.parked', 'stimulus.suppressed') ORDER BY events.seq",
        since=since,
        head=0,
    )
    told: defaultdict[str, Seen] = defaultdict(list)
    for at, key, what, kind, source, data in events:
        line = (at, key, _source(kind, source))
        if what == "stimulus.accepted":
            if '"outcome":"queued"' in data:
                told["deferred"].append(line)
        else:
            told[what.partition(".")[2]].append(line)
    for agent_id, at, key, name in await read(
        "SELECT agent_id, filed_at, session_key, job_name FROM automation_runs "
        "WHERE filed_at >= :since AND stimulus_id IS NULL ORDER BY filed_at, id",
        since=since,
    ):
        line = (at, key, f"cron:{name}")  # of which nothing was filed
        fires[agent_id, line[2]].append(line)
        told["suppressed"].append(line)
    turns = [
        (row[0], row[1], _source(row[2], row[3]))
        for row in await read(
            "SELECT opened_at, session_key, kind, source FROM turns WHERE opened_at >= :since "
            "ORDER BY opened_at, id",
            since=since,
        )
    ]
    return Came(
        fires={key: sorted(seen) for key, seen in fires.items()},
        turns=turns,
        suppressed=sorted(told["suppressed"]),
        parked=sorted(told["parked"]),
        deferred=sorted(told["deferred"]),
        calls=await _calls(runtime, since),
    )


async def _calls(
    runtime: Runtime, since: int
) -> dict[tuple[str, str], tuple[int, int, int, int, int]]:
    found: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for agent_id, kind, source, read, written, cost in await runtime.store.read(
        "SELECT turns.agent_id, turns.kind, turns.source, asks.input_tokens, asks.output_tokens, "
        "asks.cost FROM asks JOIN turns ON turns.id = asks.turn_id "
        "WHERE asks.state = 'answered' AND turns.opened_at >= :since",
        since=since,
    ):
        sums = found[agent_id, _source(kind, source)]
        sums["calls"] += 1
        sums["input"] += read
        sums["output"] += written
        sums["nano"] += cost or 0
        sums["unpriced"] += cost is None
    names = ("calls", "input", "output", "nano", "unpriced")
    return {key: tuple(sums[name] for name in names) for key, sums in found.items()}  # pyright: ignore[reportReturnType]


def foretold(forecast: Forecast) -> Came:
    """Return a forecast in the same words."""
    fires: defaultdict[tuple[str, str], Seen] = defaultdict(list)
    by_what: defaultdict[What, Seen] = defaultdict(list)
    for line in forecast.timeline:
        seen = (line.at, line.session_key, line.source)
        by_what[line.what].append(seen)
        if line.what in (What.FIRE, What.DIGEST):
            fires[line.session_key.split(":")[1], line.source].append(seen)
    assert {key: len(seen) for key, seen in fires.items()} == {
        (row.agent_id, row.source): row.fires for row in forecast.rows if row.fires
    }
    return Came(
        fires=dict(fires),
        turns=by_what[What.TURN],
        suppressed=sorted(by_what[What.SUPPRESSED]),
        parked=sorted(by_what[What.PARKED]),
        deferred=sorted(by_what[What.DEFERRED]),
        calls={
            (row.agent_id, row.source): (
                row.calls,
                row.input,
                row.output,
                round(row.money_p50 * 1e9),
                row.unpriced,
            )
            for row in forecast.rows
            if row.calls
        },
    )


def _source(kind: str, source: str) -> str:
    if kind == Kind.DIGEST:
        return "digest"
    return source if kind.startswith("automation") else Kind(kind).origin.value


def differences(foretold: Came, came: Came) -> list[str]:
    """Return what was foretold otherwise than it came, the first of each kind."""
    found: list[str] = []
    for name in Came.__struct_fields__:
        said: Any = getattr(foretold, name)
        was: Any = getattr(came, name)
        if isinstance(said, dict):
            ours, theirs = cast("dict[Any, Any]", said), cast("dict[Any, Any]", was)
            for key in sorted(ours.keys() | theirs.keys()):
                if ours.get(key) != theirs.get(key):
                    found.append(f"{name} {key}: {_first(ours.get(key), theirs.get(key))}")
        elif said != was:
            found.append(f"{name}: {_first(said, was)}")
    return found


def _first(said: Any, was: Any) -> str:
    if not isinstance(said, list) or not isinstance(was, list):
        return f"foretold {said}, came {was}"
    return _first_line(cast("Seen", said), cast("Seen", was))


def _first_line(said: Seen, was: Seen) -> str:
    for place, (one, other) in enumerate(zip(said, was, strict=False)):
        if one != other:
            return f"{len(said)} / {len(was)}, number {place}: foretold {one}, came {other}"
    return f"foretold {len(said)}, came {len(was)}: {(said + was)[min(len(said), len(was))]}"
