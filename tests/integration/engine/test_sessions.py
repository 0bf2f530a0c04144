"""Conversations that end by themselves, choices that hold, and web chats that share one session."""

from typing import Any, NoReturn

import pytest

from tests.wake_gate import open_gate
from wakeful.access.principal import Principal
from wakeful.broker.settlement import Settlement
from wakeful.intake.bindings import Binding, Contact, DmScope, Match
from wakeful.intake.deletion import BoundAutomation, Deletion
from wakeful.intake.sessions import Changes
from wakeful.models.model import Request
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.settings.settings import ResetSettings, Settings
from wakeful.store.database import Store
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
from wakeful.transcript.sessions import SESSIONS
from wakeful.turn.agent import Agent
from wakeful.turn.ending import Ending
from wakeful.vocabulary.errors import InvalidInput, NotFound, StoreFull
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode, QueueOverrides, QueueSettings
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Draft, Outcome, Trust

MAIN = SessionKey("agent:main:main")
OUT = Route(door="out", address="ann")
HOUR_S = 3_600


def well(_: Request) -> str:
    return "well"


async def count(runtime: Runtime, session: str = "main") -> int:
    return len(await runtime.transcripts(session))


async def say(runtime: Runtime, text: str = "x", session: str = "main") -> None:
    assert await runtime.wait(await runtime.send(text, session=session)) is not None


async def beat(runtime: Runtime) -> None:
    draft = operator_draft(MAIN, text="beat", kind=Kind.AUTOMATION)
    assert await runtime.wait(await runtime.accept(draft)) is not None


async def test_a_model_that_nobody_knows_cannot_be_chosen():
    async with in_memory(Scripted(["a"])) as runtime:
        await runtime.wait(await runtime.send("make it"))
        with pytest.raises(InvalidInput, match="model"):
            await runtime.choose("main", Changes(model="nobody:knows", label="L"))
        chosen = await runtime.choose("main", Changes(model="demo"))

    assert chosen.overrides.model == "demo"
    assert chosen.label is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"send_policy": "never"}, "send_policy"),
        ({"activation": "sometimes"}, "activation"),
        ({"label": 5}, "label"),
        ({"queue": "collect"}, "queue"),
        ({"queue": QueueOverrides(drop="all")}, "queue.drop"),  # pyright: ignore[reportArgumentType]
    ],
)
async def test_a_word_that_nobody_knows_cannot_be_chosen(changes: dict[str, Any], field: str):
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        with pytest.raises(InvalidInput) as refused:
            await runtime.choose("main", Changes(**changes))
        await say(runtime)

    assert refused.value.field == field


async def test_a_queue_mode_that_nobody_knows_cannot_be_set():
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        with pytest.raises(InvalidInput) as refused:
            await runtime.set_queue("main", QueueOverrides(mode="colect"))  # pyright: ignore[reportArgumentType]
        await runtime.set_queue("main", QueueOverrides(mode="collect"))  # pyright: ignore[reportArgumentType]
        await say(runtime)
        (row,) = await runtime.store.read(
            "SELECT queue FROM sessions WHERE key NOT LIKE '%:activity'"
        )

    assert refused.value.field == "queue.mode"
    assert '"mode":"collect"' in row[0]


async def test_only_people_keep_a_conversation_alive_and_only_they_end_it():
    clock = ManualClock()
    settings = Settings(reset=ResetSettings(idle_minutes=True))
    async with in_memory(Scripted(well), settings=settings, clock=clock) as runtime:
        await say(runtime, "one")
        clock.advance(0.9 * HOUR_S)
        await beat(runtime)
        clock.advance(0.9 * HOUR_S)
        await beat(runtime)
        unended = await count(runtime)
        await say(runtime, "two")
        event = await wait_for(runtime, "session.reset")
        clock.advance(0.9 * HOUR_S)
        await say(runtime, "three")
        ended = await count(runtime)
        shown = [entry.body for entry in await runtime.entries()]

    assert (unended, ended, event.data["by"]) == (1, 2, "idle")
    assert '"two"' in shown[0]
    assert len(shown) == 4


async def test_without_a_rule_no_conversation_ends():
    clock = ManualClock()
    async with in_memory(Scripted(well), clock=clock) as runtime:
        await say(runtime)
        clock.advance(400 * 24 * HOUR_S)
        await say(runtime)

        assert await count(runtime) == 1


async def test_a_message_that_begins_anew_does_not_join_the_turn_that_runs():
    clock, pause = ManualClock(), Pause("slow")
    settings = Settings(reset=ResetSettings(idle_minutes=1))
    model = Scripted(["one", pause, "two"])
    async with in_memory(model, settings=settings, clock=clock) as runtime:
        await say(runtime, "one")
        clock.advance(HOUR_S)
        job = await runtime.accept(operator_draft(MAIN, text="job", kind=Kind.AUTOMATION))
        await pause.reached.wait()
        receipt = await runtime.send("two", mode="steer")
        pause.go_on.set()
        await runtime.wait(job)
        await runtime.wait(receipt)
        new, old = await runtime.transcripts()

    assert receipt.outcome is Outcome.QUEUED
    assert (old.tip.leaf_depth, new.tip.leaf_depth) == (3, 1)


