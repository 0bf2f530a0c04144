"""A wall clock that is set back holds up nothing, on any store."""

from tests.conformance.engine.conftest import SettingsFor
from wakeful.doors.sender import Door
from wakeful.outbox.outbox import Delivery
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Pause, Scripted, in_memory, wait_for
from wakeful.vocabulary.clock import LONGEST_NAP_S
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.route import Route

HOUR_MS = 3_600_000


async def test_what_waits_goes_on_after_the_clock_was_set_back(settings_for: SettingsFor):
    clock, pause, refusals = ManualClock(), Pause("one"), [Transient("busy")]
    model = Scripted([pause, "two", Transient("overloaded", retry_after_s=5), "three"])

    async def out(delivery: Delivery) -> None:
        if refusals:
            raise refusals.pop()

    def nothing_waits(tx: Tx) -> bool:
        return tx.one("SELECT 1 FROM stimuli WHERE state IN ('pending', 'claimed')") is None

    doors: dict[str, Door] = {"out": out}
    async with in_memory(model, settings=settings_for(), clock=clock, doors=doors) as runtime:
        route = Route(door="out", address="ann")
        first = await runtime.send("first", mode="queue", route=route)
        await pause.reached.wait()
        second = await runtime.send("second", mode="queue")
        pause.go_on.set()
        await runtime.wait(second)
        await wait_for(runtime, "delivery.retry")
        third = await runtime.send("third")
        await wait_for(runtime, "turn.left")
        clock.jump_to(clock.now() - HOUR_MS)
        clock.advance(LONGEST_NAP_S)
        turns = [await runtime.wait(receipt) for receipt in (first, second, third)]
        await wait_for(runtime, "delivery.acknowledged")
        is_still = await runtime.store.transact(nothing_waits)

    assert [turn and turn.reply for turn in turns] == ["one", "two", "three"]
    assert is_still
