"""Approval rows: what was asked, what was answered, and whether a grant was used."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from wakeful.store.database import Lock, LocksNeeded, LockSpace, Store, Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.approving import ApprovalKind, ApprovalState, ExpiryDefault
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Trust

# Numbers are given one after the other, whoever asks on whichever node.
NUMBERS = Lock(
    LockSpace(
        name="approvals", rank=2, lock="SELECT id FROM approval_head WHERE id IN :keys FOR UPDATE"
    ),
    "approvals",
)


class Approval(Record):
    """One thing that an agent asked, as the ledger keeps it."""

    id: str
    number: int
    kind: ApprovalKind
    agent_id: str
    session_key: str
    turn_id: str
    state: ApprovalState
    created_at: int
    expires_at: int
    on_expiry: ExpiryDefault
    trust: Trust
    source: str
    route: Route | None
    root_id: str
    depth: int
    granted: tuple[str, ...]  # tools that the turn had beyond those of its trust
    tool: str | None = None
    arguments: str | None = None  # canonical JSON
    arguments_hash: str | None = None
    question: str | None = None
    after_seq: int = 0
    note: str | None = None
    decided_by: str | None = None
    decided_at: int | None = None
    stimulus_id: str | None = None
    used_at: int | None = None
    used_by: str | None = None


APPROVALS = RowTable("approvals", Approval)

_LONGEST_NUMBER = 15  # digits

_encode = msgspec.json.Encoder(order="sorted").encode
_arguments = msgspec.json.Decoder(dict[str, Any])

_SAME_CALL = APPROVALS.select(
    "WHERE session_key = :session_key AND arguments_hash = :hash AND tool = :tool "
    "AND (state = 'open' OR (state = 'granted' AND used_at IS NULL)) LIMIT 1"
)
_OPEN = APPROVALS.select("WHERE session_key = :key AND state = 'open' ORDER BY number LIMIT :limit")
_OPEN_QUESTION = APPROVALS.select(
    "WHERE session_key = :key AND state = 'open' AND kind = 'question' AND after_seq < :seq "
    "ORDER BY number LIMIT 1"
)
_BY_ID = APPROVALS.select("WHERE id = :id")
_BY_NUMBER = APPROVALS.select("WHERE number = :number")


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON that is the same whatever the order of their names."""
    return _encode(arguments).decode()


def hash_of(canonical_arguments: str) -> str:
    """Return what a grant is bound to."""
    return hashlib.sha256(canonical_arguments.encode()).hexdigest()


def arguments_of(approval: Approval) -> dict[str, Any]:
    return _arguments.decode(approval.arguments or "{}")


def next_number(tx: Tx) -> int:
    """Take the next number; raise LocksNeeded unless nobody else can."""
    if not tx.holds(NUMBERS):
        raise LocksNeeded([NUMBERS])
    row = tx.one("UPDATE approval_head SET last = last + 1 WHERE id = 'approvals' RETURNING last")
    assert row is not None
    return row[0]


def add(tx: Tx, approval: Approval) -> None:
    tx.run(APPROVALS.insert, **APPROVALS.params(approval))


def get(tx: Tx, approval_id: str) -> Approval | None:
    return _one(tx, _BY_ID, id=approval_id)


async def find(store: Store, named: str) -> Approval:
    """Return what somebody names by its number (`3`, `#3`) or its id."""
    words = named.strip().removeprefix("#")
    if words.isascii() and words.isdigit() and len(words) <= _LONGEST_NUMBER:
        rows = await store.read(_BY_NUMBER, number=int(words))
    else:
        rows = await store.read(_BY_ID, id=words)
    if not rows:
        raise NotFound("approval", f"no approval {named[:80]!r}")
    return APPROVALS.read(rows[0])


def same_call(tx: Tx, session_key: str, tool: str, arguments_hash: str) -> Approval | None:
    """Return what was asked about this very call and is open, or granted and still to run."""
    return _one(tx, _SAME_CALL, session_key=session_key, tool=tool, hash=arguments_hash)


def open_in(tx: Tx, session_key: str, limit: int) -> list[Approval]:
    """Return what is open in a session, the oldest first."""
    return [APPROVALS.read(row) for row in tx.all(_OPEN, key=session_key, limit=limit)]


def open_question(tx: Tx, session_key: str, seq: int) -> Approval | None:
    """Return the oldest open question of a session that was asked before a stimulus came."""
    return _one(tx, _OPEN_QUESTION, key=session_key, seq=seq)


def asked_by(tx: Tx, turn_id: str) -> list[Approval]:
    """Return what a turn has asked, the oldest first."""
    rows = tx.all(APPROVALS.select("WHERE turn_id = :id ORDER BY number"), id=turn_id)
    return [APPROVALS.read(row) for row in rows]


def answered_by(tx: Tx, stimulus_ids: Sequence[str]) -> list[Approval]:
    """Return what some stimuli are the answers to."""
    rows = tx.all(
        APPROVALS.select("WHERE stimulus_id IS NOT NULL AND stimulus_id IN :ids ORDER BY number"),
        ids=list(stimulus_ids),
    )
    return [APPROVALS.read(row) for row in rows]


def decide(tx: Tx, decided: Approval) -> bool:
    """Write how something open was decided; False if it had been decided before."""
    changed = tx.run(
        "UPDATE approvals SET state = :state, note = :note, decided_by = :by, decided_at = :now, "
        "stimulus_id = :stimulus_id WHERE id = :id AND state = 'open'",
        id=decided.id,
        state=decided.state.value,
        note=decided.note,
        by=decided.decided_by,
        stimulus_id=decided.stimulus_id,
        now=tx.now,
    )
    return changed == 1


def use(tx: Tx, approval_id: str, turn_id: str) -> bool:
    """Use up a grant in the commit in which its call begins; False if another turn has it.

    The same turn may say so again: an attempt that goes on begins the same call.
    """
    changed = tx.run(
        "UPDATE approvals SET used_at = COALESCE(used_at, :now), used_by = :turn_id "
        "WHERE id = :id AND state = 'granted' AND (used_by IS NULL OR used_by = :turn_id)",
        id=approval_id,
        turn_id=turn_id,
        now=tx.now,
    )
    return changed == 1


def void(tx: Tx, stimulus_ids: Sequence[str]) -> list[Approval]:
    """Take back grants whose turn ended, or never was, without their call; return those."""
    rows = tx.all(
        "UPDATE approvals SET state = 'cancelled' WHERE stimulus_id IS NOT NULL "  # noqa: S608
        "AND stimulus_id IN :ids AND state = 'granted' AND kind = 'tool' AND used_at IS NULL "
        f"RETURNING {APPROVALS.columns}",
        ids=list(stimulus_ids),
    )
    return [APPROVALS.read(row) for row in rows]


def prune(tx: Tx, before: int, limit: int) -> str | None:
    """Forget what was decided before an instant, but no grant that waits; None when done."""
    gone = tx.run(
        "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals "
        "WHERE decided_at IS NOT NULL AND decided_at < :before "
        "AND (state <> 'granted' OR kind = 'question' OR used_at IS NOT NULL) LIMIT :limit)",
        before=before,
        limit=limit,
    )
    return "more" if gone == limit else None


def _one(tx: Tx, sql: str, **params: object) -> Approval | None:
    row = tx.one(sql, **params)
    return None if row is None else APPROVALS.read(row)
