"""History: everything the checker may look at, read once, indexed by whom it concerns."""

import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from wakeful.approvals.approvals import APPROVALS, Approval
from wakeful.broker.lane_rows import LANES, Lane
from wakeful.broker.stimuli import STIMULI
from wakeful.gate.budget_rows import BUDGETS, BudgetRow
from wakeful.outbox.outbox import DELIVERIES, Delivery
from wakeful.sleeps.marks import SLEEP_MARKS, SleepMark
from wakeful.sleeps.sleeps import SLEEPS, Sleep
from wakeful.store.database import Row
from wakeful.store.opening import open_store
from wakeful.store.rows import RowTable
from wakeful.testing import ledger
from wakeful.testing.ledger import Line
from wakeful.transcript.branches import BRANCHES, Branch
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.resets import PAST, PastTranscript
from wakeful.transcript.sessions import SESSIONS, Session
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CALLS, RecordedCall
from wakeful.turns.turns import TURNS, Turn
from wakeful.views.activity import NEWEST, TURNS_OF_ALL
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Stimulus

Key = TypeVar("Key")
Item = TypeVar("Item")


class AskedRow(Record):
    """One row of the table of asks."""

    turn_id: str
    step: int
    attempt: int
    epoch: int
    state: str
    leaf_hash: str
    asked_at: int
    settled_at: int | None
    usage: str | None
    error: str | None
    purpose: Purpose
    reserved: int
    max_tokens: int | None
    day: int
    scopes: str
    cost: int | None
    is_estimate: bool
    input_tokens: int
    output_tokens: int


class EventRow(Record):
    """One row of the table of events."""

    seq: int
    kind: str
    session_key: str | None
    turn_id: str | None
    stimulus_id: str | None
    at: int
    data: dict[str, Any]


class HeadRow(Record):
    """The bus's single row."""

    epoch: str
    seq: int
    pruned_through: int


_ASKS = RowTable("asks", AskedRow)
_EVENTS = RowTable("events", EventRow)
_HEAD = RowTable("bus_head", HeadRow)


class Database(Record):
    """The rows of every table that the invariants speak of."""

    stimuli: dict[str, Stimulus]
    turns: dict[str, Turn]
    lanes: dict[str, Lane]
    sessions: dict[str, Session]
    past: list[PastTranscript]
    branches: dict[str, Branch]
    entries: list[Entry]
    asks: list[AskedRow]
    calls: list[RecordedCall]
    deliveries: dict[str, Delivery]
    budgets: dict[tuple[str, str], BudgetRow]
    events: list[EventRow]
    head: HeadRow
    timers: dict[str, int]  # when each is due
    sleeps: dict[str, Sleep]  # by owner
    approvals: dict[str, Approval]
    sleep_marks: list[SleepMark]
    feed: list[str]  # the turns that a reader of the whole feed is shown
    seen: dict[str, int]  # up to when people have read, by agent
    halts: list[str]
    inbox_counts: dict[str, int]  # what waits in the inbox, as it was counted
    problems: list[str]  # what the database itself says is wrong with it


class Ledgers(Record):
    """What everybody outside wrote down."""

    client: list[Line]
    model: list[Line]
    tools: list[Line]
    receiver: list[Line]
    watchers: dict[str, list[Line]]
    samples: list[Line]
    lives: list[Line]
    faults: list[Line]
    neighbours: list[Line] = []  # owners at the HTTP door: what they made, asked and heard
    log: str = ""


