"""Attachments: bytes kept once under their hash, for as long as a stimulus refers to them."""

from collections.abc import Collection, Sequence

from wakeful.store.database import Tx
from wakeful.vocabulary.stimulus import KeptAttachment, ReadyAttachment

SPARED_MS = 86_400_000  # since its last use: a stimulus that brings it again may be under way


def keep(
    tx: Tx, stimulus_id: str, attachments: Sequence[ReadyAttachment]
) -> tuple[KeptAttachment, ...]:
    """Keep what came with a stimulus; bytes that are there already are not written again."""
    return tuple(_keep(tx, stimulus_id, attachment) for attachment in attachments)


def release(tx: Tx, stimulus_ids: Collection[str]) -> None:
    """Forget that stimuli referred to anything; call it when they are deleted."""
    tx.run("DELETE FROM attachment_uses WHERE stimulus_id IN :ids", ids=list(stimulus_ids))


def prune(tx: Tx, after: str, limit: int) -> str | None:
    """Forget bytes that nothing refers to any more."""
    rows = tx.all(
        "SELECT hash FROM attachments WHERE hash > :after ORDER BY hash LIMIT :limit",
        after=after,
        limit=limit,
    )
    # The instant is looked at too, since another node may be adding a use at this very moment.
    tx.run(
        "DELETE FROM attachments WHERE hash IN :hashes AND used_at < :before AND NOT EXISTS "
        "(SELECT 1 FROM attachment_uses WHERE attachment_uses.hash = attachments.hash)",
        hashes=[row[0] for row in rows],
        before=tx.now - SPARED_MS,
    )
    return rows[-1][0] if len(rows) == limit else None


def _keep(tx: Tx, stimulus_id: str, attachment: ReadyAttachment) -> KeptAttachment:
    kept = KeptAttachment(
        name=attachment.name,
        media_type=attachment.media_type,
        size=attachment.size,
        hash=attachment.hash,
    )
    known = tx.run(
        "UPDATE attachments SET used_at = :now WHERE hash = :hash", hash=kept.hash, now=tx.now
    )
    if not known:
        tx.run(
            "INSERT INTO attachments (hash, size, data, used_at) "
            "VALUES (:hash, :size, :data, :now) "
            "ON CONFLICT (hash) DO UPDATE SET used_at = :now",
            hash=kept.hash,
            size=kept.size,
            data=attachment.data,
            now=tx.now,
        )
    tx.run(
        "INSERT INTO attachment_uses (stimulus_id, hash) VALUES (:id, :hash) "
        "ON CONFLICT (stimulus_id, hash) DO NOTHING",
        id=stimulus_id,
        hash=kept.hash,
    )
    return kept
