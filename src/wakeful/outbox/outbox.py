"""Delivery rows: filed with the change that caused them, settled by whoever sends them."""

from enum import StrEnum
from typing import Any

from msgspec import structs

from wakeful import attachments
from wakeful.store.database import Store, Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import KeptAttachment, ReadyAttachment

FILED = "delivery.filed"  # something must be sent: its target

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class DeliveryState(StrEnum):
    HELD = "held"  # nobody asked for it, and there were too many: it leaves with a digest
    QUEUED = "queued"
    SENT = "sent"  # handed over; whether it arrived is not known yet
    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    FAILED = "failed"
    EXPIRED = "expired"


class Delivery(Record):
    """One message on its way out; its id is the idempotency key of every attempt."""

    id: str
    target: str
    route: Route
    session_key: str
    turn_id: str | None
    text: str
    state: DeliveryState
    attempts: int
    due_at: int
    filed_at: int
    expires_at: int
    settled_at: int | None = None
    error: str | None = None
    attachments: tuple[KeptAttachment, ...] = ()
    reply_to: str | None = None  # the message that it answers, as its door names it
    unprompted_by: str | None = None  # the agent that sent it without being asked
    sent_with: str | None = None  # the digest that it left with
    parts: int = 0  # how many messages it is a digest of
    usage_line: str | None = None  # with which it ends

    @property
    def whole_text(self) -> str:
        """What is sent: the text, and the line that says what it took."""
        return self.text if self.usage_line is None else f"{self.text}\n{self.usage_line}"


class ReadyDelivery(Delivery):
    """A delivery as its door gets it: with the bytes of what is attached."""

    files: tuple[ReadyAttachment, ...] = ()


DELIVERIES = RowTable("deliveries", Delivery)


class Along(Record):
    """What goes along with a text, and when that may go."""

    attachments: tuple[ReadyAttachment, ...] = ()
    reply_to: str | None = None
    unprompted_by: str | None = None  # the agent that nobody asked for it
    held_until: int | None = None  # when it leaves with a digest; None: at once
    usage_line: str | None = None  # with which it ends where it is received


NOTHING = Along()


def file(
    tx: Tx,
    delivery_id: str,
    route: Route,
    text: str,
    *,
    session_key: str,
    turn_id: str | None,
    along: Along = NOTHING,
) -> Delivery:
    """File a message; it is sent after this transaction commits, in order per target.

    One that is held leaves with a digest, once that is due.
    """
    is_held = along.held_until is not None
    delivery = Delivery(
        id=delivery_id,
        target=route.target,
        route=route,
        session_key=session_key,
        turn_id=turn_id,
        text=text,
        state=DeliveryState.HELD if is_held else DeliveryState.QUEUED,
        attempts=0,
        due_at=tx.now if along.held_until is None else along.held_until,
        filed_at=tx.now,
        expires_at=tx.now + DAY_MS,
        attachments=attachments.keep(tx, delivery_id, along.attachments),
        reply_to=along.reply_to,
        unprompted_by=along.unprompted_by,
        usage_line=along.usage_line,
    )
    tx.run(DELIVERIES.insert, **DELIVERIES.params(delivery))
    tx.notify(FILED, delivery.target)
    return delivery


def filed_event(delivery: Delivery) -> tuple[str, dict[str, Any]]:
    """Return the kind and the data of the event that tells of a message that was filed."""
    data: dict[str, Any] = {"delivery_id": delivery.id}
    if delivery.state is DeliveryState.HELD:
        data["held_until"] = delivery.due_at
    return f"delivery.{delivery.state.value}", data


def was_sent_in_turn(tx: Tx, turn_id: str, target: str, text: str) -> bool:
    """Tell whether this turn already filed the same text for the same receiver."""
    return (
        tx.one(
            "SELECT 1 FROM deliveries WHERE turn_id = :turn_id AND target = :target "
            "AND text = :text LIMIT 1",
            turn_id=turn_id,
            target=target,
            text=text,
        )
        is not None
    )


def has_sent(tx: Tx, turn_id: str) -> bool:
    """Tell whether a turn has filed anything for anybody."""
    row = tx.one("SELECT 1 FROM deliveries WHERE turn_id = :turn_id LIMIT 1", turn_id=turn_id)
    return row is not None


