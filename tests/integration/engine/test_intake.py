"""What intake promises: nothing twice, nothing lost, storms and loops cut, bad input refused."""

import asyncio

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.integration.engine.looking import shown, states
from wakeful.broker import lane_rows
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings, StormSettings
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
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
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Outcome, Receipt, Trust
from wakeful.vocabulary.text import clean

MAIN = "agent:main:main"


def says_ok(_: object) -> str:
    return "ok"


async def test_an_equal_key_gives_an_equal_answer_and_no_second_turn():
    model = Scripted(["only once"])
    async with in_memory(model) as runtime:
        first = await runtime.send("hello", dedup_key="k1")
        again = await runtime.send("hello", dedup_key="k1")
        turn = await runtime.wait(again)

    assert (again.outcome, again.duplicate_of) == (Outcome.DUPLICATE, first.stimulus_id)
    assert again.reason == "started"
    assert turn is not None
    assert turn.reply == "only once"
    assert len(model.requests) == 1


async def test_a_window_that_began_on_a_clock_that_was_ahead_is_as_long_as_any_other():
    clock = ManualClock()
    alarm = operator_draft(MAIN, "ring", dedup_key="k", dedup_window_s=300)
    async with in_memory(Scripted(says_ok), clock=clock) as runtime:
        right = clock.now()
        clock.jump_to(right + 365 * 86_400_000)
        first = await runtime.accept(alarm)
        clock.jump_to(right)
        again = await runtime.accept(alarm)
        clock.advance(299)
        still = await runtime.accept(alarm)
        clock.advance(1)
        anew = await runtime.accept(alarm)

    assert {again.duplicate_of, still.duplicate_of} == {first.stimulus_id}
    assert anew.outcome is not Outcome.DUPLICATE


async def test_a_key_without_a_window_holds_wherever_the_clock_is_moved():
    clock = ManualClock()
    async with in_memory(Scripted(says_ok), clock=clock) as runtime:
        right = clock.now()
        first = await runtime.send("hello", dedup_key="k")
        for moved_to in (right + 365 * 86_400_000, right - 86_400_000):
            clock.jump_to(moved_to)
            again = await runtime.send("hello", dedup_key="k")
            assert again.duplicate_of == first.stimulus_id


async def test_equal_keys_at_the_same_moment_are_one_stimulus():
    async with in_memory(Scripted(says_ok)) as runtime:
        receipts = await asyncio.gather(*(runtime.send("hello", dedup_key="k") for _ in range(50)))
        found = await states(runtime, "id")

    firsts = [r for r in receipts if r.outcome is not Outcome.DUPLICATE]
    assert len(firsts) == 1
    assert found == [firsts[0].stimulus_id]
    assert {r.duplicate_of for r in receipts} == {None, firsts[0].stimulus_id}


async def test_a_key_may_be_used_again_after_its_window_and_by_another_source():
    clock = ManualClock()
    async with in_memory(["a", "b", "c"], clock=clock) as runtime:
        keyed = operator_draft(MAIN, "hello", dedup_key="k", dedup_window_s=300)
        first = await runtime.accept(keyed)
        again = await runtime.accept(keyed)
        other = await runtime.accept(replace(keyed, source="somebody else"))
        clock.advance(301)
        later = await runtime.accept(keyed)

    assert again.outcome is Outcome.DUPLICATE
    assert Outcome.DUPLICATE not in {first.outcome, other.outcome, later.outcome}


async def test_a_duplicate_with_another_body_says_so():
    async with in_memory(Scripted(says_ok)) as runtime:
        await runtime.send("hello", dedup_key="k")
        again = await runtime.send("something else", dedup_key="k")

    assert again.reason == "different-body"


async def test_one_source_cannot_storm_a_session_and_delays_no_other():
    """F26: the breaker trips for the source alone."""
    clock = ManualClock()
    options = Settings(storm=StormSettings(turns=3, window_s=60))
    async with in_memory(Scripted(says_ok), settings=options, clock=clock) as runtime:

        async def hub(source: str) -> Receipt:
            draft = operator_draft(MAIN, text="hi", kind=Kind.HUB, source=source)
            return await runtime.accept(draft)

        first = [(await hub("loud")).outcome for _ in range(6)]
        other = await hub("calm")
        clock.advance(61)
        afterwards = await hub("loud")
        started = await runtime.store.read("SELECT 1 FROM events WHERE kind = 'storm.started'")
        told = await runtime.store.read("SELECT kind, subject, agent_id FROM notices")

    assert first[3:] == [Outcome.HELD] * 3
    assert Outcome.HELD not in first[:3]
    assert other.outcome is not Outcome.HELD
    assert afterwards.outcome is not Outcome.HELD
    assert len(started) == 1
    assert told == [("storm", "loud", "main")]


