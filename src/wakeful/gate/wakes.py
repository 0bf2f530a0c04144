"""May this wake? Asked where a stimulus is accepted and again where its lane is claimed."""

from collections.abc import Callable
from enum import StrEnum

from wakeful.store.database import Tx
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, Trust


class Verdict(StrEnum):
    PASS = "pass"
    STORM = "storm"
    LOOP = "loop"
    BUDGET = "budget"
    QUIET_HOURS = "quiet-hours"


class GateVerdict(Record):
    """What the guards or the wake gate said of a stimulus."""

    verdict: Verdict = Verdict.PASS
    look_at: int | None = None  # when to ask again


PASSED = GateVerdict()


class Wake(Record):
    """What the gate must know of a stimulus; what is equal in all of it shares a verdict."""

    agent_id: str
    kind: Kind
    priority: Priority
    trust: Trust
    source: str
    root_id: str  # the first cause of the chain


MayWake = Callable[[Tx, Wake], GateVerdict]


def everything(tx: Tx, wake: Wake) -> GateVerdict:
    """Let everything wake: nobody has set a budget or quiet hours."""
    return PASSED
