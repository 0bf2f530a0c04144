"""Sleep rows: at most one per owner; a new one replaces the old."""

from collections.abc import Sequence
from enum import StrEnum

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record


class SleepPolicy(StrEnum):
    WAKE = "wake"  # any real inbound wakes
    DEFAULT = "default"  # direct messages and mentions wait, the rest is dropped
    BUFFER = "buffer"  # what arrives waits for the end of the sleep
    DROP = "drop"  # what arrives is recorded and counted, no more


class Sleep(Record):
    """One owner's sleep."""

    owner: str
    agent_id: str
    session_key: str | None
    generation: str
    policy: SleepPolicy
    reason: str
    requested_ms: int
    final_ms: int
    created_at: int
    wake_at: int
    buffered: int = 0
    dropped: int = 0


SLEEPS = RowTable("sleeps", Sleep)


def enter(tx: Tx, sleep: Sleep) -> None:
    end(tx, sleep.owner)
    tx.run(SLEEPS.insert, **SLEEPS.params(sleep))


def get_all(tx: Tx, owners: Sequence[str]) -> dict[str, Sleep]:
    rows = tx.all(SLEEPS.select("WHERE owner IN :owners"), owners=list(owners))
    return {row[0]: SLEEPS.read(row) for row in rows}


def end(tx: Tx, owner: str, generation: str | None = None) -> bool:
    """Wake an owner; with a generation, only from that very sleep."""
    return (
        tx.run(
            "DELETE FROM sleeps WHERE owner = :owner "
            "AND (CAST(:generation AS TEXT) IS NULL OR generation = :generation)",
            owner=owner,
            generation=generation,
        )
        == 1
    )


def count(tx: Tx, owner: str, *, buffered: int = 0, dropped: int = 0) -> None:
    tx.run(
        "UPDATE sleeps SET buffered = buffered + :buffered, dropped = dropped + :dropped "
        "WHERE owner = :owner",
        owner=owner,
        buffered=buffered,
        dropped=dropped,
    )
