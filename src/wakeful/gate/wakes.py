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
    session_key: str
    kind: Kind
    priority: Priority
    trust: Trust
    source: str
    root_id: str  # the first cause of the chain


MayWake = Callable[[Tx, Wake], GateVerdict]


def all_of(*gates: MayWake) -> MayWake:
    """Return the gate that lets through what each of these does; the first refusal counts."""

    def may_wake(tx: Tx, wake: Wake) -> GateVerdict:
        for gate in gates:
            said = gate(tx, wake)
            if said.verdict is not Verdict.PASS:
                return said
        return PASSED

    return may_wake


def everything(tx: Tx, wake: Wake) -> GateVerdict:
    """Let everything wake: nobody has set a budget or quiet hours."""
    return PASSED
