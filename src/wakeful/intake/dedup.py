"""Deduplication: a key is unique within its scope and window, enforced by the database.

A key without a window goes with its stimulus, whatever the clock says. A window is wall time, since
it must outlive the process: a clock that is set ahead ends it, and one that is set back never makes
it longer than it is from now on.
"""

import hashlib
from collections.abc import Sequence

import msgspec

from wakeful.store.database import Tx
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Draft, Outcome, Receipt
from wakeful.vocabulary.text import indexable

DIFFERENT_BODY = "different-body"
COMMAND_WINDOW_S = 7 * 86_400  # of a key whose command left nothing in the ledger
WITH_STIMULUS = 2**53  # expires with its stimulus: no clock comes so far

_receipt = msgspec.json.Decoder(Receipt)
_cursor = msgspec.json.Decoder(tuple[str, str])


class KeyReused(InvalidInput):
    """A key came again with something else to say."""


class First(Record):
    """The stimulus that used a key first, and what its sender was told."""

    stimulus_id: str
    body_hash: str
    receipt: str


def scope_of(draft: Draft) -> str:
    """Return within which keys are unique; a long one by its hash, which has no separator."""
    return indexable(f"{draft.scope}\x1f{draft.source}")


def body_hash(draft: Draft) -> str:
    if draft.body_hash is not None:
        return draft.body_hash
    along = [(one.name, one.media_type, one.hash) for one in draft.attachments]
    body = msgspec.json.encode((draft.session_key, draft.text, along))
    return hashlib.sha256(body).hexdigest()


def claim(tx: Tx, draft: Draft, stimulus_id: str) -> First | None:
    """Take a key for a stimulus; if another holds it, return that one instead."""
    assert draft.dedup_key is not None
    taken = tx.one(
        "INSERT INTO dedup (scope, key, stimulus_id, body_hash, receipt, expires_at) "
        "VALUES (:scope, :key, :stimulus_id, :body_hash, '', :expires_at) "
        "ON CONFLICT (scope, key) DO UPDATE SET stimulus_id = :stimulus_id, "
        "body_hash = :body_hash, receipt = '', expires_at = :expires_at "
        "WHERE dedup.expires_at <= :now RETURNING stimulus_id",
        scope=scope_of(draft),
        key=draft.dedup_key,
        stimulus_id=stimulus_id,
        body_hash=body_hash(draft),
        expires_at=_expiry(tx.now, draft, stimulus_id),
        now=tx.now,
    )
    if taken is not None:
        return None
    _shorten(tx, draft, stimulus_id)
    first = find(tx, draft)
    assert first is not None
    return first


def _shorten(tx: Tx, draft: Draft, stimulus_id: str) -> None:
    """Let a window that a clock began which was ahead end when one that begins now would."""
    tx.run(
        "UPDATE dedup SET expires_at = :latest WHERE scope = :scope AND key = :key "
        "AND expires_at > :latest AND expires_at < :never",
        scope=scope_of(draft),
        key=draft.dedup_key,
        latest=_expiry(tx.now, draft, stimulus_id),
        never=WITH_STIMULUS,
    )


def _expiry(now: int, draft: Draft, stimulus_id: str) -> int:
    window_s = draft.dedup_window_s
    if window_s is None and not stimulus_id:
        window_s = COMMAND_WINDOW_S
    return WITH_STIMULUS if window_s is None else now + window_s * 1000


def release(tx: Tx, draft: Draft, stimulus_id: str) -> None:
    """Give back a key that was taken for something that is refused after all."""
    tx.run(
        "DELETE FROM dedup WHERE scope = :scope AND key = :key AND stimulus_id = :stimulus_id",
        scope=scope_of(draft),
        key=draft.dedup_key,
        stimulus_id=stimulus_id,
    )


def find(tx: Tx, draft: Draft) -> First | None:
    """Return what holds a draft's key, as long as the key counts."""
    row = tx.one(
        "SELECT stimulus_id, body_hash, receipt FROM dedup "
        "WHERE scope = :scope AND key = :key AND expires_at > :now",
        scope=scope_of(draft),
        key=draft.dedup_key,
        now=tx.now,
    )
    return None if row is None else First(stimulus_id=row[0], body_hash=row[1], receipt=row[2])


def keep_receipts(tx: Tx, answered: Sequence[tuple[Draft, Receipt]]) -> None:
    """Keep what the first senders were told, for whoever repeats them."""
    tx.many(
        "UPDATE dedup SET receipt = :receipt WHERE scope = :scope AND key = :key",
        [
            {
                "scope": scope_of(draft),
                "key": draft.dedup_key,
                "receipt": msgspec.json.encode(receipt).decode(),
            }
            for draft, receipt in answered
        ],
    )


def repeated(first: First, draft: Draft, fresh: Receipt | None) -> Receipt:
    """Return the receipt of a duplicate: the first answer, named as such."""
    answered = fresh or _receipt.decode(first.receipt)
    if answered.outcome is Outcome.REFUSED:
        return answered
    is_same_body = first.body_hash == body_hash(draft)
    return msgspec.structs.replace(
        answered,
        outcome=Outcome.DUPLICATE,
        duplicate_of=first.stimulus_id,
        reason=answered.outcome.value if is_same_body else DIFFERENT_BODY,
        first_reason=answered.reason,
    )


def first_answer(first: First, draft: Draft) -> Receipt:
    """Return what the first sender of a key was told, word for word."""
    if first.body_hash != body_hash(draft):
        raise KeyReused("dedup_key", "was used with another text")
    return _receipt.decode(first.receipt)


def as_first_answered(receipt: Receipt) -> Receipt:
    """Return the receipt of a duplicate as its first sender was given it."""
    if receipt.outcome is not Outcome.DUPLICATE:
        return receipt
    if receipt.reason == DIFFERENT_BODY:
        raise KeyReused("dedup_key", "was used with another text")
    return msgspec.structs.replace(
        receipt,
        stimulus_id=receipt.duplicate_of or receipt.stimulus_id,
        outcome=Outcome(receipt.reason or Outcome.STARTED),
        reason=receipt.first_reason,
        duplicate_of=None,
        first_reason=None,
    )


def prune(tx: Tx, now: int, limit: int) -> str | None:
    """Forget keys whose window is over."""
    gone = tx.run(
        "DELETE FROM dedup WHERE (scope, key) IN "
        "(SELECT scope, key FROM dedup WHERE expires_at <= :now LIMIT :limit)",
        now=now,
        limit=limit,
    )
    return "more" if gone == limit else None


def prune_orphans(tx: Tx, after: str, limit: int) -> str | None:
    """Forget keys that counted for as long as a stimulus was kept which is gone.

    The cursor is the last key that was looked at.
    """
    scope, key = _cursor.decode(after) if after else ("", "")
    rows = tx.all(
        "SELECT scope, key, expires_at, "
        "(SELECT 1 FROM stimuli WHERE stimuli.id = dedup.stimulus_id) FROM dedup "
        "WHERE (scope, key) > (:scope, :key) ORDER BY scope, key LIMIT :limit",
        scope=scope,
        key=key,
        limit=limit,
    )
    tx.many(
        "DELETE FROM dedup WHERE scope = :scope AND key = :key",
        [
            {"scope": row[0], "key": row[1]}
            for row in rows
            if row[2] == WITH_STIMULUS and row[3] is None
        ],
    )
    return msgspec.json.encode(rows[-1][:2]).decode() if len(rows) == limit else None
