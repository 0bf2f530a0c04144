"""Webhooks on every database: one delivery is one stimulus, whatever is repeated and restarted."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conformance.engine.conftest import SettingsFor
from tests.integration.http.senders import hooks, signed
from wakeful.doors.hooks import NotProved
from wakeful.intake.dedup import KeyReused
from wakeful.models.model import Request
from wakeful.models.scripted import Line
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Pause, Scripted, call, says, wait_for
from wakeful.tools.check_inbox import check_inbox
from wakeful.tools.tool import Tool, tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import TooOften
from wakeful.vocabulary.inbox import InboxRules
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import Outcome, Receipt, StormOverrides

BUILDS = "agent:main:builds"


def with_hooks(settings_for: SettingsFor, **fields: Any) -> Settings:
    return replace(settings_for(drain_s=0), hooks=hooks(**fields))


def running(
    settings: Settings,
    clock: ManualClock,
    model: Scripted | None = None,
    tools: Sequence[Tool] = (),
) -> Runtime:
    agent = Agent(model=model or Scripted(_well), tools=tools, heartbeat=NO_HEARTBEAT)
    return Runtime(agents=[agent], clock=clock, settings=settings)


def _well(_request: Request) -> str:
    return "well"


async def post(runtime: Runtime, name: str, body: bytes, delivery: str) -> Receipt:
    headers = signed(name, body, runtime.clock.now(), delivery)
    return await runtime.receive_webhook(name, headers, body)


async def test_deliveries_shuffled_repeated_and_restarted_open_one_turn_each(lasting: SettingsFor):
    """F28: a replayer; the same id with other bytes is refused, and nothing of it is written."""
    settings = with_hooks(lasting, session="builds", storm=StormOverrides(turns=1000))
    clock, chance = ManualClock(), random.Random(28)
    deliveries = [(f"d-{number}", b'{"n": %d}' % number) for number in range(12)]
    sent = [(*one, name) for one in deliveries for name in ("standard", "github")] * 4
    chance.shuffle(sent)
    receipts: dict[tuple[str, str], set[Receipt]] = {}

    async def replay(runtime: Runtime, delivery: str, body: bytes, name: str) -> None:
        receipt = await post(runtime, name, body, delivery)
        receipts.setdefault((name, delivery), set()).add(receipt)
        clock.advance(chance.choice((0, 1)))
        if chance.random() < 0.2:
            with pytest.raises(KeyReused):
                await post(runtime, name, body + b" ", delivery)

    for start in range(0, len(sent), 24):
        async with running(settings, clock) as runtime:
            for one in sent[start : start + 24]:
                await replay(runtime, *one)
            runtime.leave()  # as killed: what was open goes on at the next start
        clock.advance(3600)

    async with running(settings, clock) as runtime:
        for told in receipts.values():
            await runtime.wait(next(iter(told)))
        rows = await runtime.store.read(
            "SELECT source, state FROM stimuli WHERE kind = 'webhook' ORDER BY id"
        )
        [(turns,)] = await runtime.store.read("SELECT COUNT(*) FROM turns WHERE kind = 'webhook'")

    assert all(len(told) == 1 for told in receipts.values())
    assert len({next(iter(told)).stimulus_id for told in receipts.values()}) == 24
    assert {state for _, state in rows} <= {"done", "merged"}
    assert len(rows) == 24
    assert 0 < turns <= 24


async def test_two_at_once_of_one_delivery_are_one(settings_for: SettingsFor):
    clock = ManualClock()
    async with running(with_hooks(settings_for), clock) as runtime:
        told = await asyncio.gather(*(post(runtime, "standard", b"{}", "d") for _ in range(20)))
        [(count,)] = await runtime.store.read("SELECT COUNT(*) FROM stimuli")

    assert len(set(told)) == count == 1


async def test_an_agent_that_sleeps_wakes_in_time_and_finds_what_came(settings_for: SettingsFor):
    clock = ManualClock()
    async with running(with_hooks(settings_for), clock) as runtime:
        await runtime.wait(await runtime.send("begin", session="system:activity"))
        await runtime.sleep("system:activity", 3600)
        receipt = await post(runtime, "standard", b"{}", "d")
        since = await runtime.cursor()
        clock.advance(3600)
        woken = await wait_for(runtime, "sleep.woken", since=since)
        item = await runtime.wait(receipt)

    assert receipt.outcome is Outcome.HELD
    assert woken.data["reason"] == "timer"
    assert item is not None
    assert item.kind is Kind.WAKE


async def test_what_will_be_held_keeps_nobody_from_falling_asleep(settings_for: SettingsFor):
    clock, model = (
        ManualClock(),
        Scripted([says("", call("sleep", duration_ms=3_600_000)), "awake"]),
    )
    async with running(with_hooks(settings_for), clock, model) as runtime:
        await runtime.halt()
        await runtime.send("rest", session="system:activity")
        await post(runtime, "standard", b"{}", "d")
        await runtime.resume()
        await wait_for(runtime, "sleep.entered")
        await wait_for(runtime, "stimulus.held")
        clock.advance(3600)
        woken = await wait_for(runtime, "sleep.woken")

    assert woken.data["reason"] == "timer"


async def test_who_has_no_secret_files_nothing(settings_for: SettingsFor):
    async with running(with_hooks(settings_for), ManualClock()) as runtime:
        for name in ("standard", "nobody"):
            with pytest.raises(NotProved):
                await runtime.receive_webhook(name, {}, b"{}")
        listed = {one.name: one for one in await runtime.hooks()}
        [(count,)] = await runtime.store.read("SELECT COUNT(*) FROM stimuli")

    assert count == 0
    assert (listed["standard"].refused, listed["standard"].last_refusal) == (1, "signature")
    assert (listed["github"].refused, listed["github"].accepted) == (0, 0)


async def test_an_example_comes_in_as_if_its_sender_had_sent_it(settings_for: SettingsFor):
    async with running(with_hooks(settings_for, session="builds"), ManualClock()) as runtime:
        receipts = [await runtime.test_hook(name) for name in hooks()]
        text = await runtime.test_hook("plain", "in words")
        listed = {one.name: one for one in await runtime.hooks()}
        [(words,)] = await runtime.store.read(
            "SELECT text FROM stimuli WHERE id = :id", id=text.stimulus_id
        )

    assert {one.session_key for one in receipts} == {BUILDS}
    assert [listed[name].accepted for name in hooks()] == [1, 1, 1, 2]
    assert listed["plain"].last_at == ManualClock().now()
    assert words == "in words"


def deploying(acted: list[str]) -> Tool:
    @tool(effect="idempotent")
    def deploy(what: str) -> str:
        """Deploy something."""
        acted.append(what)
        return "deployed"

    return deploy


def reads_and_obeys(request: Request) -> Line:
    """Look into the inbox, then deploy: whatever anybody asked for."""
    done = [one.name for one in request.messages if isinstance(one, ToolMessage)]
    if "check_inbox" not in done:
        return says("", call("check_inbox", priority_floor="later"))
    return "done" if "deploy" in done else says("", call("deploy", what="shop"))


@pytest.mark.parametrize(
    ("left", "granted", "deployed"),
    [(None, ("deploy",), ["shop"]), ("next", (), []), ("later", (), [])],
)
async def test_what_others_left_in_the_inbox_has_none_of_a_hooks_grants(
    left: str | None, granted: tuple[str, ...], deployed: list[str], settings_for: SettingsFor
):
    """I21: an item is shown at the opening, or read by the tool; the hook's tools are gone then."""
    acted: list[str] = []
    settings = with_hooks(settings_for, priority="now", tools=("deploy",))
    tools = [deploying(acted), check_inbox]
    async with running(settings, ManualClock(), Scripted(reads_and_obeys), tools) as runtime:
        if left is not None:
            await runtime.post("deploy the shop", priority=left, source="somebody")
        turn = await runtime.wait(await post(runtime, "github", b"{}", "d"))

    assert turn is not None
    assert (turn.granted, acted) == (granted, deployed)


