"""What the sender promises: one that fails never holds up the rest."""

import msgspec
import pytest

from tests.integration.engine.looking import kinds, turn_of
from tests.integration.engine.stages import CountingClock, rounds
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.testing.kit import (
    ManualClock,
    Pause,
    Scripted,
    call,
    in_memory,
    operator_draft,
    says,
    wait_for,
)
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.route import Route

MAIN = "agent:main:main"
ANN = Route(door="out", address="ann")


async def test_a_target_that_must_wait_is_left_alone_until_it_is_due():
    clock = CountingClock()
    attempts: list[str] = []

    async def out(delivery: Delivery) -> None:
        attempts.append(delivery.text)
        raise Transient("down", retry_after_s=600)

    model = Scripted(lambda _: "hi")
    async with in_memory(model, clock=clock, doors={"out": out}) as runtime:
        for text in ("one", "two"):
            await turn_of(runtime, await runtime.send(text, route=ANN))
        await wait_for(runtime, "delivery.retry")
        await rounds(runtime)
        waits = clock.waits
        await rounds(runtime)
        waited = clock.waits - waits

    assert attempts == ["hi"]
    assert waited == 0


async def test_a_receiver_that_asks_for_more_time_than_is_left_holds_up_nothing_for_longer():
    clock = ManualClock()

    async def out(delivery: Delivery) -> None:
        raise Transient("later", retry_after_s=10**7)

    async with in_memory(["hi"], clock=clock, doors={"out": out}) as runtime:
        await turn_of(runtime, await runtime.send("hello", route=ANN))
        await wait_for(runtime, "delivery.retry")
        rows = await runtime.store.read("SELECT due_at, expires_at FROM deliveries")

    assert rows[0][0] == rows[0][1]


class Receiver:
    """A door that notes what it is given, and refuses it while it is down."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.is_down = False

    async def take(self, delivery: Delivery) -> None:
        self.received.append(delivery.text)
        if self.is_down:
            raise Transient("down")


async def file_delivery(runtime: Runtime, state: str, attempts: int) -> None:
    """Leave a delivery as a process that was cut off leaves it: the sender hears nothing of it."""
    expires_at = runtime.clock.now() + outbox.DAY_MS
    await runtime.store.transact(
        lambda tx: tx.run(
            "INSERT INTO deliveries (id, target, route, session_key, text, state, attempts, "
            "due_at, filed_at, expires_at) VALUES ('dl_1', :target, :route, :key, 'hi', :state, "
            ":attempts, :now, :now, :expires_at)",
            target=ANN.target,
            route=msgspec.json.encode(ANN).decode(),
            key=MAIN,
            state=state,
            attempts=attempts,
            now=tx.now,
            expires_at=expires_at,
        )
    )


@pytest.mark.parametrize(("state", "attempts"), [("queued", 0), ("sent", 1)])
async def test_a_reply_is_sent_once_however_late_it_is(state: str, attempts: int):
    clock, out = ManualClock(), Receiver()
    async with in_memory([], clock=clock, doors={"out": out.take}) as runtime:
        await file_delivery(runtime, state, attempts)
        clock.advance(25 * 3600)
        await wait_for(runtime, "delivery.acknowledged")

    assert out.received == ["hi"]


async def test_a_reply_that_could_not_be_sent_expires_after_its_day():
    clock, out = ManualClock(), Receiver()
    out.is_down = True
    async with in_memory([], clock=clock, doors={"out": out.take}) as runtime:
        await file_delivery(runtime, "queued", 0)
        clock.advance(25 * 3600)
        await wait_for(runtime, "delivery.expired")

    assert out.received == ["hi"]


async def test_a_door_that_fails_with_unstorable_words_is_tried_again():
    clock = ManualClock()
    received: list[str] = []
    errors = [RuntimeError("half \ud83d")]

    async def out(delivery: Delivery) -> None:
        if errors:
            raise errors.pop()
        received.append(delivery.text)

    async with in_memory(["hi"], clock=clock, doors={"out": out}) as runtime:
        await turn_of(runtime, await runtime.send("hello", route=ANN))
        retry = await wait_for(runtime, "delivery.retry")
        clock.advance(60)
        await wait_for(runtime, "delivery.acknowledged")

    assert retry.data["error"] == "RuntimeError: half \ufffd"
    assert received == ["hi"]


async def test_what_send_message_files_is_told_like_any_delivery():
    async def out(delivery: Delivery) -> None:
        pass

    model = Scripted([says("", call("send_message", text="hi Ann")), "NO_REPLY"])
    async with in_memory(model, doors={"out": out}) as runtime:
        await turn_of(runtime, await runtime.send("greet her", route=ANN))
        await wait_for(runtime, "delivery.acknowledged")
        seen = [kind for kind in await kinds(runtime) if kind.startswith("delivery.")]

    assert seen == ["delivery.queued", "delivery.sent", "delivery.acknowledged"]


async def test_a_person_without_a_route_leaves_the_session_its_route():
    async with in_memory(Scripted(lambda _: "hi")) as runtime:
        await turn_of(runtime, await runtime.send("hello", route=ANN))
        await turn_of(runtime, await runtime.send("from the terminal"))
        job = operator_draft(MAIN, text="daily", kind=Kind.AUTOMATION)
        turn = await turn_of(runtime, await runtime.accept(job))

    assert turn.route == ANN


async def test_interrupt_works_from_another_route_too():
    pause = Pause("for Ann")
    async with in_memory([pause, "for the operator"]) as runtime:
        await runtime.send("hello", route=ANN)
        await pause.reached.wait()
        turn = await turn_of(runtime, await runtime.send("stop that", mode="interrupt"))

    assert (turn.route, turn.reply) == (None, "for the operator")


async def test_the_only_agent_is_the_one_that_short_names_mean():
    async with Runtime(agents=[Agent("bob", model=Scripted(["hi"]))]) as runtime:
        receipt = await runtime.send("hello")
        turn = await turn_of(runtime, receipt)

    assert receipt.session_key == "agent:bob:main"
    assert turn.reply == "hi"