async def test_a_reset_that_a_stop_took_the_message_of_comes_with_the_next():
    clock, pause = ManualClock(), Pause("slow")
    settings = Settings(reset=ResetSettings(idle_minutes=1))
    model = Scripted(["one", pause, "three"])
    async with in_memory(model, settings=settings, clock=clock) as runtime:
        await say(runtime, "one")
        clock.advance(HOUR_S)
        job = await runtime.accept(operator_draft(MAIN, text="job", kind=Kind.AUTOMATION))
        await pause.reached.wait()
        await runtime.send("two")
        await runtime.stop()
        await runtime.wait(job)
        await say(runtime, "three")
        (row,) = await runtime.store.read(
            "SELECT resets FROM sessions WHERE key NOT LIKE '%:activity'"
        )

        assert await count(runtime) == 2
    assert row[0] == "[]"


async def test_a_fork_is_not_thrown_away_by_a_reset_that_was_asked_for_before_it():
    pause = Pause("slow")
    async with in_memory(Scripted(["one", pause, "three"])) as runtime:
        await say(runtime, "one")
        at = (await runtime.entries())[-1].id
        two = await runtime.send("two")
        await pause.reached.wait()
        await runtime.reset("main")
        pause.go_on.set()
        await runtime.wait(two)
        await runtime.fork("main", at=at)
        await say(runtime, "three")

        assert [entry.depth for entry in await runtime.entries()] == [0, 1, 2, 3]
        assert await count(runtime) == 1


async def test_what_somebody_goes_back_to_from_before_a_reset_does_not_become_unread():
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        at = (await runtime.entries())[-1].id
        await runtime.see()
        await runtime.reset("main")
        forked = await runtime.fork("main", at=at)
        await say(runtime)
        (row,) = await runtime.store.read(SESSIONS.select("WHERE key = :key"), key=MAIN)

    assert (forked.unread, SESSIONS.read(row).unread) == (0, 1)


async def test_a_conversation_that_never_began_is_not_kept_when_somebody_goes_back():
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        at = (await runtime.entries())[-1].id
        await runtime.reset("main")
        await runtime.fork("main", at=at)

        assert await count(runtime) == 1


async def test_a_fork_does_not_tell_a_stranger_which_sessions_there_are():
    async with in_memory(Scripted(well)) as runtime:
        for owner in ("tk_a", "tk_b"):
            draft = Draft(
                session_key=f"agent:main:web:{owner}", trust=Trust.OPERATOR, text="x", owner=owner
            )
            await runtime.wait(await runtime.accept(draft))
        mine, other = SessionKey("agent:main:web:tk_a"), SessionKey("agent:main:web:tk_b")
        acts = runtime.services.acts

        with pytest.raises(NotFound, match="no session"):
            await acts.fork(mine, to=other, owner="tk_a")
        for owner in ("tk_b", "operator"):
            with pytest.raises(InvalidInput, match="there is a session"):
                await acts.fork(mine, to=other, owner=owner)


@pytest.mark.parametrize("daily", ["4:00", "24:00", "noon"])
def test_a_time_that_is_none_is_refused(daily: str):
    with pytest.raises(InvalidInput, match=r"reset\.daily: must be a time of the day"):
        Settings(reset=ResetSettings(daily=daily))


async def test_where_sending_is_denied_turns_run_and_nothing_is_sent():
    received: list[str] = []

    async def out(delivery: Delivery) -> None:
        received.append(delivery.text)

    model = Scripted(["silent", says("", call("send_message", text="hello")), "told", "loud"])
    async with in_memory(model, doors={"out": out}) as runtime:
        await runtime.wait(await runtime.send("make it"))
        await runtime.choose("main", Changes(send_policy="deny"))
        turn = await runtime.wait(await runtime.send("quiet", route=OUT))
        filed = await runtime.store.read("SELECT id FROM deliveries")
        await runtime.choose("main", Changes(send_policy=None))
        await runtime.wait(await runtime.send("loud", route=OUT))
        await wait_for(runtime, "delivery.acknowledged")
        told = [entry.body for entry in await runtime.entries()]

    assert turn is not None
    assert (turn.reply, filed) == ("told", [])
    assert any("nothing may be sent from this conversation" in body for body in told)
    assert received == ["loud"]


async def test_unified_web_chats_share_their_turns_and_are_only_names():
    async with in_memory(Scripted(well), settings=Settings(unified=True)) as runtime:
        receipts = [await runtime.send("x", session=f"web:{number}") for number in (1, 2)]
        for receipt in receipts:
            await runtime.wait(receipt)
        # Made as if before the switch: it stays what it was, and where it was.
        await runtime.accept(operator_draft("agent:main:web:1", text="old"))
        deleted = await runtime.delete("web:1")
        rows = await runtime.store.read(
            "SELECT key FROM sessions WHERE key NOT LIKE '%:activity' ORDER BY key"
        )
        seen = [len(await runtime.entries(session)) for session in ("web:1", "unified")]

    assert {receipt.session_key for receipt in receipts} == {"agent:main:unified"}
    assert deleted.deleted
    assert [row[0] for row in rows] == ["agent:main:unified", "agent:main:web:1"]
    assert seen[0] == seen[1] > 0


