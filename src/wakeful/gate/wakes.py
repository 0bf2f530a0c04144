"""May this wake? Asked where a stimulus is accepted and again where its lane is claimed."""

from collections.abc import Callable, Sequence
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
    is_unpriced: bool = False  # nobody knows what the answer will cost


PASSED = GateVerdict()


class Wake(Record):
    """What the gate must know of a stimulus."""

    id: str
    agent_id: str
    session_key: str
    kind: Kind
    priority: Priority
    trust: Trust
    source: str
    root_id: str  # the first cause of the chain
    depth: int  # how far it is from there
    ignores_quiet_hours: bool = False  # a person wants it whatever the hour


# One verdict per wake, in order, from as few statements as one would take.
MayWake = Callable[[Tx, Sequence[Wake]], Sequence[GateVerdict]]


def all_of(*gates: MayWake) -> MayWake:
    """Return the gate that lets through what each of these does; the first refusal counts."""

    def may_wake(tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        verdicts = [PASSED] * len(wakes)
        for gate in gates:
            left = [place for place, said in enumerate(verdicts) if said.verdict is Verdict.PASS]
            for place, said in zip(left, gate(tx, [wakes[place] for place in left]), strict=True):
                verdicts[place] = said
        return verdicts

    return may_wake


def everything(tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
    """Let everything wake: nobody has set a budget or quiet hours."""
    return [PASSED] * len(wakes)
