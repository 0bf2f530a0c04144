"""Check a history against every invariant, and say how much was looked at."""

from collections.abc import Callable, Collection
from pathlib import Path

from wakeful.testing.checker import (
    deliveries,
    events,
    money,
    sleeps,
    steps,
    stimuli,
    store,
    timers,
    transcripts,
    trust,
    turns,
)
from wakeful.testing.checker.finding import InvariantFinding, Violation
from wakeful.testing.checker.history import History, read_ledgers, read_postgres, read_sqlite
from wakeful.vocabulary.errors import StoreDamaged, UnreadableRow
from wakeful.vocabulary.record import Record

Invariant = Callable[[History, InvariantFinding], None]

INVARIANTS: dict[str, Invariant] = {
    "I1": stimuli.one_end,
    "I2": stimuli.durable_ack,
    "I3": turns.every_turn_ends,
    "I4": turns.one_owner,
    "I5": turns.serial_session,
    "I6": steps.one_answer_per_step,
    "I7": steps.tools_run_once,
    "I8": steps.calls_are_paired,
    "I9": events.seen_without_gap,
    "I10": events.events_match_state,
    "I11": deliveries.delivered_in_order,
    "I12": timers.timers_fire_once,
    "I13": money.usage_is_whole,
    "I14": money.chains_are_bounded,
    "I15": money.budgets_hold,
    "I16": transcripts.transcripts_hold,
    "I17": transcripts.one_view,
    "I19": sleeps.nobody_oversleeps,
    "I20": store.store_is_sound,
    "I21": trust.access_holds,
    "I22": turns.stop_is_obeyed,
    "I23": stimuli.in_order,
    "I24": store.bounds_hold,
    "I25": events.counters_are_honest,
}
# Where there may be nothing to look at, unless the test says that there must be.
MAY_BE_EMPTY = frozenset({"I7", "I11", "I12", "I13", "I14", "I15", "I19", "I21", "I22"})


class Report(Record):
    """What came of a check."""

    facts: dict[str, int]
    broken: dict[str, int]
    violations: tuple[Violation, ...]
    crashes: int
    accepted: int
    stimuli: int
    turns: int

    @property
    def caught(self) -> frozenset[str]:
        """The names of the invariants that were broken."""
        return frozenset(name for name, count in self.broken.items() if count)

    def table(self) -> str:
        """Tell what is broken first: whoever prints this may cut its end off."""
        rows: list[str] = []
        for violation in self.violations:
            rows += [f"{violation.invariant} BROKEN: {violation.message}"]
            rows += [f"    {line}" for line in violation.story]
            rows += [""]
        rows += [f"{'':<5}{'facts':>9}{'broken':>9}  {'promise'}"]
        for name in self.facts:
            promise = (INVARIANTS[name].__doc__ or "").partition(": ")[2]
            rows.append(f"{name:<5}{self.facts[name]:>9}{self.broken[name]:>9}  {promise}")
        return "\n".join(rows)


def check(history: History, *, must: Collection[str] = ()) -> Report:
    """Look at a history at rest; an invariant that found nothing to look at is broken, too."""
    findings: list[InvariantFinding] = []
    for name, invariant in INVARIANTS.items():
        finding = InvariantFinding(name)
        invariant(history, finding)
        if finding.facts == 0 and (name in must or name not in MAY_BE_EMPTY):
            finding.report("there was nothing to look at")
        findings.append(finding)
    return Report(
        facts={finding.invariant: finding.facts for finding in findings},
        broken={finding.invariant: finding.broken for finding in findings},
        violations=tuple(violation for finding in findings for violation in finding.violations),
        crashes=history.crashes,
        accepted=len(history.accepted),
        stimuli=len(history.db.stimuli),
        turns=len(history.db.turns),
    )


async def check_place(ledgers: Path, database: Path | str, *, must: Collection[str] = ()) -> Report:
    """Check the ledgers in a folder against the database at a path or at a URL."""
    try:
        rows = (
            read_sqlite(database) if isinstance(database, Path) else await read_postgres(database)
        )
    except (StoreDamaged, UnreadableRow) as error:
        return _unreadable(error)
    return check(History(rows, read_ledgers(ledgers)), must=must)


def _unreadable(error: StoreDamaged | UnreadableRow) -> Report:
    return Report(
        facts={"I20": 1},
        broken={"I20": 1},
        violations=(Violation(invariant="I20", message=str(error)),),
        crashes=0,
        accepted=0,
        stimuli=0,
        turns=0,
    )