async def test_a_causal_chain_that_is_too_long_is_cut_with_one_notice():
    """F26: a loop ends, with one notice."""
    async with in_memory(Scripted(says_ok)) as runtime:
        for depth in (16, 17, 18):
            await runtime.accept(
                operator_draft(
                    session_key=MAIN,
                    text="ping",
                    kind=Kind.SUBAGENT_MESSAGE,
                    root_id="st_root",
                    depth=depth,
                )
            )
        found = await states(runtime, "coalesce(state_reason, 'fine')")
        cut = await runtime.store.read("SELECT 1 FROM events WHERE kind = 'loop.cut'")
        told = await runtime.store.read("SELECT kind, subject FROM notices")

    assert found[1:] == ["loop", "loop"]
    assert found[0] != "loop"
    assert len(cut) == 1
    assert told == [("loop", "st_root")]


def asleep(clock: ManualClock) -> Sleep:
    return Sleep(
        owner=MAIN,
        agent_id="main",
        session_key=MAIN,
        id="sl_1",
        trust=Trust.OPERATOR,
        cause_id=None,
        policy=SleepPolicy.WAKE,
        reason="nothing to do",
        requested_ms=60_000,
        final_ms=60_000,
        created_at=clock.now(),
        wake_at=clock.now() + 60_000,
    )


async def test_a_real_message_ends_the_sleep_in_the_transaction_that_accepts_it():
    clock = ManualClock()
    async with in_memory(Scripted(says_ok), clock=clock) as runtime:
        await runtime.store.transact(lambda tx: sleeps.enter(tx, asleep(clock)))
        later = await runtime.send("no hurry", priority="later")
        still = await runtime.store.read("SELECT buffered FROM sleeps")
        receipt = await runtime.send("wake up")
        left = await runtime.store.read("SELECT 1 FROM sleeps")
        woken = await wait_for(runtime, "sleep.woken")
        turn = await runtime.wait(receipt)

    assert (later.outcome, later.reason) == (Outcome.PARKED, "asleep")
    assert [tuple(row) for row in still] == [(1,)]
    assert not left
    assert woken.data["reason"] == "interrupted"
    assert turn is not None


async def test_a_timer_files_its_stimulus_once_and_never_early():
    clock = ManualClock()
    model = Scripted(["good morning"])
    async with in_memory(model, clock=clock) as runtime:
        draft = operator_draft(MAIN, text="wake", kind=Kind.CALLBACK)
        timer = Timer(
            id="t1",
            due_at=clock.now() + 5_000,
            kind="stimulus",
            target=MAIN,
            payload=msgspec.json.encode(draft).decode(),
        )
        await runtime.store.transact(lambda tx: timers.put(tx, timer))
        clock.advance(4.999)
        await runtime.store.transact(lambda tx: None)
        assert await states(runtime) == []
        clock.advance(0.001)
        await wait_for(runtime, "turn.finished")
        assert await states(runtime) == ["done"]
        assert not await runtime.store.read("SELECT 1 FROM timers")


async def test_a_stimulus_waits_for_its_time_and_expires_after_it():
    clock = ManualClock()
    pause = Pause("busy")
    async with in_memory([pause, "in time"], clock=clock) as runtime:
        start = clock.now()
        await runtime.send("go", priority="now")
        await pause.reached.wait()
        soon = await runtime.accept(
            operator_draft(
                session_key=MAIN, text="soon", not_before=start + 10_000, kind=Kind.SYSTEM_EVENT
            )
        )
        stale = await runtime.accept(
            operator_draft(
                session_key=MAIN, text="stale", expires_at=start + 5_000, kind=Kind.SYSTEM_EVENT
            )
        )
        clock.advance(6)
        pause.go_on.set()
        await wait_for(runtime, "stimulus.expired")
        assert (await states(runtime))[1:] == ["pending", "expired"]
        clock.advance(4)
        turn = await runtime.wait(soon)
        assert await runtime.wait(stale) is None

    assert turn is not None
    assert turn.reply == "in time"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "x" * 2_000_000}, "text"),
        ({"session_key": "agent:Main:main"}, "session_key"),
        ({"session_key": "agent:main:"}, "session_key"),
        ({"session_key": "agent:main:" + "x" * 5000}, "session_key"),
        ({"source": ""}, "source"),
        ({"source": "s" * 300}, "source"),
        ({"dedup_key": "a\x00b"}, "dedup_key"),
        ({"dedup_window_s": 0}, "dedup_window_s"),
        ({"not_before": -1}, "not_before"),
        ({"not_before": 2_000, "expires_at": 1_000}, "expires_at"),
        ({"expires_at": 2**70}, "expires_at"),
        ({"depth": -1}, "depth"),
        ({"depth": 2**31}, "depth"),
    ],
)
async def test_bad_input_is_refused_by_field_and_leaves_nothing(
    changes: dict[str, object], field: str
):
    draft = msgspec.structs.replace(operator_draft(MAIN, text="hello"), **changes)
    async with in_memory([]) as runtime:
        tables = ("stimuli", "lanes", "sessions", "events", "dedup")
        before = [await runtime.store.read(f"SELECT * FROM {table}") for table in tables]
        with pytest.raises(InvalidInput) as refused:
            await runtime.accept(draft)
        after = [await runtime.store.read(f"SELECT * FROM {table}") for table in tables]

    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")
    assert before == after


