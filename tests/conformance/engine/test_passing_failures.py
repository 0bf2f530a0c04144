"""A commit that fails for a passing reason is made again; only what fails each time ends a turn."""

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.hooked import hooked
from wakeful.assembly.hooks import Hooks
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Scripted, call, says
from wakeful.turn.committing import COMMIT_PAUSES_S
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary.errors import Invariant, StoreBusy, StoreRefused


class Failing:
    """A hook of a turn's end that raises, as many times as it is told to."""

    def __init__(self, error: Exception, times: int) -> None:
        self._error = error
        self._times = times

    def __call__(self, tx: Tx, turn: Turn, how: End) -> None:
        if how.state is TurnState.DONE and self._times:
            self._times -= 1
            raise self._error


class Skipping(ManualClock):
    """A clock that stands still, but for the pauses between the tries of a commit."""

    async def sleep(self, seconds: float) -> None:
        if seconds not in COMMIT_PAUSES_S:
            await super().sleep(seconds)


async def ended(runtime: Runtime, text: str) -> Turn:
    turn = await runtime.wait(await runtime.send(text))
    assert turn is not None
    return turn


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (StoreBusy("held"), len(COMMIT_PAUSES_S)),
        (StoreRefused("read-only"), 1),
        (MemoryError(), 2),
        (Invariant("once"), 2),
    ],
)
async def test_a_reply_outlives_a_commit_that_fails_for_a_moment(
    settings_for: SettingsFor, error: Exception, times: int
):
    clock, model = Skipping(), Scripted([says("", call("current_time")), "well"])
    hooks = Hooks(on_ended=(Failing(error, times),))
    async with hooked(model, hooks, settings=settings_for(), clock=clock) as runtime:
        turn = await ended(runtime, "what time is it?")

    assert (turn.state, turn.reply) == (TurnState.DONE, "well")
    assert len(model.requests) == 2  # nothing was asked again


async def test_what_fails_each_time_ends_the_turn(settings_for: SettingsFor):
    clock, model = Skipping(), Scripted(["well"])
    hooks = Hooks(on_ended=(Failing(Invariant("always"), 1_000),))
    async with hooked(model, hooks, settings=settings_for(), clock=clock) as runtime:
        turn = await ended(runtime, "hello")

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "internal")
    assert len(model.requests) == 1
