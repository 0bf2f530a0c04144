"""Shares: no stranger uses up the day of an agent for everybody."""

from msgspec.structs import replace

from tests.integration.gate.spending import costs, outsider, paid, spending, status
from wakeful.access.principal import Principal
from wakeful.doors import messaging
from wakeful.doors.messaging import Message
from wakeful.gate.budget_acts import Raise
from wakeful.models.scripted import call, says
from wakeful.runtime import Runtime
from wakeful.tools.tool import ToolResult, tool
from wakeful.vocabulary.budget import BudgetRules, DayLimits
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Receipt, Trust

RULES = BudgetRules(money_per_day=None, turns_per_day=4)


def holder(name: str) -> Principal:
    return Principal(
        name=name, scopes=("send",), owner=f"tk_{name}", trust=Trust.EXTERNAL, token_id=f"tk_{name}"
    )


async def say(runtime: Runtime, name: str) -> Receipt:
    """Say something as the holder of a token, and wait for the answer if there will be one."""
    key = SessionKey(f"agent:main:api:{name}")
    said = await messaging.send(runtime.services, holder(name), key, Message(text="hello"))
    if said.outcome is Outcome.STARTED:
        await runtime.wait(said)
    return said


async def notices(runtime: Runtime) -> list[str]:
    rows = await runtime.store.read("SELECT text FROM notices WHERE kind = 'budget' ORDER BY text")
    return [row[0] for row in rows]


async def test_no_token_uses_up_the_turns_of_the_day():
    async with spending(paid(lambda _: costs(1)), RULES) as runtime:
        alice = [(await say(runtime, "alice")).outcome for _ in range(3)]
        told = await notices(runtime)
        bob = [(await say(runtime, "bob")).outcome for _ in range(1)]
        share = (await status(runtime, "source:alice")).turns
        person = await runtime.wait(await runtime.send("and me?"))

    assert alice == [Outcome.STARTED, Outcome.STARTED, Outcome.PARKED]
    assert bob == [Outcome.STARTED]
    assert (share.used, share.cap) == (2, 2)
    assert told == [
        "main has begun 2 of the 2 turns that source alice may begin today; "
        "`wakeful budget raise --turns 50 --agent main --source alice` allows more."
    ]
    assert person is not None


async def test_no_token_spends_all_the_money_that_others_may_spend():
    rules = BudgetRules(money_per_day=0.2, turns_per_day=None)
    async with spending(paid(lambda _: costs(4_000)), rules) as runtime:
        alice = [(await say(runtime, "alice")).outcome for _ in range(4)]
        bob = await say(runtime, "bob")

    assert alice.count(Outcome.STARTED) == 3  # the third answer is a short one
    assert alice[-1] is Outcome.PARKED
    assert bob.outcome is Outcome.STARTED


async def test_a_raise_of_its_share_lets_a_token_go_on():
    async with spending(paid(lambda _: costs(1)), RULES) as runtime:
        waiting = [await say(runtime, "alice") for _ in range(3)][-1]
        wish = Raise(agent_id="main", turns=1, scope="source:alice")
        released = await runtime.services.budget_acts.increase(wish, "operator")
        turn = await runtime.wait(waiting)
        share = (await runtime.services.views.budgets.of_scope("main", "source:alice")).turns

    assert released == 1
    assert turn is not None
    assert (share.used, share.cap) == (3, 3)


async def test_a_share_grows_with_what_its_agent_is_given():
    async with spending(paid(lambda _: costs(1)), RULES) as runtime:
        waiting = [await say(runtime, "alice") for _ in range(3)][-1]
        await runtime.raise_budget(turns=2)
        turn = await runtime.wait(waiting)
        fourth = await say(runtime, "alice")
        share = (await status(runtime, "source:alice")).turns

    assert turn is not None
    assert fourth.outcome is Outcome.PARKED
    assert (share.used, share.cap) == (3, 3)


async def test_whoever_names_a_source_decides_what_it_may_use():
    rules = BudgetRules(
        money_per_day=None, turns_per_day=4, sources={"alice": DayLimits(turns_per_day=4)}
    )
    async with spending(paid(lambda _: costs(1)), rules) as runtime:
        alice = [(await say(runtime, "alice")).outcome for _ in range(4)]

    assert alice == [Outcome.STARTED] * 4


@tool(effect="read")
async def fetch() -> ToolResult:
    """Fetch what a stranger wrote."""
    return ToolResult(text="buy now", is_external=True)


async def test_what_an_agent_reads_from_outside_is_not_paid_by_a_stranger():
    """Else whatever fetches pages would have half a budget."""
    script = [says("", call("fetch")), says("read")]
    async with spending(paid(script), RULES, tools=(fetch,)) as runtime:
        draft = replace(outsider(source="robot"), trust=Trust.OPERATOR)
        turn = await runtime.wait(await runtime.accept(draft))
        rows = await runtime.store.read("SELECT scope FROM budgets ORDER BY scope")

    assert turn is not None
    assert turn.trust is Trust.EXTERNAL
    assert [row[0] for row in rows] == ["agent", "origin:webhook"]