# What is sent itself, and not with a digest.
_OPEN = "state IN ('queued', 'sent') AND sent_with IS NULL"
# Every target that something waits for, and when its first delivery, or its digest, is due.
OPEN_TARGETS = (
    "SELECT deliveries.target, deliveries.due_at FROM (SELECT MIN(id) AS id FROM deliveries "  # noqa: S608
    f"WHERE {_OPEN} GROUP BY target) first JOIN deliveries ON deliveries.id = first.id "
    "UNION ALL SELECT target, MIN(due_at) FROM deliveries WHERE state = 'held' GROUP BY target"
)


async def newest_id(store: Store) -> str | None:
    """Return the id that every later one must sort after."""
    return (await store.read("SELECT MAX(id) FROM deliveries"))[0][0]


_FIRST = DELIVERIES.select(f"WHERE target = :target AND {_OPEN} ORDER BY id LIMIT 1")


def first_of(tx: Tx, target: str) -> Delivery | None:
    """Return the delivery that must go first to this target."""
    row = tx.one(_FIRST, target=target)
    return None if row is None else DELIVERIES.read(row)


def first_partly(tx: Tx, target: str) -> Delivery:
    """Return it for whoever ends it: what cannot be read of it is None."""
    row = tx.one(_FIRST, target=target)
    assert row is not None
    return DELIVERIES.read_partly(row)


def begin(tx: Tx, delivery_id: str) -> None:
    """Note that an attempt begins, so that a crash during it is known."""
    tx.run(
        "UPDATE deliveries SET state = 'sent', attempts = attempts + 1 WHERE id = :id "
        "AND state IN ('queued', 'sent')",
        id=delivery_id,
    )


def again(tx: Tx, delivery_id: str, due_at: int, error: str) -> None:
    tx.run(
        "UPDATE deliveries SET state = 'queued', due_at = :due_at, error = :error WHERE id = :id "
        "AND state IN ('queued', 'sent')",
        id=delivery_id,
        due_at=due_at,
        error=error,
    )


def bring_forward(tx: Tx) -> None:
    """Make due what was filed in the future: the clock was moved back since.

    What is held waits as long as if it had come only now.
    """
    tx.run(
        "UPDATE deliveries SET due_at = :now WHERE state IN ('queued', 'sent') "
        "AND due_at > :now AND filed_at > :now",
        now=tx.now,
    )
    tx.run(
        "UPDATE deliveries SET due_at = :latest WHERE state = 'held' AND due_at > :latest",
        latest=tx.now + HOUR_MS,
    )


def settle(tx: Tx, delivery_id: str, state: DeliveryState, error: str | None = None) -> bool:
    """Write how a delivery ended; False if it had ended already."""
    return (
        tx.run(
            "UPDATE deliveries SET state = :state, settled_at = :now, error = :error "
            "WHERE id = :id AND state IN ('queued', 'sent')",
            id=delivery_id,
            state=state.value,
            now=tx.now,
            error=error,
        )
        == 1
    )


async def made_ready(store: Store, delivery: Delivery) -> ReadyDelivery:
    """Return a delivery with the bytes of what is attached to it."""
    found = await attachments.read(store, [one.hash for one in delivery.attachments])
    gone = [one.name for one in delivery.attachments if one.hash not in found]
    if gone:
        raise Permanent(f"the bytes of {gone[0]!r} are gone")
    files = tuple(
        ReadyAttachment(**structs.asdict(one), data=found[one.hash]) for one in delivery.attachments
    )
    whole = structs.replace(delivery, text=delivery.whole_text, usage_line=None)
    return ReadyDelivery(**structs.asdict(whole), files=files)


def prune(tx: Tx, after: str, before: int, limit: int) -> str | None:
    """Forget deliveries settled before an instant."""
    rows = tx.all(
        "SELECT id, settled_at FROM deliveries WHERE id > :after AND id < :until ORDER BY id "
        "LIMIT :limit",
        after=after,
        until=f"dl_{before:012x}",
        limit=limit,
    )
    old = [row[0] for row in rows if row[1] is not None and row[1] < before]
    attachments.release(tx, old)
    tx.run("DELETE FROM deliveries WHERE id IN :ids", ids=old)
    return rows[-1][0] if len(rows) == limit else None
