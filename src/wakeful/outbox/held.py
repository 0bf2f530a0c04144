"""Deliveries that nobody asked for: how many left lately, and those held back for a digest."""

from collections.abc import Sequence

from msgspec import structs

from wakeful import attachments
from wakeful.outbox.outbox import DAY_MS, DELIVERIES, FILED, Delivery, DeliveryState
from wakeful.store.database import Tx
from wakeful.vocabulary.errors import UnreadableRow
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import error_text


class HeldFor(Record):
    """What of one agent waits for one target."""

    agent_id: str
    due_at: int


# What each agent has held back, and when the first digest of it leaves.
OF_AGENT = (
    "SELECT COUNT(*), MIN(due_at) FROM deliveries WHERE state = 'held' AND unprompted_by = :id"
)

_LEFT = (
    "SELECT filed_at FROM deliveries WHERE unprompted_by = :agent_id AND target = :target "
    "AND sent_with IS NULL AND state <> 'held' AND filed_at > :since "
    "ORDER BY filed_at DESC LIMIT 1 OFFSET :skipped"
)
_WAITING = DELIVERIES.select(
    "WHERE state = 'held' AND target = :target AND unprompted_by = :agent_id ORDER BY id "
    "LIMIT :limit"
)


def nth_last_left(tx: Tx, agent_id: str, target: str, count: int, since: int) -> int | None:
    """Return when the message left before which only so many have left since an instant."""
    row = tx.one(_LEFT, agent_id=agent_id, target=target, since=since, skipped=max(0, count - 1))
    return None if row is None else row[0]


def of_target(tx: Tx, target: str) -> Sequence[HeldFor]:
    """Return whose messages wait for a target, and when the digest of each is due."""
    rows = tx.all(
        "SELECT unprompted_by, MIN(due_at) FROM deliveries WHERE state = 'held' "
        "AND target = :target GROUP BY unprompted_by",
        target=target,
    )
    return [HeldFor(agent_id=row[0], due_at=row[1]) for row in rows]


def due_at(tx: Tx, agent_id: str, target: str) -> int | None:
    """Return when what waits leaves; None if nothing does."""
    row = tx.one(
        "SELECT MIN(due_at) FROM deliveries WHERE state = 'held' AND target = :target "
        "AND unprompted_by = :agent_id",
        target=target,
        agent_id=agent_id,
    )
    return None if row is None else row[0]


def waiting(
    tx: Tx, agent_id: str, target: str, limit: int
) -> tuple[Sequence[Delivery], Sequence[Delivery]]:
    """Return the messages that wait, the oldest first, and those that cannot be read.

    The latter have ended with that: nobody can ever send them.
    """
    found: list[Delivery] = []
    lost: list[Delivery] = []
    for row in tx.all(_WAITING, target=target, agent_id=agent_id, limit=limit):
        try:
            found.append(DELIVERIES.read(row))
        except UnreadableRow as error:
            lost.append(structs.replace(DELIVERIES.read_partly(row), error=error_text(error)))
    for one in lost:
        tx.run(
            "UPDATE deliveries SET state = 'failed', settled_at = :now, error = :error "
            "WHERE id = :id",
            id=one.id,
            now=tx.now,
            error=one.error,
        )
    return found, lost


def put_off(tx: Tx, agent_id: str, target: str, due_at: int) -> None:
    """Let what waits leave at another time."""
    tx.run(
        "UPDATE deliveries SET due_at = :due_at WHERE state = 'held' AND target = :target "
        "AND unprompted_by = :agent_id",
        target=target,
        agent_id=agent_id,
        due_at=due_at,
    )


def leave_together(
    tx: Tx, digest_id: str, parts: Sequence[Delivery], text: str, session_key: str
) -> Delivery:
    """File the digest of messages that were held; what becomes of it becomes of them."""
    first = parts[0]
    along = tuple(one for part in parts for one in part.attachments)
    digest = Delivery(
        id=digest_id,
        target=first.target,
        route=first.route,
        session_key=session_key,
        turn_id=None,
        text=text,
        state=DeliveryState.QUEUED,
        attempts=0,
        due_at=tx.now,
        filed_at=tx.now,
        expires_at=tx.now + DAY_MS,
        attachments=along,
        reply_to=first.reply_to if len(parts) == 1 else None,
        unprompted_by=first.unprompted_by,
        parts=len(parts),
    )
    tx.run(DELIVERIES.insert, **DELIVERIES.params(digest))
    attachments.hold(tx, [(digest_id, one.hash) for one in along])
    tx.run(
        "UPDATE deliveries SET state = 'queued', sent_with = :digest_id WHERE id IN :ids",
        digest_id=digest_id,
        ids=[part.id for part in parts],
    )
    tx.notify(FILED, digest.target)
    return digest


def settle_parts(
    tx: Tx, digest_id: str, state: DeliveryState, error: str | None
) -> Sequence[Delivery]:
    """Write that the parts of a digest ended as it did, and return them."""
    tx.run(
        "UPDATE deliveries SET state = :state, settled_at = :now, error = :error "
        "WHERE sent_with = :id AND state = 'queued'",
        id=digest_id,
        state=state.value,
        now=tx.now,
        error=error,
    )
    rows = tx.all(DELIVERIES.select("WHERE sent_with = :id ORDER BY id"), id=digest_id)
    return DELIVERIES.read_known(rows)
