"""Look at what was sent, or is still to be."""

from wakeful import attachments
from wakeful.outbox.outbox import DELIVERIES, Delivery
from wakeful.store.database import Store
from wakeful.vocabulary.errors import NotFound


class DeliveryView:
    """Reads deliveries; who may see one is asked of its session."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, delivery_id: str) -> Delivery:
        rows = await self._store.read(DELIVERIES.select("WHERE id = :id"), id=delivery_id)
        if not rows:
            raise NotFound("id", f"no delivery {delivery_id[:80]!r}")
        return DELIVERIES.read(rows[0])

    async def attachment(self, delivery: Delivery, content_hash: str) -> str:
        """Return the bytes of something that goes along, in base64."""
        if any(one.hash == content_hash for one in delivery.attachments):
            found = await attachments.read(self._store, [content_hash])
            if content_hash in found:
                return found[content_hash]
        raise NotFound("hash", f"no attachment {content_hash[:80]!r}")