class History:
    """One run of one or more lives, as everybody remembers it."""

    def __init__(self, database: Database, ledgers: Ledgers) -> None:
        self.db = database
        self.ledgers = ledgers
        self.events_of_turn = grouped(database.events, lambda event: event.turn_id)
        self.events_of_stimulus = grouped(database.events, lambda event: event.stimulus_id)
        self.events_of_session = grouped(database.events, lambda event: event.session_key)
        self.entries_of_branch = grouped(database.entries, lambda entry: entry.branch)
        self._paths: dict[str, list[Entry]] = {}
        self.entries_of_turn = grouped(database.entries, lambda entry: entry.turn_id)
        self.asks_of_turn = grouped(database.asks, lambda ask: ask.turn_id)
        self.calls_of_turn = grouped(database.calls, lambda call: call.turn_id)
        # A model that stands in for another is asked within the same question.
        self.asked = [
            line
            for line in ledgers.model
            if line["what"] == "asked" and not line.get("stands_in", False)
        ]
        self.asked_of_turn = grouped(self.asked, lambda line: str(line["turn"]))
        self.begun = [line for line in ledgers.tools if line["what"] == "begun"]
        self.begun_of_turn = grouped(self.begun, lambda line: str(line["turn"]))
        self.discarded = _discarded(database.events)
        self.compacted = {ask.turn_id for ask in database.asks if ask.purpose is not Purpose.REPLY}
        self.interrupting = _interrupting(ledgers.client)

    @property
    def accepted(self) -> list[Line]:
        """The answers in which the client was told that a stimulus is on disk."""
        return [
            line for line in self.ledgers.client if line["what"] == "answer" and _is_receipt(line)
        ]

    @property
    def agents(self) -> list[str]:
        """The agents of the last life."""
        starts = [line for line in self.ledgers.lives if line["what"] == "start"]
        return starts[-1].get("agents", []) if starts else []

    @property
    def asking(self) -> set[str]:
        """The tools whose calls had to be approved in every life."""
        starts = [line for line in self.ledgers.lives if line["what"] == "start"]
        named: list[set[str]] = [set(line.get("asks", ())) for line in starts]
        return named[0].intersection(*named[1:]) if named else set()

    def is_stormy(self, first: float, last: float) -> bool:
        """Tell whether the store itself made everybody wait at a time between two."""
        return any(
            line["what"] == "weather" and line["t"] <= last and first <= line["t"] + line["seconds"]
            for line in self.ledgers.faults
        )

    @property
    def crashes(self) -> int:
        """How many lives ended without a word."""
        started = sum(line["what"] == "start" for line in self.ledgers.lives)
        return started - sum(line["what"] == "stop" for line in self.ledgers.lives)

    def path(self, branch: str) -> list[Entry]:
        """Return the entries from the root to the end of a branch, over every fork."""
        if branch not in self._paths:
            own, row = self.entries_of_branch.get(branch, []), self.db.branches.get(branch)
            shared = [] if row is None or row.parent is None else self.path(row.parent)
            self._paths[branch] = shared[: row.fork_depth + 1] + own if row else own
        return self._paths[branch]

    def resumes(self, turn_id: str) -> int:
        return sum(event.kind == "turn.resumed" for event in self.events_of_turn[turn_id])

    def story(self, *subjects: str | None) -> "SubjectStory":
        """Return what everybody remembers of turns or stimuli, told only if somebody listens."""
        return SubjectStory(self, {subject for subject in subjects if subject is not None})


class SubjectStory:
    """The lines of all ledgers that concern a few subjects, in order of time."""

    def __init__(self, history: History, subjects: set[str]) -> None:
        self._history = history
        self._subjects = subjects

    def __iter__(self) -> Iterator[str]:
        lines: list[tuple[int, str]] = [
            (event.at, f"#{event.seq} {event.kind} {event.data}")
            for event in self._history.db.events
            if event.turn_id in self._subjects or event.stimulus_id in self._subjects
        ]
        ledgers = self._history.ledgers
        for name in ("client", "model", "tools", "receiver"):
            for line in getattr(ledgers, name):
                text = _described(line)
                if any(subject in text for subject in self._subjects):
                    lines.append((line["at"], f"{name} {text}"))
        for at, text in sorted(lines, key=lambda item: item[0]):
            yield f"{at} {text}"


def _discarded(events: Sequence[EventRow]) -> set[str]:
    """Return the turns whose entries may have gone with their session."""
    deleted = {event.session_key: event.seq for event in events if event.kind == "session.deleted"}
    return {
        event.turn_id
        for event in events
        if event.kind == "turn.started"
        and event.turn_id is not None
        and event.seq < deleted.get(event.session_key, 0)
    }


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> defaultdict[Key, list[Item]]:
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def key_of(call: RecordedCall) -> str:
    """Return the idempotency key of a call: the same over every attempt."""
    return f"{call.turn_id}:{call.step}:{call.call_id}"


def read_ledgers(folder: Path) -> Ledgers:
    names = ("client", "model", "tools", "receiver", "samples", "lives", "faults", "neighbours")
    read = {name: ledger.read(folder / f"{name}.jsonl") for name in names}
    log = folder / "stderr.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    watchers = {path.stem: ledger.read(path) for path in sorted(folder.glob("watcher-*.jsonl"))}
    return Ledgers(**read, watchers=watchers, log=text)


