"""Write to lanes: their locks are taken up front, sorted, with their agents' budgets and the halts.

Which other lanes a turn's commit touches is declared by its calls and by whom it reports to. What
was not declared is found under the locks (`lane_rows.require`), and the store runs the transaction
again with it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from wakeful.broker import lane_rows
from wakeful.gate import budget_rows, halts
from wakeful.store.database import Lock, Store, Tx
from wakeful.vocabulary import session_key as keys

T = TypeVar("T")


def locks_of(session_keys: Iterable[str]) -> list[Lock]:
    """Return the locks of lanes, of their agents' budgets and of the halts."""
    lanes = list(session_keys)
    purses = {keys.agent_of(key) for key in lanes}
    return [*map(lane_rows.lock, lanes), *map(budget_rows.lock, sorted(purses)), halts.ASKING]


async def write_in_lanes(
    store: Store, session_keys: Iterable[str], fn: Callable[[Tx], T], *, yields: bool = False
) -> T:
    """Run a write that holds these lanes, and whichever others it turns out to need."""
    return await store.transact(fn, locks=locks_of(session_keys), yields=yields)
