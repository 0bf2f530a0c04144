"""What cannot be opened is given up after a few tries, and its lane goes on."""

from tests.integration.engine.looking import turn_of
from tests.integration.engine.stages import rounds
from wakeful.lanes.lane import OPENING_TRIES
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted, in_memory, operator_draft, wait_for
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.kinds import Kind

MAIN = "agent:main:main"


async def tries(runtime: Runtime, clock: ManualClock) -> None:
    """Let a lane that cannot be opened be tried again as often as it may."""
    for _ in range(OPENING_TRIES - 1):
        await rounds(runtime)
        clock.advance(1)
    await rounds(runtime)


async def test_a_stimulus_that_cannot_be_opened_fails_and_what_follows_it_runs():
    clock = ManualClock()
    async with in_memory(["two"], clock=clock) as runtime:
        later = clock.now() + 60_000
        jobs = [
            operator_draft(MAIN, text=text, kind=Kind.AUTOMATION, not_before=later)
            for text in ("one", "two")
        ]
        first, second = [await runtime.accept(job) for job in jobs]
        await rename_sessions(runtime, MAIN, "lost")
        clock.advance(60)
        await tries(runtime, clock)
        failed = await wait_for(runtime, "stimulus.failed")
        await rename_sessions(runtime, "lost", MAIN)
        clock.advance(1)
        turn = await turn_of(runtime, second)
        told = await runtime.wait(first)

    assert (failed.stimulus_id, failed.data["reason"]) == (first.stimulus_id, "poisoned")
    assert turn.reply == "two"
    assert told is None


async def rename_sessions(runtime: Runtime, old: str, new: str) -> None:
    """Hide a session from its lane: nobody foresees that."""
    await runtime.store.transact(
        lambda tx: tx.run("UPDATE sessions SET key = :new WHERE key = :old", new=new, old=old)
    )


async def test_a_turn_that_cannot_be_reopened_fails_and_what_follows_it_runs():
    clock = ManualClock()
    model = Scripted([Transient("overloaded", retry_after_s=5), "two"])
    async with in_memory(model, clock=clock) as runtime:
        first = await runtime.send("first")
        left = await wait_for(runtime, "turn.left")
        await runtime.store.transact(lambda tx: tx.run("UPDATE entries SET body = 'not JSON'"))
        clock.advance(5)
        await tries(runtime, clock)
        turn = await turn_of(runtime, first)
        await runtime.store.transact(
            lambda tx: tx.run("DELETE FROM entries WHERE body = 'not JSON'")
        )
        second = await turn_of(runtime, await runtime.send("second", session="other"))

    assert (turn.id, turn.state, turn.error_kind) == (left.turn_id, TurnState.FAILED, "poisoned")
    assert second.reply == "two"
