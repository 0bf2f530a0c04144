"""Write to lanes: their locks are taken up front, sorted, together with the right to ask for halts.

Which other lanes a turn's commit touches is declared by its calls and by whom it reports to. What
was not declared is found under the locks (`lane_rows.require`), and the store runs the transaction
again with it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.store.database import Store, Tx

T = TypeVar("T")


async def write_in_lanes(store: Store, session_keys: Iterable[str], fn: Callable[[Tx], T]) -> T:
    """Run a write that holds these lanes, and whichever others it turns out to need."""
    return await store.transact(fn, locks=[*map(lane_rows.lock, session_keys), halts.ASKING])
