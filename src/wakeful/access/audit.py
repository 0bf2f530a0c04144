"""The audit: who did what to the runtime, written before it takes effect."""

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record


class AuditRow(Record):
    """One act of an administrator."""

    id: str
    at: int
    who: str  # the name of the credential
    action: str
    target: str


ACTS = RowTable("audit", AuditRow)


def note(tx: Tx, ids: Ids, *, who: str, action: str, target: str) -> None:
    """Write down an act; the act itself comes in the same commit or a later one."""
    act = AuditRow(id=ids.new("au"), at=tx.now, who=who, action=action, target=target)
    tx.run(ACTS.insert, **ACTS.params(act))
