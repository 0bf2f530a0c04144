"""The ledger of attachments: bytes kept once under their hash, as long as something holds them.

A holder is a stimulus, an entry or a delivery, named by its id. Whoever deletes one releases what
it held; what nobody holds any more, the janitor forgets.

From: intake, turn, outbox; broker, transcript and operations, which release; views, which look.
To: store.
Never: decides who may see something; whoever may see its holder may.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from wakeful.store.database import Store, Tx
from wakeful.vocabulary.stimulus import KeptAttachment, ReadyAttachment

SPARED_MS = 86_400_000  # since its last use: somebody who brings it again may be under way


def keep(tx: Tx, holder: str, attachments: Sequence[ReadyAttachment]) -> tuple[KeptAttachment, ...]:
    """Keep what came with something; bytes that are there already are not written again."""
    if not attachments:
        return ()
    kept = put(tx, attachments)
    hold(tx, [(holder, one.hash) for one in kept])
    return kept


def put(tx: Tx, attachments: Sequence[ReadyAttachment]) -> tuple[KeptAttachment, ...]:
    """Keep bytes that something must come to hold in this very transaction."""
    return tuple(_put(tx, attachment) for attachment in attachments)


def hold(tx: Tx, uses: Iterable[tuple[str, str]]) -> None:
    """Note who holds what: pairs of a holder's id and the hash of bytes that are kept."""
    rows = [{"holder": holder, "hash": one} for holder, one in dict.fromkeys(uses)]
    if rows:
        tx.many(
            "INSERT INTO attachment_uses (holder, hash) VALUES (:holder, :hash) "
            "ON CONFLICT (holder, hash) DO NOTHING",
            rows,
        )


def release(tx: Tx, holders: Collection[str]) -> None:
    """Forget that these held anything; call it in the transaction that deletes them."""
    tx.run("DELETE FROM attachment_uses WHERE holder IN :ids", ids=list(holders))


async def read(store: Store, hashes: Collection[str]) -> Mapping[str, str]:
    """Return the bytes of attachments, in base64, by their hash; what is gone is left out."""
    rows = await store.read(
        "SELECT hash, data FROM attachments WHERE hash IN :hashes", hashes=list(hashes)
    )
    return {row[0]: row[1] for row in rows}


async def beginnings(store: Store, hashes: Collection[str], characters: int) -> Mapping[str, str]:
    """Return how attachments begin, in base64 and cut between two of its groups."""
    rows = await store.read(
        "SELECT hash, SUBSTR(data, 1, :length) FROM attachments WHERE hash IN :hashes",
        hashes=list(hashes),
        length=characters // 4 * 4,
    )
    return {row[0]: row[1] for row in rows}


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


def _put(tx: Tx, attachment: ReadyAttachment) -> KeptAttachment:
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
    return kept
