"""What a turn is taken to be: as turns of its source were, or else an estimate."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import median_low

from wakeful.forecast.sources import source_of
from wakeful.store.database import Row, Store
from wakeful.vocabulary.forecast import DAY_MS, Basis
from wakeful.vocabulary.kinds import Kind, kinds_where
from wakeful.vocabulary.record import Record

HISTORY_DAYS = 30
LEAST_TURNS = 5  # in those days; fewer say nothing
USUAL_TURN_MS = 10_000
USUAL_OUTPUT = 500  # tokens
HIGH = 0.9  # the part of turns that took no more than the higher assumption
MOST_READ = 20_000  # turns; the newest ones

# Only turns that nobody asked for: what people want differs from one message to the next.
_KINDS = kinds_where(lambda rule: rule.is_inner)
_TURNS = (
    "SELECT agent_id, kind, source, used_ms, input_tokens, output_tokens FROM turns "
    "WHERE id > :after AND state = 'done' AND input_tokens > 0 AND kind IN :kinds "
    "ORDER BY id DESC LIMIT :limit"
)


class Usual(Record):
    """What one turn of a source is taken to be."""

    turn_ms: int = USUAL_TURN_MS
    input: int | None = None  # tokens; None: what its session holds by then
    output: int = USUAL_OUTPUT
    input_p90: int | None = None
    output_p90: int = USUAL_OUTPUT
    basis: Basis = Basis.ESTIMATE


ESTIMATE = Usual()


class Assumptions:
    """What turns are taken to be, by agent and source."""

    def __init__(self, known: Mapping[tuple[str, str], Usual]) -> None:
        self._known = known

    def of(self, agent_id: str, source: str) -> Usual:
        return self._known.get((agent_id, source), ESTIMATE)


async def read(store: Store, now: int) -> Assumptions:
    """Learn from the turns of the last days."""
    rows = await store.read(
        _TURNS,
        after=f"tn_{max(0, now - HISTORY_DAYS * DAY_MS):012x}",
        kinds=_KINDS,
        limit=MOST_READ,
    )
    return Assumptions(learnt(rows))


def learnt(rows: Sequence[Row]) -> dict[tuple[str, str], Usual]:
    """Return what turns of each source are like, where there were enough."""
    found: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row[0], source_of(Kind(row[1]).origin, row[2])].append(row)
    return {key: _usual(turns) for key, turns in found.items() if len(turns) >= LEAST_TURNS}


def _usual(turns: Sequence[Row]) -> Usual:
    lengths, inputs, outputs = ([row[place] for row in turns] for place in (3, 4, 5))
    return Usual(
        turn_ms=median_low(lengths),
        input=median_low(inputs),
        output=median_low(outputs),
        input_p90=high(inputs),
        output_p90=high(outputs),
        basis=Basis.HISTORY,
    )


def high(values: Collection[int]) -> int:
    """Return what nine of ten do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(HIGH * len(ordered)))]
