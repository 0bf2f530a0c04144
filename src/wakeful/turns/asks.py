"""What turns asked of models: a row before every call, settled by its answer."""

from collections.abc import Sequence
from enum import StrEnum

from wakeful.store.database import Tx
from wakeful.vocabulary.message import Usage, encode_message


class Purpose(StrEnum):
    REPLY = "reply"
    SUMMARY = "summary"  # of a conversation that has become long
    RESCUE = "rescue"  # the same, after the model refused a conversation as too long


def add(
    tx: Tx,
    turn_id: str,
    step: int,
    *,
    epoch: int,
    leaf_hash: str,
    purpose: Purpose = Purpose.REPLY,
) -> None:
    """Note that a model is about to be asked; an earlier try without an answer is abandoned."""
    tx.run(
        "UPDATE asks SET state = 'abandoned', settled_at = :now "
        "WHERE turn_id = :turn_id AND step = :step AND state = 'asked'",
        turn_id=turn_id,
        step=step,
        now=tx.now,
    )
    tx.run(
        "INSERT INTO asks (turn_id, step, attempt, epoch, state, leaf_hash, asked_at, purpose) "
        "SELECT :turn_id, :step, COALESCE(MAX(attempt), 0) + 1, :epoch, 'asked', :leaf_hash, :now, "
        ":purpose FROM asks WHERE turn_id = :turn_id AND step = :step",
        turn_id=turn_id,
        step=step,
        epoch=epoch,
        leaf_hash=leaf_hash,
        now=tx.now,
        purpose=purpose.value,
    )


def last(tx: Tx, turn_id: str, step: int) -> tuple[Purpose, bool]:
    """Return what a step asked for, and whether it was answered."""
    row = tx.one(
        "SELECT purpose, state FROM asks WHERE turn_id = :turn_id AND step = :step "
        "ORDER BY attempt DESC LIMIT 1",
        turn_id=turn_id,
        step=step,
    )
    return (Purpose.REPLY, False) if row is None else (Purpose(row[0]), row[1] == "answered")


def rescues(tx: Tx, turn_id: str) -> int:
    """Return how often a turn's conversation was compacted because the model refused it."""
    row = tx.one(
        "SELECT COUNT(DISTINCT step) FROM asks WHERE turn_id = :turn_id AND purpose = 'rescue'",
        turn_id=turn_id,
    )
    return 0 if row is None else row[0]


def answered(tx: Tx, turn_id: str, step: int, usage: Usage, failures: Sequence[str] = ()) -> None:
    """Note an answer, and what kept others from giving it who should have been first."""
    encoded = encode_message(usage).decode()
    _settle(tx, turn_id, step, "answered", usage=encoded, error=" ".join(failures) or None)


def failed(tx: Tx, turn_id: str, step: int, error: str) -> None:
    _settle(tx, turn_id, step, "failed", usage=None, error=error)


def close_open(tx: Tx, turn_id: str, why: str) -> None:
    """Settle the question that a turn ends without an answer to, if there is one."""
    tx.run(
        "UPDATE asks SET state = 'failed', error = :why, settled_at = :now "
        "WHERE turn_id = :turn_id AND state = 'asked'",
        turn_id=turn_id,
        why=why,
        now=tx.now,
    )


def garbled(tx: Tx, turn_id: str, step: int, error: str) -> None:
    """Note an answer that nobody could use, and that is asked for once more."""
    _settle(tx, turn_id, step, "garbled", usage=None, error=error)


def was_garbled(tx: Tx, turn_id: str, step: int) -> bool:
    """Tell whether a step has been asked once more because of an answer that nobody could use."""
    row = tx.one(
        "SELECT 1 FROM asks WHERE turn_id = :turn_id AND step = :step AND state = 'garbled'",
        turn_id=turn_id,
        step=step,
    )
    return row is not None


def _settle(
    tx: Tx, turn_id: str, step: int, state: str, *, usage: str | None, error: str | None
) -> None:
    tx.run(
        "UPDATE asks SET state = :state, usage = :usage, error = :error, settled_at = :now "
        "WHERE turn_id = :turn_id AND step = :step AND state = 'asked'",
        turn_id=turn_id,
        step=step,
        state=state,
        usage=usage,
        error=error,
        now=tx.now,
    )