async def test_what_a_caller_without_types_sends_is_refused_too():
    async with in_memory([]) as runtime:
        with pytest.raises(InvalidInput, match="text: must be text, not int"):
            await runtime.send(7)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="priority: must be now, next or later"):
            await runtime.send("hi", priority="urgent")
        with pytest.raises(InvalidInput, match="mode: must be one of steer, followup"):
            await runtime.send("hi", mode="sometimes")
        with pytest.raises(InvalidInput, match="timeout_s"):
            await runtime.wait("tn_1", timeout_s=0)
        with pytest.raises(NotFound, match=r"^no turn 'tn_1'"):
            await runtime.wait("tn_1")
        with pytest.raises(NotFound, match=r"^no stimulus"):
            await runtime.cancel("st_1")
        with pytest.raises(NotFound, match=r"^no agent 'x' is configured .known: main.$"):
            await runtime.halt("x")
        with pytest.raises(NotFound, match=r"^no agent 'x' is configured"):
            await runtime.send("hi", session="agent:x:main")


HOSTILE = st.text(alphabet=st.characters(exclude_categories=()), min_size=1, max_size=200) | (
    st.sampled_from(["\x00", "\ud800", "a" * 300_000, "\u202e\ufeff", "'; DROP TABLE stimuli; --"])
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=HOSTILE, said=HOSTILE, argument=st.recursive(HOSTILE, st.lists, max_leaves=5))
async def test_hostile_text_goes_through_every_write_and_read(
    text: str, said: str, argument: object
):
    model = Scripted([says(said, call("unknown", value=argument)), said])
    async with in_memory(model) as runtime:
        try:
            receipt = await runtime.send(text)
        except InvalidInput as refused:
            assert refused.field == "text"
            return
        turn = await runtime.wait(receipt)
        assert turn is not None
        entries = await runtime.entries()

    assert shown(model.requests[0]) == [f"user: {clean(text)}"]
    if turn.reply is not None and turn.error is None:
        assert turn.reply == clean(said)
    assert all(entry.content() for entry in entries)


async def test_a_thousand_callers_at_once_are_all_answered_in_order():
    async with in_memory(Scripted(says_ok)) as runtime:
        receipts = await asyncio.gather(
            *(runtime.send(f"{n}", session=f"dm:{n % 10}", mode="queue") for n in range(200))
        )
        for receipt in receipts:
            if receipt.outcome is not Outcome.SUPPRESSED:
                await runtime.wait(receipt)
        found = set(await states(runtime))

    assert found <= {"done", "suppressed"}


async def test_two_agents_do_not_share_a_lane():
    first, second = Scripted(["from one"]), Scripted(["from two"])
    agents = [Agent("one", model=first), Agent("two", model=second)]
    async with Runtime(agents=agents) as runtime:
        one = await runtime.wait(await runtime.send("hi", session="agent:one:main"))
        two = await runtime.wait(await runtime.send("hi", session="agent:two:main"))

    assert one is not None
    assert two is not None
    assert (one.reply, two.reply) == ("from one", "from two")


async def test_a_lane_that_is_not_due_is_not_claimed():
    async with in_memory([]) as runtime:
        await runtime.store.transact(lambda tx: lane_rows.add_missing(tx, [MAIN]))
        rows = await runtime.store.read("SELECT ready_at, owner FROM lanes")

    assert [tuple(row) for row in rows] == [(None, None)]
