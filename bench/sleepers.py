"""Sessions that sleep: as many as wanted, made by the functions of the ledgers."""

from collections.abc import Sequence

import msgspec

from wakeful.broker import lane_rows
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Session
from wakeful.vocabulary.session_key import canonical
from wakeful.vocabulary.stimulus import OPERATOR, Trust

STEP = 1000  # sessions that one write makes


async def put_to_sleep(store: Store, names: Sequence[str], wake_at: int) -> None:
    """Make sessions of these names that sleep until an instant."""
    keys = [canonical(name) for name in names]
    for start in range(0, len(keys), STEP):
        part = keys[start : start + STEP]
        await store.transact(lambda tx, part=part: _write(tx, part, wake_at))


def _write(tx: Tx, keys: Sequence[str], wake_at: int) -> None:
    lane_rows.add_missing(tx, keys)
    sessions.add_missing(tx, [_session(key, tx.now) for key in keys])
    sleeps.enter(tx, *(_sleep(key, tx.now, wake_at) for key in keys))
    timers.put(tx, *(_timer(key, wake_at) for key in keys))


def _session(key: str, now: int) -> Session:
    return Session(
        key=key,
        agent_id="main",
        transcript_id=f"tr_{key}",
        branch=f"tr_{key}",
        created_at=now,
        started_at=now,
        owner=OPERATOR,
    )


def _sleep(key: str, now: int, wake_at: int) -> Sleep:
    return Sleep(
        owner=key,
        id=f"sl_{key}",
        agent_id="main",
        session_key=key,
        policy=SleepPolicy.WAKE,
        reason="nothing to do until the shops open",
        trust=Trust.OPERATOR,
        cause_id=None,
        requested_ms=max(0, wake_at - now),
        final_ms=max(0, wake_at - now),
        created_at=now,
        wake_at=wake_at,
    )


def _timer(key: str, wake_at: int) -> Timer:
    payload = msgspec.json.encode({"sleep_id": f"sl_{key}"}).decode()
    return Timer(id=f"sleep {key}", due_at=wake_at, kind="sleep", target=key, payload=payload)
