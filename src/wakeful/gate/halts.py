"""Halts: one durable switch per agent, one for the whole runtime."""

from wakeful.store.database import Lock, LockSpace, Tx

EVERYTHING = "*"

# Between two nodes: what is decided while something is halted must not pass its lifting by.
ASKING = Lock(
    LockSpace(name="halts", rank=1, lock="SELECT id FROM halt_head WHERE id IN :keys FOR SHARE"),
    "halts",
)
CHANGING = Lock(
    LockSpace(name="halts", rank=1, lock="SELECT id FROM halt_head WHERE id IN :keys FOR UPDATE"),
    "halts",
)


def halt(tx: Tx, scope: str, by: str) -> bool:
    """Halt an agent, or everything; False if it was halted already."""
    return (
        tx.run(
            "INSERT INTO halts (scope, halted_at, halted_by) VALUES (:scope, :now, :by) "
            "ON CONFLICT DO NOTHING",
            scope=scope,
            now=tx.now,
            by=by,
        )
        == 1
    )


def lift(tx: Tx, scope: str) -> bool:
    """Lift a halt; what it stopped must then be looked at again by the caller."""
    return tx.run("DELETE FROM halts WHERE scope = :scope", scope=scope) == 1


def scopes(tx: Tx) -> frozenset[str]:
    """Return everything that is halted."""
    return frozenset(row[0] for row in tx.all("SELECT scope FROM halts"))


def covers(scopes: frozenset[str], agent_id: str) -> bool:
    return bool(scopes) and (EVERYTHING in scopes or agent_id in scopes)


def is_halted(tx: Tx, agent_id: str) -> bool:
    return covers(scopes(tx), agent_id)
