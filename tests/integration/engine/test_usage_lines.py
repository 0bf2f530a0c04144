"""Replies end with what they took, where the session wants it, and nowhere but in what is sent."""

from pathlib import Path

import pytest

from tests.integration.engine.looking import shown, turn_of
from tests.integration.gate.spending import costs, paid
from wakeful.models.model import Reply
from wakeful.models.scripted import Line, Scripted
from wakeful.models.tariffs import Tariff
from wakeful.outbox.outbox import ReadyDelivery
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, call, in_memory, says, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.message import Text, Usage
from wakeful.vocabulary.route import Route

ANN = Route(door="out", address="ann")
LINE = "tokens 1k (in 10 / out 1k)"


class Hearer:
    def __init__(self) -> None:
        self.texts: list[str] = []

    async def take(self, delivery: ReadyDelivery) -> None:
        self.texts.append(delivery.text)


def runtime_of(model: Scripted, hearer: Hearer, settings: Settings | None = None) -> Runtime:
    return in_memory(model, clock=ManualClock(), doors={"out": hearer.take}, settings=settings)


async def said(runtime: Runtime, text: str) -> str | None:
    return (await runtime.send(text, route=ANN)).reply


async def test_a_delivered_reply_ends_with_a_line_that_is_no_part_of_it():
    hearer, model = Hearer(), paid([costs(1000, "one"), costs(1000, "two")])
    async with runtime_of(model, hearer) as runtime:
        chosen = await said(runtime, "/usage tokens")
        first = await turn_of(runtime, await runtime.send("hello", route=ANN))
        await turn_of(runtime, await runtime.send("and now?", route=ANN))
        await wait_for(runtime, "delivery.acknowledged", lambda e: len(hearer.texts) == 2)
        rows = await runtime.store.read("SELECT text FROM deliveries ORDER BY id")

    assert chosen == "Replies end with the tokens they took."
    assert hearer.texts == [f"one\n{LINE}", f"two\n{LINE}"]
    assert (first.reply, first.usage_line) == ("one", LINE)
    assert [row[0] for row in rows] == ["one", "two"]
    assert shown(model.requests[-1]) == ["user: hello", "assistant: one", "user: and now?"]


async def test_the_full_line_names_money_time_and_model():
    hearer, model = Hearer(), paid([costs(1000)])
    async with runtime_of(model, hearer) as runtime:
        await said(runtime, "/usage full")
        turn = await turn_of(runtime, await runtime.send("hello"))

    assert turn.usage_line == f"{LINE} • est $0.01 • 0 s • scripted"


async def test_without_a_word_there_is_no_line_and_off_takes_it_away():
    hearer, model = Hearer(), paid([costs(10)] * 2)
    async with runtime_of(model, hearer) as runtime:
        before = await turn_of(runtime, await runtime.send("hello"))
        await said(runtime, "/usage on")
        await said(runtime, "/usage off")
        after = await turn_of(runtime, await runtime.send("hello"))

    assert (before.usage_line, after.usage_line) == (None, None)


async def test_a_price_that_nobody_knows_is_told_as_such():
    unpriced = Reply(
        content=(Text(text="hi"),), usage=Usage(input=10, output=5, cost=None), model="new"
    )
    model = Scripted([unpriced], tariff=Tariff(price=None, max_output=100))
    hearer = Hearer()
    async with runtime_of(model, hearer) as runtime:
        await said(runtime, "/usage full")
        turn = await turn_of(runtime, await runtime.send("hello"))
        told = await said(runtime, "/usage")

    assert turn.usage_line == "tokens 15 (in 10 / out 5) • unpriced • 0 s • scripted"
    assert told is not None
    assert "$0.0000 spent in this conversation, and 1 answer of unknown price" in told
    assert "Replies end with tokens, money, time and model (/usage off | tokens | full)" in told


async def test_a_silent_reply_has_no_line():
    hearer, model = Hearer(), paid([costs(10, "NO_REPLY")])
    async with runtime_of(model, hearer) as runtime:
        await said(runtime, "/usage tokens")
        turn = await turn_of(runtime, await runtime.send("hello", route=ANN))

    assert turn.usage_line is None
    assert hearer.texts == []


async def test_a_reply_that_was_sent_already_is_not_sent_again_for_its_line():
    hearer = Hearer()
    lines: list[Line] = [says("", call("send_message", text="hi Ann")), "hi Ann"]
    async with runtime_of(Scripted(lines), hearer) as runtime:
        await said(runtime, "/usage tokens")
        await turn_of(runtime, await runtime.send("greet her", route=ANN))
        await wait_for(runtime, "delivery.acknowledged")
        rows = await runtime.store.read("SELECT text FROM deliveries")

    assert [row[0] for row in rows] == ["hi Ann"]
    assert hearer.texts == ["hi Ann"]


async def test_a_wrong_word_is_told_with_the_right_ones():
    hearer, model = Hearer(), paid([costs(10)])
    async with runtime_of(model, hearer) as runtime:
        told = await said(runtime, "/usage loud")
        turn = await turn_of(runtime, await runtime.send("hello"))

    assert told == "/usage [off | tokens | full]: must be one of off, tokens, full, not 'loud'"
    assert turn.usage_line is None


@pytest.mark.parametrize("begins_anew", [False, True])
async def test_the_choice_outlives_a_restart_and_a_reset(tmp_path: Path, begins_anew: bool):
    settings = Settings(home=tmp_path / "home")
    async with runtime_of(paid([costs(10)]), Hearer(), settings=settings) as runtime:
        await turn_of(runtime, await runtime.send("hello"))
        await said(runtime, "/usage tokens")
        if begins_anew:
            await said(runtime, "/new")
    async with runtime_of(paid([costs(1000)]), Hearer(), settings=settings) as runtime:
        turn = await turn_of(runtime, await runtime.send("hello again"))

    assert turn.usage_line == LINE


async def test_the_model_that_answered_instead_is_named():
    busy, other = Scripted([Transient("busy")]), paid([costs(10)])
    agent = Agent(model=busy, fallback_models=[other], heartbeat=NO_HEARTBEAT)
    async with Runtime(agents=[agent], clock=ManualClock()) as runtime:
        await runtime.send("/usage full")
        turn = await turn_of(runtime, await runtime.send("hello"))

    assert turn.usage_line is not None
    assert turn.usage_line.endswith(" • paid")
