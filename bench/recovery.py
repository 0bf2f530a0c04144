"""Recovery: a process was killed; a fresh one starts in its home and runs its first turn."""

import asyncio
from itertools import count, cycle, repeat
from pathlib import Path
from statistics import median

from bench import fresh
from bench.figures import Figure
from bench.ledger import MODEL_SESSION, Ledger, opened, prepare

SESSIONS = 10_000
TURNS_EACH = 10
EVENTS_EACH = 48
ROWS = 1_000_000
OPEN_LANES = 64
ROUNDS = 5
GOAL_S = 2


def measure(folder: Path) -> list[Figure]:
    small, big = folder / "small", folder / "big"
    prepare(small)
    fill(big)
    empty: list[float] = []
    after_kill: list[float] = []
    all_owned: list[float] = []
    for _ in range(ROUNDS):
        empty.append(fresh.start(small).first_turn_s)
        fresh.leave(big, OPEN_LANES)
        after_kill.append(fresh.start(big).first_turn_s)
        own_every_lane(big)
        all_owned.append(fresh.start(big).first_turn_s)
    return [
        Figure(
            name=name,
            value=median(values),
            unit="s",
            floor=median(empty),
            floor_is="a start in an empty home",
            goal=GOAL_S,
        )
        for name, values in (("recovery", after_kill), ("recovery.all_lanes", all_owned))
    ]


def load(folder: Path) -> None:
    fill(folder / "big")
    own_every_lane(folder / "big")
    asyncio.run(fresh.start_here(folder / "big"))


def fill(home: Path) -> None:
    """Give a home ten thousand sessions with their past."""
    prepare(home)
    with opened(home) as ledger:
        _add_sessions(ledger)
        _add_turns(ledger)
        _add_events(ledger)
        tables = ("lanes", "sessions", "stimuli", "turns", "asks", "entries", "events")
        rows = sum(ledger.count(table) for table in tables)
    if rows < ROWS:
        raise RuntimeError(f"the ledger has {rows} rows, not {ROWS}")


def own_every_lane(home: Path) -> None:
    """Leave every lane as a process would that ran all of them when it was killed."""
    with opened(home) as ledger:
        ledger.run("UPDATE lanes SET owner = 'node_gone'")


def _add_sessions(ledger: Ledger) -> None:
    keys = [_key(number) for number in range(SESSIONS)]
    is_model = f"session_key = '{MODEL_SESSION}'"
    ledger.copy("lanes", SESSIONS, is_model, session_key=keys)
    branches = [f"tr_{number:08d}" for number in range(SESSIONS)]
    ledger.copy(
        "sessions",
        SESSIONS,
        f"key = '{MODEL_SESSION}'",
        key=keys,
        transcript_id=branches,
        branch=branches,
        leaf_id=(f"en_0{n:011d}" for n in range(2 * TURNS_EACH - 1, 2**40, 2 * TURNS_EACH)),
        leaf_depth=repeat(2 * TURNS_EACH - 1),
    )


def _add_turns(ledger: Ledger) -> None:
    turns = SESSIONS * TURNS_EACH
    keys = [_key(number // TURNS_EACH) for number in range(turns)]
    turn_ids = [f"tn_0{number:011d}" for number in range(turns)]
    ledger.copy(
        "stimuli",
        turns,
        id=(f"st_0{number:011d}" for number in range(turns)),
        session_key=keys,
        seq=cycle(range(1, TURNS_EACH + 1)),
        turn_id=turn_ids,
    )
    ledger.copy("turns", turns, id=turn_ids, session_key=keys)
    ledger.copy("asks", turns, turn_id=turn_ids)
    branches = [f"tr_{number // (2 * TURNS_EACH):08d}" for number in range(2 * turns)]
    bodies = [row[0] for row in ledger.run("SELECT body FROM entries ORDER BY depth")]
    ledger.copy(
        "entries",
        2 * turns,
        id=(f"en_0{number:011d}" for number in count()),
        transcript_id=branches,
        branch=branches,
        depth=cycle(range(2 * TURNS_EACH)),
        turn_id=(turn_id for turn_id in turn_ids for _ in range(2)),
        stimulus_id=repeat(None),
        body=cycle(bodies),
    )


def _add_events(ledger: Ledger) -> None:
    events = SESSIONS * EVENTS_EACH
    ((last,),) = ledger.run("SELECT seq FROM bus_head")
    ledger.copy(
        "events",
        events,
        seq=count(last + 1),
        session_key=(_key(number // EVENTS_EACH) for number in count()),
    )
    ledger.run("UPDATE bus_head SET seq = seq + :events", events=events)


def _key(number: int) -> str:
    return f"agent:main:copy:{number:05d}"