def read_sqlite(path: Path) -> Database:
    """Read a copy of a SQLite database and its write-ahead log; the original stays as it is."""
    with tempfile.TemporaryDirectory(prefix="wakeful-checker-") as folder:
        for suffix in ("", "-wal"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                shutil.copy(part, Path(folder, path.name + suffix))
        connection = sqlite3.connect(Path(folder, path.name))
        try:
            rows = {name: connection.execute(sql).fetchall() for name, sql in _SELECTS.items()}
            rows["feed"] = connection.execute(TURNS_OF_ALL, _WHOLE_FEED).fetchall()
            return _database(rows, _sqlite_problems(connection))
        finally:
            connection.close()


async def read_postgres(url: str) -> Database:
    """Read a PostgreSQL database at rest."""
    store = await open_store(url, clock=SystemClock())
    try:
        rows = {name: await store.read(sql) for name, sql in _SELECTS.items()}
        rows["feed"] = await store.read(TURNS_OF_ALL, **_WHOLE_FEED)
    finally:
        await store.close()
    return _database(rows, [])


_WHOLE_FEED: dict[str, Any] = {"at": NEWEST.at, "id": NEWEST.id, "limit": 2**31 - 1}
_SELECTS = {
    "stimuli": STIMULI.select("ORDER BY session_key, seq"),
    "turns": TURNS.select("ORDER BY opened_at, id"),
    "lanes": LANES.select(""),
    "sessions": SESSIONS.select(""),
    "past": PAST.select(""),
    "branches": BRANCHES.select(""),
    "entries": ENTRIES.select("ORDER BY branch, depth"),
    "asks": _ASKS.select("ORDER BY turn_id, step, attempt"),
    "calls": CALLS.select("ORDER BY turn_id, step, position"),
    "deliveries": DELIVERIES.select("ORDER BY id"),
    "budgets": BUDGETS.select(""),
    "events": _EVENTS.select("ORDER BY seq"),
    "head": _HEAD.select(""),
    "timers": "SELECT id, due_at FROM timers",
    "sleeps": SLEEPS.select(""),
    "approvals": APPROVALS.select("ORDER BY number"),
    "sleep_marks": SLEEP_MARKS.select(""),
    "seen": "SELECT agent_id, seen_at FROM activity_seen",
    "halts": "SELECT scope FROM halts",
    "inbox_counts": "SELECT source, waiting FROM inbox_counts",
}


def _database(rows: Mapping[str, Sequence[Row]], problems: list[str]) -> Database:
    return Database(
        stimuli={row.id: row for row in map(STIMULI.read, rows["stimuli"])},
        turns={row.id: row for row in map(TURNS.read, rows["turns"])},
        lanes={row.session_key: row for row in map(LANES.read, rows["lanes"])},
        sessions={row.key: row for row in map(SESSIONS.read, rows["sessions"])},
        past=[PAST.read(row) for row in rows["past"]],
        branches={row.id: row for row in map(BRANCHES.read, rows["branches"])},
        entries=[ENTRIES.read(row) for row in rows["entries"]],
        asks=[_ASKS.read(row) for row in rows["asks"]],
        calls=[CALLS.read(row) for row in rows["calls"]],
        deliveries={row.id: row for row in map(DELIVERIES.read, rows["deliveries"])},
        budgets={(row.agent_id, row.scope): row for row in map(BUDGETS.read, rows["budgets"])},
        events=[_EVENTS.read(row) for row in rows["events"]],
        head=_HEAD.read(rows["head"][0]),
        timers={row[0]: row[1] for row in rows["timers"]},
        sleeps={row.owner: row for row in map(SLEEPS.read, rows["sleeps"])},
        approvals={row.id: row for row in map(APPROVALS.read, rows["approvals"])},
        sleep_marks=[SLEEP_MARKS.read(row) for row in rows["sleep_marks"]],
        feed=[row[0] for row in rows["feed"]],
        seen={row[0]: row[1] for row in rows["seen"]},
        halts=[row[0] for row in rows["halts"]],
        inbox_counts={row[0]: row[1] for row in rows["inbox_counts"] if row[1]},
        problems=problems,
    )


def _sqlite_problems(connection: sqlite3.Connection) -> list[str]:
    checks = connection.execute("PRAGMA integrity_check").fetchall()
    foreign = connection.execute("PRAGMA foreign_key_check").fetchall()
    broken = [str(row[0]) for row in checks if row[0] != "ok"]
    return broken + [f"foreign key: {row!r}" for row in foreign]


def _is_receipt(line: Line) -> bool:
    return line["do"] == "send" and "ok" in line


def _described(line: Line) -> str:
    hidden = ("at", "t", "what", "digest")
    return f"{line['what']} " + str({key: line[key] for key in line if key not in hidden})


def _interrupting(lines: list[Line]) -> set[str]:
    """Return the sessions in which a newcomer may have gone ahead by their own settings.

    A fork takes over the settings of the session that it comes from.
    """
    found: set[str] = set()
    for line in lines:
        if line["do"] == "queue" and line["queue"].get("mode") == Mode.INTERRUPT:
            found.add(str(line["session"]))
        elif line["do"] == "fork" and line["session"] in found and line["to"] is not None:
            found.add(str(line["to"]))
    return found
