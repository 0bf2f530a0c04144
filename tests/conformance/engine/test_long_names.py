"""The longest names that are accepted work on each database, whatever they are written in."""

import random

from tests.conformance.engine.conftest import SettingsFor
from wakeful.intake.draft import DEEPEST, LONGEST_NAME
from wakeful.outbox.outbox import Delivery
from wakeful.testing.kit import Scripted, call, in_memory, operator_draft, says, wait_for
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import AssistantMessage, ToolMessage
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft, Outcome

MAIN = "agent:main:main"
_CHANCE = random.Random(7)


def longest() -> str:
    """Return a name of four bytes a character, no two alike: PostgreSQL packs what repeats."""
    return "".join(chr(_CHANCE.randrange(0x20000, 0x2A6D0)) for _ in range(LONGEST_NAME))


LONGEST, KEY = longest(), longest()


async def test_the_longest_scope_source_and_key_are_unique_like_any_other(
    settings_for: SettingsFor,
):
    sources = [longest(), longest()]

    def draft(source: str) -> Draft:
        return operator_draft(
            MAIN,
            text="x",
            scope=LONGEST,
            source=source,
            dedup_key=KEY,
            root_id=longest(),
        )

    async with in_memory(Scripted(lambda _: "well"), settings=settings_for()) as runtime:
        one, again, other = [await runtime.accept(draft(sources[which])) for which in (0, 0, 1)]

    assert (again.outcome, again.duplicate_of) == (Outcome.DUPLICATE, one.stimulus_id)
    assert other.outcome is not Outcome.DUPLICATE


async def test_an_answer_goes_to_the_longest_address(settings_for: SettingsFor):
    received: list[Route] = []

    async def out(delivery: Delivery) -> None:
        received.append(delivery.route)

    route = Route(door="out", address=longest(), thread=longest(), account=longest())
    model = Scripted(lambda _: "well")
    async with in_memory(model, settings=settings_for(), doors={"out": out}) as runtime:
        await runtime.send("hello", route=route)
        await wait_for(runtime, "delivery.acknowledged")

    assert received == [route]


async def test_the_deepest_chain_is_cut_not_refused_by_the_database(settings_for: SettingsFor):
    deep = operator_draft(
        MAIN, text="x", kind=Kind.SUBAGENT_MESSAGE, depth=DEEPEST, root_id="st_root"
    )
    async with in_memory(Scripted([]), settings=settings_for()) as runtime:
        receipt = await runtime.accept(deep)

    assert (receipt.outcome, receipt.reason) == (Outcome.SUPPRESSED, "loop")


async def test_a_tool_is_called_by_an_id_that_no_index_holds(settings_for: SettingsFor):
    ids = [f"{number}{''.join(longest() for _ in range(10))}" for number in range(2)]  # 10 kB each
    calls = [call("current_time", one) for one in ids]
    model = Scripted([says("", *calls), "well"])
    async with in_memory(model, settings=settings_for()) as runtime:
        turn = await runtime.wait(await runtime.send("what time is it?"))

    assert turn is not None
    assert (turn.state, turn.reply) == (TurnState.DONE, "well")
    asked, *results = model.requests[-1].messages[-3:]
    assert isinstance(asked, AssistantMessage)
    shown = [one.call_id for one in results if isinstance(one, ToolMessage)]
    assert shown == [one.id for one in asked.tool_calls]
    assert len(set(shown)) == 2
