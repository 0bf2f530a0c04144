"""Budgets: what may be spent is known before it is, and what was spent is never more."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from tests.integration.gate.spending import (
    MAIN,
    NOON,
    PAID,
    costs,
    outsider,
    paid,
    reply,
    spending,
    status,
)
from wakeful.access.principal import Principal
from wakeful.doors import messaging
from wakeful.doors.messaging import Message
from wakeful.gate.budget_acts import Raise
from wakeful.gate.budgets import GIVEN_BACK_MS
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import call
from wakeful.models.tariffs import UNPRICED, Tariff
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, operator_draft, says, wait_for
from wakeful.tools.tool import tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.budget import BudgetRules, DayLimits
from wakeful.vocabulary.errors import Garbled, InvalidInput, Transient
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Trust

DAY_S = 86_400


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


async def test_what_a_question_may_cost_is_set_aside_and_then_settled():
    pause = Pause("hm", then=costs(100))
    model = paid([pause])
    async with spending(model, BudgetRules(money_per_day=1.0)) as runtime:
        receipt = await runtime.send("hello")
        await pause.reached.wait()
        during = await status(runtime)
        pause.go_on.set()
        await runtime.wait(receipt)
        after = await status(runtime)

    assert model.requests[0].max_tokens == 4_000
    assert (during.money.reserved, during.money.spent) == (0.04, 0.0)
    assert (after.money.reserved, after.money.spent) == (0.0, 0.001)


async def test_the_last_cent_buys_a_short_answer():
    model = paid([costs(4_000), costs(2_000), costs(2_000)])
    async with spending(model, BudgetRules(money_per_day=0.06)) as runtime:
        assert await reply(runtime) == "well"
        assert await reply(runtime) == "well"
        refused = await runtime.send("and now?")

    assert [request.max_tokens for request in model.requests] == [4_000, 2_000]
    assert (refused.outcome, refused.reason) == (Outcome.PARKED, "budget")
    assert refused.look_at == NOON + DAY_S * 500


async def test_who_is_parked_is_answered_when_the_next_day_begins():
    clock = ManualClock(NOON)
    model = paid([costs(4_000), costs(1, "good morning")])
    async with spending(model, BudgetRules(money_per_day=0.04), clock=clock) as runtime:
        await reply(runtime)
        parked = await runtime.send("later then")
        clock.advance(DAY_S / 2 + 1)
        turn = await runtime.wait(parked)
        after = await status(runtime)

    assert turn is not None
    assert turn.reply == "good morning"
    assert after.money.spent == pytest.approx(0.00001)


async def test_who_waits_for_money_that_others_only_set_aside_is_answered_the_same_day():
    clock, pause = ManualClock(NOON), Pause("hm", then=costs(100))
    model = paid([pause, costs(1, "your turn")])
    async with spending(model, BudgetRules(money_per_day=0.045), clock=clock) as runtime:
        first = await runtime.send("a long one", session="first")
        await pause.reached.wait()
        second = await runtime.send("and me?", session="second")
        pause.go_on.set()
        await runtime.wait(first)
        clock.advance(6)
        turn = await runtime.wait(second)
        told = await runtime.store.read("SELECT 1 FROM events WHERE kind = 'budget.exhausted'")

    assert (second.outcome, second.look_at) == (Outcome.PARKED, NOON + GIVEN_BACK_MS)
    assert turn is not None
    assert turn.reply == "your turn"
    assert not told


async def test_a_turn_waits_for_money_that_others_only_set_aside():
    """It ended, and said that the budget was used up, though hardly anything was spent."""
    clock, pause, is_back = ManualClock(NOON), Pause("hm", then=costs(100)), asyncio.Event()

    @tool(effect="read")
    async def wander() -> str:
        """Wander about."""
        await is_back.wait()
        return "back"

    model = paid([costs(1, "", call("wander")), pause, costs(1, "nothing new")])
    async with spending(
        model, BudgetRules(money_per_day=0.045), clock=clock, tools=(wander,)
    ) as runtime:
        wanders = await runtime.send("look around", session="second")
        await wait_for(runtime, "turn.tool")
        first = await runtime.send("a long one", session="first")
        await pause.reached.wait()
        is_back.set()
        left = await wait_for(runtime, "turn.left")
        pause.go_on.set()
        await runtime.wait(first)
        clock.advance(6)
        turn = await runtime.wait(wanders)

    assert (left.data["reason"], left.data["resume_at"]) == ("budget", NOON + GIVEN_BACK_MS)
    assert turn is not None
    assert turn.reply == "nothing new"


async def test_a_raise_lets_what_is_parked_go_on_at_once():
    model = paid([costs(4_000), costs(1, "thanks")])
    async with spending(model, BudgetRules(money_per_day=0.04)) as runtime:
        await reply(runtime)
        parked = await runtime.send("more?")
        assert (await status(runtime)).parked == 1
        wish = Raise(agent_id="main", money=1.0)
        released = await runtime.services.budget_acts.increase(wish, "operator")
        raised = await status(runtime)
        turn = await runtime.wait(parked)

    assert (released, raised.money.cap) == (1, 1.04)
    assert turn is not None
    assert turn.reply == "thanks"


async def test_a_raise_ends_with_the_day():
    clock = ManualClock(NOON)
    async with spending(paid([]), BudgetRules(money_per_day=0.5), clock=clock) as runtime:
        acts = runtime.services.budget_acts
        await acts.increase(Raise(agent_id="main", money=1.0), "operator")
        during = await status(runtime)
        clock.advance(DAY_S)
        after = await status(runtime)

    assert (during.money.cap, after.money.cap) == (1.5, 0.5)


async def test_in_a_turn_the_end_of_the_money_is_a_sentence():
    model = paid([costs(4_000, "", call("look"))])
    async with spending(model, BudgetRules(money_per_day=0.045), tools=(look,)) as runtime:
        turn = await runtime.wait(await runtime.send("look"))

    assert turn is not None
    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "limit")
    assert turn.reply is not None
    assert "wakeful budget raise" in turn.reply


async def test_a_smaller_limit_of_the_turn_binds():
    model = paid([costs(3_000, "", call("look")), costs(1_000)])
    async with spending(
        model, BudgetRules(money_per_day=1.0), tools=(look,), limits=Limits(money=0.045)
    ) as runtime:
        await reply(runtime)

    assert [request.max_tokens for request in model.requests] == [4_000, 1_500]


async def test_people_are_answered_when_others_have_spent_all_they_may():
    model = paid([costs(4_000)] * 4 + [costs(1, "of course")])
    rules = BudgetRules(money_per_day=0.2, share_of_a_source=1)
    async with spending(model, rules) as runtime:
        for number in range(4):
            accepted = await runtime.accept(outsider(f"alarm {number}"))
            await runtime.wait(accepted)
        refused = await runtime.accept(outsider("one more"))
        left = (await status(runtime)).money.left_for_others
        answer = await reply(runtime, "are you there?")

    assert (refused.outcome, refused.reason, left) == (Outcome.PARKED, "budget", 0.0)
    assert answer == "of course"


async def test_what_a_person_caused_may_use_the_part_of_people():
    model = paid([costs(4_000), costs(4_000), costs(1, "done")])
    async with spending(model, BudgetRules(money_per_day=0.1)) as runtime:
        said = await runtime.send("begin")
        await runtime.wait(said)
        await runtime.wait(await runtime.accept(outsider()))
        helper = operator_draft(
            MAIN, "the result", kind=Kind.SUBAGENT_ANNOUNCE, root_id=said.stimulus_id, depth=1
        )
        turn = await runtime.wait(await runtime.accept(helper))

    assert turn is not None
    assert turn.reply == "done"


async def test_turns_of_others_are_counted_and_those_of_people_are_not():
    model = paid([costs(1)] * 5)
    rules = BudgetRules(turns_per_day=2, share_of_a_source=1)
    async with spending(model, rules) as runtime:
        await reply(runtime)
        for _ in range(2):
            await runtime.wait(await runtime.accept(outsider()))
        refused = await runtime.accept(outsider())
        answer = await reply(runtime)
        used = (await status(runtime)).turns

    assert (refused.outcome, refused.reason) == (Outcome.PARKED, "budget")
    assert (answer, used.used, used.cap) == ("well", 2, 2)


async def test_an_origin_and_a_source_have_limits_of_their_own():
    budget = BudgetRules(
        money_per_day=1.0,
        origins={"webhook": DayLimits(money_per_day=0.1)},
        sources={"noisy": DayLimits(turns_per_day=1)},
    )
    async with spending(paid([costs(4_000)] * 9), budget) as runtime:
        await runtime.wait(await runtime.accept(outsider(source="noisy")))
        noisy = await runtime.accept(outsider(source="noisy"))
        await runtime.wait(await runtime.accept(outsider(source="calm")))
        await runtime.wait(await runtime.accept(outsider(source="calm")))
        calm = await runtime.accept(outsider(source="calm"))
        answer = await reply(runtime)

    assert [noisy.outcome, calm.outcome] == [Outcome.PARKED, Outcome.PARKED]
    assert answer == "well"


async def test_a_compaction_is_paid_by_whoever_asks_for_it():
    """Else a token with a limit could have a conversation summed up again and again."""
    alice = Principal(
        token_id="tk_a", name="alice", scopes=("send",), owner="tk_a", trust=Trust.EXTERNAL
    )
    key = SessionKey("agent:main:api:a")
    rules = BudgetRules(sources={"alice": DayLimits(money_per_day=0.04)})
    async with spending(paid([costs(4_000), costs(4_000)]), rules) as runtime:
        said = await messaging.send(runtime.services, alice, key, Message(text="hello"))
        await runtime.wait(said)
        asked = await runtime.services.compactions.ask(key, "sum it up", None, alice)
        again = await messaging.send(runtime.services, alice, key, Message(text="/compact"))
        waiting = await runtime.services.views.ledger.waiting()

    assert (asked.outcome, asked.reason) == (Outcome.PARKED, "budget")
    assert again.outcome is Outcome.COMMAND
    assert waiting.parked == 2


async def test_a_price_that_nobody_knows_is_told_and_only_turns_count():
    unknown = says("well")
    lines = [type(unknown)(content=unknown.content, usage=Usage(output=5, cost=None), model="odd")]
    async with spending(paid(lines * 2, UNPRICED), BudgetRules(money_per_day=0.01)) as runtime:
        receipt = await runtime.send("hello")
        await runtime.wait(receipt)
        await reply(runtime)
        money = (await status(runtime)).money
        notices = await runtime.store.read("SELECT kind, subject FROM notices")
        event = await wait_for(runtime, "budget.unpriced")

    assert receipt.unpriced
    assert (money.spent, money.unpriced_calls) == (0.0, 2)
    assert [tuple(row) for row in notices] == [("unpriced", "odd")]
    assert event.data["model"] == "odd"


async def test_at_four_fifths_of_a_cap_people_are_told_once_who_spent_it():
    model, clock = paid([costs(4_000)] * 3), ManualClock(NOON)
    async with spending(model, BudgetRules(money_per_day=0.12), clock=clock) as runtime:
        for _ in range(3):
            await reply(runtime)
        warned = await runtime.store.read("SELECT data FROM events WHERE kind = 'budget.warned'")
        notices = await runtime.store.read("SELECT text FROM notices WHERE kind = 'budget'")

    assert len(warned) == len(notices) == 1
    assert "most of it by user" in notices[0][0]
    assert msgspec.json.decode(warned[0][0]) == {
        "agent_id": "main",
        "scope": "agent",
        "day": datetime.fromtimestamp(NOON / 1000, UTC).date().isoformat(),
        "cap": 0.12,
        "spent": 0.12,
        "top_origin": "user",
    }


async def test_the_limit_of_an_origin_is_raised_by_the_command_that_its_notice_names():
    budget = BudgetRules(origins={"webhook": DayLimits(turns_per_day=1)}, share_of_a_source=1)
    async with spending(paid([costs(1)] * 2), budget) as runtime:
        await runtime.wait(await runtime.accept(outsider("one")))
        waits = await runtime.accept(outsider("two"))
        ((told,),) = await runtime.store.read("SELECT text FROM notices WHERE kind = 'budget'")
        wish = Raise(agent_id="main", turns=50, scope="origin:webhook")
        await runtime.services.budget_acts.increase(wish, "operator")
        turn = await runtime.wait(waits)

    assert waits.outcome is Outcome.PARKED
    assert "`wakeful budget raise --turns 50 --agent main --origin webhook` allows more" in told
    assert turn is not None
    assert turn.state is TurnState.DONE


async def test_where_nothing_was_spent_nobody_is_told_that_most_of_it_was():
    budget = BudgetRules(money_per_day=0, turns_per_day=None)
    free = Tariff(price=Price(output=Rate(base=0.0)), max_output=4_000)
    async with spending(paid([says("free")], free), budget) as runtime:
        answer = await reply(runtime)
        notices = await runtime.store.read("SELECT text FROM notices")

    assert (answer, notices) == ("free", [])


async def test_at_four_fifths_of_the_turns_one_notice_says_so():
    model = paid(lambda _: costs(1))
    rules = BudgetRules(money_per_day=None, turns_per_day=5, share_of_a_source=1)
    async with spending(model, rules) as runtime:
        told: list[int] = []
        for number in range(5):
            await runtime.wait(await runtime.accept(outsider(f"{number}")))
            notices = await runtime.store.read("SELECT text FROM notices WHERE kind = 'budget'")
            told.append(len(notices))
        await runtime.wait(await runtime.send("a person's turn does not count"))
        notices = await runtime.store.read("SELECT text FROM notices WHERE kind = 'budget'")

    assert told == [0, 0, 0, 1, 1]
    ((text,),) = notices
    assert text.startswith("main has begun 4 of the 5 turns that it may begin by itself today")
    assert "`wakeful budget raise --turns 50 --agent main`" in text


async def test_a_broken_answer_is_settled_at_an_estimate_and_a_refused_one_at_nothing():
    model = paid([Garbled("cut"), costs(1), Transient("busy", is_free=True), costs(1)])
    clock = ManualClock(NOON)
    async with spending(model, BudgetRules(), clock=clock) as runtime:
        await reply(runtime)
        receipt = await runtime.send("again")
        await wait_for(runtime, "turn.left", lambda event: event.data["error"] == "busy")
        clock.advance(60)
        await runtime.wait(receipt)
        rows = await runtime.store.read(
            "SELECT state, cost, is_estimate FROM asks ORDER BY turn_id, attempt"
        )
        spent = (await status(runtime)).money

    assert [tuple(row) for row in rows] == [
        ("garbled", 10_240_000, 1),
        ("answered", 10_000, 0),
        ("failed", 0, 0),
        ("answered", 10_000, 0),
    ]
    assert (spent.spent, spent.reserved) == (pytest.approx(0.01026), 0.0)


async def test_an_answer_that_was_stopped_is_settled_at_what_was_seen_of_it():
    pause = Pause("word " * 800)  # a thousand tokens
    async with spending(paid([pause]), BudgetRules()) as runtime:
        receipt = await runtime.send("tell me everything")
        await pause.reached.wait()
        await runtime.stop()
        turn = await runtime.wait(receipt)
        money = (await status(runtime)).money

    assert turn is not None
    assert turn.cost == pytest.approx(0.02024)
    assert (money.spent, money.reserved) == (pytest.approx(0.02024), 0.0)


async def test_a_model_that_stands_in_is_paid_beside_the_one_that_broke_off():
    first, second = paid([Transient("broke off")]), paid([costs(100)])
    agent = Agent(model=first, fallback_models=[second], budget=BudgetRules())
    async with Runtime(agents=[agent], clock=ManualClock(NOON)) as runtime:
        await reply(runtime)
        money = (await status(runtime)).money

    assert money.spent == pytest.approx(0.001 + 1_024 * 10 / 1_000_000)


async def test_an_answer_dearer_than_its_reservation_is_told_and_blocks_the_next():
    model = paid([costs(9_000)])
    async with spending(model, BudgetRules(money_per_day=0.05)) as runtime:
        await reply(runtime)
        event = await wait_for(runtime, "budget.overrun")
        refused = await runtime.send("more")

    assert event.data["over"] == pytest.approx(0.05)
    assert refused.outcome is Outcome.PARKED


async def test_a_clock_that_is_moved_back_brings_no_money_back():
    clock = ManualClock(NOON)
    model = paid([costs(4_000), costs(4_000)])
    async with spending(model, BudgetRules(money_per_day=0.04), clock=clock) as runtime:
        await reply(runtime)
        clock.jump_to(NOON - DAY_S * 1000)
        refused = await runtime.send("yesterday")

    assert refused.outcome is Outcome.PARKED
    assert refused.look_at == NOON + DAY_S * 500


async def test_a_question_asked_before_midnight_is_paid_from_the_day_before():
    clock = ManualClock(NOON)
    pause = Pause("hm", then=costs(4_000))
    limits = Limits(first_token_s=DAY_S, idle_s=DAY_S, answer_s=DAY_S, wall_s=DAY_S)
    async with spending(
        paid([pause, costs(4_000)]), BudgetRules(money_per_day=0.04), clock=clock, limits=limits
    ) as runtime:
        receipt = await runtime.send("slowly")
        await pause.reached.wait()
        clock.advance(DAY_S / 2 + 1)
        answer = await reply(runtime, "next day", session="dm:other")
        pause.go_on.set()
        await runtime.wait(receipt)
        money = (await status(runtime)).money

    assert answer == "well"
    assert (money.spent, money.reserved) == (0.04, 0.0)


async def test_a_chain_that_has_cost_too_much_goes_no_further():
    model = paid([costs(4_000), costs(4_000), costs(1)])
    async with spending(model, BudgetRules(money_per_chain=0.08)) as runtime:
        said = await runtime.send("begin")
        await runtime.wait(said)
        more = {"kind": Kind.SUBAGENT_ANNOUNCE, "root_id": said.stimulus_id, "depth": 1}
        await runtime.wait(await runtime.accept(operator_draft(MAIN, "one", **more)))
        cut = await runtime.accept(operator_draft(MAIN, "two", **more))
        again = await runtime.accept(operator_draft(MAIN, "three", **more))
        notices = await runtime.store.read("SELECT kind FROM notices WHERE kind = 'loop'")
        answer = await reply(runtime, "something else")

    assert [(one.outcome, one.reason) for one in (cut, again)] == [
        (Outcome.SUPPRESSED, "loop"),
        (Outcome.SUPPRESSED, "loop"),
    ]
    assert len(notices) == 1
    assert answer == "well"


async def test_without_limits_nothing_is_refused():
    budget = BudgetRules(money_per_day=None, turns_per_day=None, money_per_chain=None)
    async with spending(paid([costs(40_000)] * 3, PAID), budget) as runtime:
        for _ in range(3):
            assert await reply(runtime) == "well"


def test_an_origin_that_there_is_not_is_refused():
    with pytest.raises(InvalidInput, match=r"budget\.origins\.ticks: must be one of user, hub"):
        Agent(budget=BudgetRules(origins={"ticks": DayLimits()}))
