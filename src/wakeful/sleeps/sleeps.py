"""Sleep rows: at most one per owner; a new one replaces the old."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Trust


class SleepPolicy(StrEnum):
    WAKE = "wake"  # any real inbound wakes
    DEFAULT = "default"  # direct messages and mentions wait, the rest is dropped
    BUFFER = "buffer"  # what arrives waits for the end of the sleep
    DROP = "drop"  # what arrives is recorded and counted, no more


class WokenBy(StrEnum):
    TIMER = "timer"
    INTERRUPTED = "interrupted"
    OPERATOR = "operator"
    REPLACED = "replaced"


class Sleep(Record):
    """One owner's sleep."""

    owner: str  # a session, or an agent for all its sessions in rooms
    id: str  # of this very sleep, not of the owner's next one
    agent_id: str
    session_key: str | None
    policy: SleepPolicy
    reason: str
    trust: Trust  # of whoever fell asleep; waking has no more
    cause_id: str | None  # the turn that fell asleep
    requested_ms: int
    final_ms: int
    created_at: int
    wake_at: int
    buffered: int = 0
    dropped: int = 0
    wake_id: str | None = None  # the stimulus that ends it when it opens a turn
    woken_by: WokenBy | None = None  # whoever filed that
    refused: str | None = None  # why it still sleeps although its time has come


SLEEPS = RowTable("sleeps", Sleep)
_ENTER = (
    SLEEPS.insert
    + " ON CONFLICT (owner) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in SLEEPS.fields if name != "owner")
)


def enter(tx: Tx, *fresh: Sleep) -> None:
    """Keep sleeps, each in the place of its owner's earlier one."""
    tx.many(_ENTER, [SLEEPS.params(sleep) for sleep in fresh])


REFUSED = SLEEPS.select(
    "WHERE refused IS NOT NULL AND agent_id = :agent_id AND refused = :reason "
    "ORDER BY owner LIMIT :limit"
)
# The index of the refused alone: a status line must not cost what all sleepers would.
COUNT_REFUSED = (
    "SELECT COUNT(*) FROM sleeps WHERE refused IS NOT NULL AND agent_id = :agent_id "
    "AND refused = :reason"
)


def get_refused(tx: Tx, agent_id: str, reason: str, limit: int) -> list[Sleep]:
    """Return some sleeps of an agent whose wakes were refused for a reason."""
    rows = tx.all(REFUSED, agent_id=agent_id, reason=reason, limit=limit)
    return [SLEEPS.read(row) for row in rows]


def get_all(tx: Tx, owners: Sequence[str]) -> dict[str, Sleep]:
    rows = tx.all(SLEEPS.select("WHERE owner IN :owners"), owners=list(owners))
    return {row[0]: SLEEPS.read(row) for row in rows}


def get(tx: Tx, owner: str) -> Sleep | None:
    return get_all(tx, [owner]).get(owner)


def end(tx: Tx, owner: str) -> None:
    tx.run("DELETE FROM sleeps WHERE owner = :owner", owner=owner)


def note_wakes(tx: Tx, wakes: Mapping[str, str], by: WokenBy) -> None:
    """Note, per owner, which stimulus ends its sleep once it opens a turn."""
    tx.many(
        "UPDATE sleeps SET wake_id = :stimulus_id, woken_by = :by, refused = NULL "
        "WHERE owner = :owner",
        [
            {"owner": owner, "stimulus_id": stimulus_id, "by": by.value}
            for owner, stimulus_id in wakes.items()
        ],
    )


def count(tx: Tx, owner: str, *, buffered: int = 0, dropped: int = 0) -> None:
    tx.run(
        "UPDATE sleeps SET buffered = buffered + :buffered, dropped = dropped + :dropped "
        "WHERE owner = :owner",
        owner=owner,
        buffered=buffered,
        dropped=dropped,
    )
