"""Hooks: what features have a say in, or want done in the transactions of the engine."""

from collections.abc import Sequence

from wakeful.broker.settlement import OnSettled
from wakeful.gate import wakes
from wakeful.gate.wakes import MayWake
from wakeful.store.database import Tx
from wakeful.turn.commit import GrantsOf, ReportsTo
from wakeful.turn.ending import OnEnded
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Stimulus


def _nothing_granted(_stimulus: Stimulus) -> tuple[str, ...]:
    return ()


def _nobody(_tx: Tx, _stimulus: Stimulus) -> str | None:
    return None


class Hooks(Record):
    """Each is called by the engine, which knows nothing of who answers."""

    may_wake: MayWake = wakes.everything
    on_settled: Sequence[OnSettled] = ()
    on_ended: Sequence[OnEnded] = ()
    grants_of: GrantsOf = _nothing_granted
    reports_to: ReportsTo = _nobody


NO_HOOKS = Hooks()


def first_of(*asked: ReportsTo) -> ReportsTo:
    """Return the first session that one of these names."""

    def reports_to(tx: Tx, stimulus: Stimulus) -> str | None:
        return next(filter(None, (ask(tx, stimulus) for ask in asked)), None)

    return reports_to


def all_grants(*asked: GrantsOf) -> GrantsOf:
    """Return what grants a stimulus whatever one of these does."""

    def granted(stimulus: Stimulus) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for grants_of in asked for name in grants_of(stimulus)))

    return granted