async def test_a_full_inbox_refuses_a_delivery_and_takes_it_once_there_is_room(
    settings_for: SettingsFor,
):
    settings = replace(with_hooks(settings_for), inbox=InboxRules(depth=1))
    async with running(settings, ManualClock()) as runtime:
        first = await post(runtime, "github", b"{}", "d-1")
        with pytest.raises(TooOften):
            await post(runtime, "github", b"{}", "d-2")
        await runtime.cancel(first.stimulus_id)
        second = await post(runtime, "github", b"{}", "d-2")

    assert (first.outcome, second.outcome) == (Outcome.HELD, Outcome.HELD)


async def test_a_storm_in_a_session_of_its_own_fills_no_more_of_the_inbox_than_there_is(
    settings_for: SettingsFor,
):
    stormy = with_hooks(settings_for, session="builds", storm=StormOverrides(turns=1))
    settings = replace(stormy, inbox=InboxRules(depth=2))
    async with running(settings, ManualClock()) as runtime:
        taken = [await post(runtime, "github", b"{}", f"d-{number}") for number in range(3)]
        with pytest.raises(TooOften):
            await post(runtime, "github", b"{}", "d-4")

    assert [one.outcome for one in taken[1:]] == [Outcome.HELD, Outcome.HELD]


async def test_one_hook_leaves_room_in_the_inbox_for_others():
    """T11: there is a cap for each source, and one for all."""
    settings = Settings(drain_s=0, hooks=hooks())
    async with running(settings, ManualClock()) as runtime:
        deliveries = [post(runtime, "github", b"{}", f"d-{number}") for number in range(1001)]
        answers = await asyncio.gather(*deliveries, return_exceptions=True)
        other = await post(runtime, "standard", b"{}", "d")

    assert [type(one) for one in answers].count(TooOften) == 1
    assert other.outcome is Outcome.HELD


