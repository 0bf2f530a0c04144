"""Mutants that break what is promised about who may do what, and hear of what."""

from msgspec.structs import replace
from starlette.types import Scope

from tests.proofs.patching import original, patch
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.doors.http.problems import Problem
from wakeful.store.database import Tx
from wakeful.turns.turns import Turn
from wakeful.vocabulary.stimulus import Trust

REFUSED = "wakeful.doors.http.guard:refused"


def taint_lost_on_resume() -> None:
    """Let a turn's trust sink only in memory."""

    def sink(tx: Tx, turn: Turn) -> Turn:
        return replace(turn, trust=Trust.EXTERNAL)

    patch("wakeful.turns.turns:taint", sink)


def strangers_trusted() -> None:
    """Take what a tool has heard from a stranger for the operator's own words."""

    def nothing(_: object) -> None:
        pass

    patch("wakeful.turn.commit:TurnCommit.taint", nothing)


def owner_not_in_the_query() -> None:
    """Look for what is asked for, whoever asks."""

    def always(_: str) -> bool:
        return True

    patch("wakeful.access.rules:sees_all", always)


def secret_in_an_error() -> None:
    """Tell whoever comes with a wrong token which one it was."""
    refuse = original(REFUSED)

    def refuse_by_name(gatekeeper: Gatekeeper, scope: Scope, detail: str = "") -> Problem:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        return refuse(gatekeeper, scope, f"{detail} nobody has {given!r}")

    patch(REFUSED, refuse_by_name)
