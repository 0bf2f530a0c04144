"""How much of the inbox has not ended, of each source and in all: counted, never looked through.

Whatever is shown in the inbox is counted once when it is filed, and once when it is settled.
"""

from collections import Counter
from collections.abc import Sequence

from wakeful.store.database import Lock, LockSpace, Tx, Verb
from wakeful.vocabulary.stimulus import WaitingCaps
from wakeful.vocabulary.text import indexable

ALL = ""  # under which all sources are counted
_RANK_OF_COUNTS = 40  # after all other writes of a group, before the lanes and the bus

# Taken by whoever may refuse an item: two nodes never let the last one in twice.
COUNTS = Lock(
    LockSpace(
        name="inbox counts",
        rank=2,
        lock="SELECT source FROM inbox_counts WHERE source IN :keys ORDER BY source FOR UPDATE",
    ),
    ALL,
)
TOTAL = "SELECT waiting FROM inbox_counts WHERE source = ''"


def name_of(kind: str, source: str) -> str:
    """Return the name under which a source is counted: a hook and a token may be called alike."""
    return indexable(f"{kind}:{source}")


class InboxRoom:
    """Whether there is room for another item, while one group of drafts is accepted."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[str, int] = {}

    def is_left(self, name: str, caps: WaitingCaps) -> bool:
        """Tell whether another item of a source may wait."""
        if name not in self._known:
            rows = self._tx.all(
                "SELECT source, waiting FROM inbox_counts WHERE source IN :names",
                names=[ALL, name],
            )
            found = {ALL: 0, name: 0} | {row[0]: row[1] for row in rows}
            self._known = found | self._known
        return self._known[name] < caps.of_source and self._known[ALL] < caps.in_all

    def take(self, name: str) -> None:
        """Count an item that is filed."""
        for counted in (ALL, name):
            if counted in self._known:
                self._known[counted] += 1
        change(self._tx, name, 1)


def change(tx: Tx, name: str, by: int) -> None:
    """Have a source and the whole counted anew at the end of this transaction."""
    tx.gather(_CHANGES, (name, by))


def prune(tx: Tx, limit: int) -> str | None:
    """Forget sources of which nothing waits; None when done."""
    gone = tx.run(
        "DELETE FROM inbox_counts WHERE source IN (SELECT source FROM inbox_counts "
        "WHERE waiting = 0 AND source <> '' LIMIT :limit)",
        limit=limit,
    )
    return "more" if gone == limit else None


def _count(tx: Tx, changes: Sequence[tuple[str, int]]) -> Sequence[None]:
    by_name: Counter[str] = Counter()
    for name, by in changes:
        by_name[name] += by
        by_name[ALL] += by
    tx.many(
        "INSERT INTO inbox_counts (source, waiting) VALUES (:source, :by) "
        "ON CONFLICT (source) DO UPDATE SET waiting = inbox_counts.waiting + :by",
        # In order: two nodes never wait for each other.
        [{"source": name, "by": by} for name, by in sorted(by_name.items()) if by],
    )
    return [None] * len(changes)


_CHANGES: Verb[tuple[str, int], None] = Verb("inbox counts", _count, rank=_RANK_OF_COUNTS)
