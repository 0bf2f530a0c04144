"""Causal chains: who was at their beginning, and what they have cost so far."""

from wakeful.gate.money import nano
from wakeful.store.database import Tx
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Trust

_KINDS = {kind.value: kind for kind in Kind}


class Root(Record):
    """The first cause of a chain."""

    agent_id: str
    is_person: bool


def is_person(kind: Kind, trust: Trust) -> bool:
    """Tell whether somebody speaks whom the agent works for."""
    return kind.rule.is_person and trust is Trust.OPERATOR


def root(tx: Tx, root_id: str) -> Root | None:
    """Return the first cause of a chain, None if the ledger has forgotten it."""
    row = tx.one("SELECT agent_id, kind, trust FROM stimuli WHERE id = :id", id=root_id)
    if row is None:
        return None
    kind = _KINDS.get(row[1])
    return Root(agent_id=row[0], is_person=kind is not None and is_person(kind, Trust(row[2])))


def spent(tx: Tx, root_id: str) -> int:
    """Return what all turns of a chain have spent and set aside."""
    row = tx.one(
        "SELECT COALESCE(SUM(cost), 0), COALESCE(SUM(reserved), 0) FROM turns "
        "WHERE root_id = :root_id",
        root_id=root_id,
    )
    return 0 if row is None else nano(row[0]) + int(row[1])