async def test_a_granted_tool_stays_with_the_turn_over_a_restart_and_new_settings(
    lasting: SettingsFor,
):
    """The model obeys whatever it reads; only what the turn's row has since its opening counts."""
    acted: list[str] = []

    @tool(effect="idempotent")
    def deploy(what: str) -> str:
        """Deploy something."""
        acted.append(what)
        return "deployed"

    @tool(effect="idempotent")
    def destroy(what: str) -> str:
        """Destroy something."""
        acted.append(f"destroyed {what}")
        return "destroyed"

    def obeys(request: Request) -> Line:
        results = [one for one in request.messages if isinstance(one, ToolMessage)]
        if results:
            return "done"
        return says("", call("deploy", what="shop"), call("destroy", what="shop"))

    clock = ManualClock()
    granted = with_hooks(lasting, session="builds", tools=("deploy",))
    waits = Pause("one moment")
    async with running(granted, clock, Scripted([waits]), [deploy, destroy]) as runtime:
        receipt = await post(runtime, "github", b"{}", "d")
        await waits.reached.wait()
        [(stands,)] = await runtime.store.read("SELECT granted FROM turns")
        runtime.leave()
    taken = with_hooks(lasting, session="builds", tools=())
    async with running(taken, clock, Scripted(obeys), [deploy, destroy]) as runtime:
        turn = await runtime.wait(receipt)
        assert turn is not None
        offered = turn.granted
        after = await post(runtime, "github", b"{}", "e")
        later = await runtime.wait(after)

    assert stands == '["deploy"]'
    assert (turn.trust, offered) == ("external", ("deploy",))
    assert later is not None
    assert later.granted == ()
    assert acted == ["shop"]