async def test_a_session_with_automations_is_deleted_only_when_confirmed():
    bound = [BoundAutomation(id="au_1", name="morning", enabled=True)]
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        settlement = Settlement(runtime.bus)
        deletion = Deletion(
            runtime.store,
            runtime.bus,
            Ids(runtime.clock),
            runtime.clock,
            settlement,
            ending_of(runtime, settlement).end_turn,
            lambda _tx, _key: bound,
        )
        refused = await deletion.delete(MAIN)
        kept = await runtime.entries()
        confirmed = await deletion.delete(MAIN, is_confirmed=True)

    assert (refused.deleted, refused.blocked_by_automations, refused.automations) == (
        False,
        True,
        bound,
    )
    assert len(kept) == 2
    assert confirmed.deleted


def ending_of(runtime: Runtime, settlement: Settlement) -> Ending:
    ids = Ids(runtime.clock)
    return Ending(runtime.bus, ids, settlement, open_gate(runtime.bus, ids).budgets)


class FullAfterwards:
    """A store whose disk is full once a session is deleted."""

    def __init__(self, store: Store) -> None:
        self.transact = store.transact

    async def read(self, sql: str, **params: object) -> NoReturn:
        raise StoreFull


async def test_a_session_is_deleted_though_its_entries_cannot_be_removed_yet():
    async with in_memory(Scripted(well)) as runtime:
        await say(runtime)
        settlement, store = Settlement(runtime.bus), FullAfterwards(runtime.store)
        deletion = Deletion(
            store,  # pyright: ignore[reportArgumentType] (what it asks of one)
            runtime.bus,
            Ids(runtime.clock),
            runtime.clock,
            settlement,
            ending_of(runtime, settlement).end_turn,
            lambda _tx, _key: [],
        )
        done = await deletion.delete(MAIN)

        assert done.deleted
        assert (
            await runtime.store.read("SELECT key FROM sessions WHERE key NOT LIKE '%:activity'")
            == []
        )


async def test_what_waits_in_a_session_is_cancelled_in_steps_when_it_is_deleted():
    pause = Pause("slow")
    async with in_memory(Scripted([pause])) as runtime:
        await runtime.send("x")
        await pause.reached.wait()
        drafts = [operator_draft(MAIN, text="job", kind=Kind.AUTOMATION) for _ in range(1200)]
        await runtime.store.transact(lambda tx: runtime.services.intake.accept_in(tx, drafts))
        await runtime.delete("main")
        rows = await runtime.store.read(
            "SELECT state, state_reason, COUNT(*) FROM stimuli GROUP BY state, state_reason"
        )

    assert [tuple(row) for row in rows] == [("cancelled", "session-deleted", 1201)]


async def test_the_first_turn_of_a_new_conversation_knows_what_the_reset_forgot():
    clock, model = ManualClock(), Scripted(well)
    settings = Settings(reset=ResetSettings(idle_minutes=1))
    async with in_memory(model, settings=settings, clock=clock) as runtime:
        await say(runtime)
        await runtime.choose("main", Changes(thinking="high"))
        await say(runtime)
        clock.advance(HOUR_S)
        await say(runtime)

    assert [request.thinking for request in model.requests] == [None, "high", None]


async def test_a_block_of_a_binding_replaces_the_whole_block_of_its_agent():
    agent = Agent(model=Scripted(well), queue=QueueOverrides(mode=Mode.COLLECT, debounce_ms=70))
    bindings = (
        Binding(match=Match(door="chat"), queue=QueueOverrides(cap=5)),
        Binding(match=Match(door="mail")),
    )
    settings = Settings(
        bindings=bindings, dm_scope=DmScope.PER_CHANNEL_PEER, queue=QueueOverrides(cap=9)
    )
    async with Runtime(agents=[agent], settings=settings) as runtime:
        found: list[QueueSettings] = []
        for door in ("chat", "mail"):
            contact = Contact(door=door, peer="ann")
            receipt = await runtime.receive(Principal.operator(), contact, "x")
            await runtime.wait(receipt)
            rows = await runtime.store.read(
                SESSIONS.select("WHERE key = :key"), key=receipt.session_key
            )
            draft = operator_draft(receipt.session_key, text="x")
            queue = runtime.services.intake.queue
            found.append(queue.of(SESSIONS.read(rows[0]), draft))

    given, inherited = found
    assert (given.mode, given.debounce_ms, given.cap) == (Mode.STEER, 0, 5)
    assert (inherited.mode, inherited.debounce_ms, inherited.cap) == (Mode.COLLECT, 70, 9)
