"""The story of one stimulus, in records that any door can render."""

from contextlib import aclosing

import pytest
from msgspec.structs import replace

from wakeful.access.principal import Principal
from wakeful.doors import stimulus_stream
from wakeful.doors.messaging import Message
from wakeful.doors.stimulus_stream import ModelWaits, PutOff, StoryDelta, StoryItem, ToolPhase
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import Pause, call, says
from wakeful.models.tariffs import Tariff
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Scripted, in_memory
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.errors import InvalidInput, Transient
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.stimulus import Outcome, Receipt, State, Stimulus

OPERATOR = Principal.operator()


async def story(runtime: Runtime, text: str) -> list[StoryItem]:
    message = Message(text=text)
    async with aclosing(
        await stimulus_stream.send(runtime.services, OPERATOR, "main", message)
    ) as stream:
        return [told async for told in stream]


async def test_it_begins_with_the_receipt_and_ends_with_the_turn():
    async with in_memory([says("let me see", call("current_time")), "it is late"]) as runtime:
        receipt, *between, end = await story(runtime, "what time is it?")

    assert isinstance(receipt, Receipt)
    assert isinstance(end, Turn)
    assert end.reply == "it is late"
    tools = [told.phase for told in between if isinstance(told, ToolPhase)]
    assert tools == ["started", "done"]
    words = "".join(told.text for told in between if isinstance(told, StoryDelta))
    assert words == "let me seeit is late"


async def test_a_command_is_told_by_its_receipt_alone():
    async with in_memory([]) as runtime:
        (receipt,) = await story(runtime, "/whoami")

    assert isinstance(receipt, Receipt)
    assert receipt.outcome is Outcome.COMMAND
    assert receipt.reply is not None


async def test_a_command_with_a_text_for_the_agent_is_told_to_the_end_of_its_turn():
    async with in_memory(["fresh"]) as runtime:
        receipt, *_, end = await story(runtime, "/new hello")

    assert isinstance(receipt, Receipt)
    assert receipt.reply == "A new conversation begins."
    assert isinstance(end, Turn)
    assert end.reply == "fresh"


async def test_a_stimulus_without_a_turn_is_told_itself():
    pause = Pause("busy")
    async with in_memory([pause]) as runtime:
        await runtime.send("first")
        await pause.reached.wait()
        waits = Message(text="second", queue=QueueOverrides(mode=Mode.QUEUE))
        async with aclosing(
            await stimulus_stream.send(runtime.services, OPERATOR, "main", waits)
        ) as stream:
            receipt = await anext(stream)
            assert isinstance(receipt, Receipt)
            await runtime.cancel(receipt.stimulus_id)
            end = await anext(stream)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        await runtime.stop()

    assert isinstance(end, Stimulus)
    assert end.state is State.CANCELLED


async def test_waiting_for_a_model_is_told():
    model = Scripted([Transient("nobody is there", retry_after_s=3600)])
    async with in_memory(model) as runtime:
        message = Message(text="hello")
        async with aclosing(
            await stimulus_stream.send(runtime.services, OPERATOR, "main", message)
        ) as stream:
            told = [await anext(stream), await anext(stream)]

    assert isinstance(told[1], ModelWaits)
    assert told[1].error == "nobody is there"


async def test_a_message_that_is_refused_leaves_nobody_listening():
    async with in_memory([]) as runtime:
        with pytest.raises(InvalidInput):
            await story(runtime, "")

        assert not runtime.bus.is_watched("agent:main:main")


async def test_a_message_that_is_put_off_only_when_its_turn_would_begin_says_so():
    """How much must be read for an answer, and so what it costs, is not known before."""
    tariff = Tariff(price=Price(input=Rate(base=10.0)), max_output=100)
    long = replace(says("a long story"), usage=Usage(input=250_000, output=10, cost=0.0))
    agent = Agent(
        model=Scripted([long], tariff=tariff),
        budget=BudgetRules(money_per_day=1.0),
        compaction=CompactionRules(enabled=False),
    )
    async with Runtime(agents=[agent], clock=ManualClock()) as runtime:
        await runtime.wait(await runtime.send("tell me a long story"))
        message = Message(text="and now?")
        async with aclosing(
            await stimulus_stream.send(runtime.services, OPERATOR, "main", message)
        ) as stream:
            receipt, put_off = [await anext(stream), await anext(stream)]
        status = (await runtime.services.views.budgets.of_agent("main"))[0]

    assert isinstance(receipt, Receipt)
    assert receipt.outcome is Outcome.STARTED
    assert isinstance(put_off, PutOff)
    assert (put_off.state, put_off.reason) == ("parked", "budget")
    assert put_off.look_at == status.resets_at
