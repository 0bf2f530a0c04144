"""Conversations with providers: what is sent stays as it was, and what comes is kept."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.providers.scenes import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    WIRES,
    answered,
    asks,
    look,
    talking,
)
from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.model import Delta, Reply, Request, context_window
from wakeful.runtime import Runtime
from wakeful.testing.providers.plan import PlannedCall, Step, Tokens
from wakeful.testing.providers.process import Providers
from wakeful.tools.tool import Effect, Tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.message import Text, UserMessage
from wakeful.vocabulary.text import clean

pytestmark = pytest.mark.timeout(60)  # the first test also waits for the library

TWO_LOOKS = (PlannedCall(name="look", arguments={"at": "sky"}), PlannedCall(name="look"))


def parts(body: dict[str, Any]) -> tuple[str, str]:
    """Return the messages of a request without their end, and all the rest of it."""
    rest = dict(body)
    messages = rest.pop("messages", None) or rest.pop("input")
    return json.dumps(messages).rstrip("]}"), json.dumps(rest)


@pytest.mark.parametrize("wire", WIRES)
async def test_what_was_sent_is_sent_again_byte_for_byte(
    wire: str, stand_in: Providers, tmp_path: Path
):
    """A provider's cache lives on that: over turns, tools, a stop, failures and a restart."""
    mark = wire.partition(":")[0].replace("-", "_")
    steps = [
        Step(text="let me see", thinking="hm", calls=TWO_LOOKS),
        Step(text="nothing there", thinking="hm"),
        Step(text="", calls=TWO_LOOKS[:1]),
        Step(text=""),
        Step(text="still nothing"),
        Step(text="first, pause", pieces=2, silence="middle"),
        Step(text="as I said"),
        Step(text="", calls=TWO_LOOKS[1:]),
        Step(text="bye"),
    ]
    stand_in.plan(**{mark: steps})
    agent = Agent(
        model=wire, tools=[Tool(look, effect=Effect.READ)], has_default_tools=False, thinking="high"
    )
    async with Runtime(agents=[agent], home=tmp_path / "a home") as runtime:
        await answered(runtime, f"look {{{mark}}}")
        await answered(runtime, "look again")
        receipt = await runtime.send("and again")
        await stand_in.saw("silent", mark)
        await runtime.stop()
        stopped = await runtime.wait(receipt)
        assert stopped is not None
        assert stopped.state is TurnState.STOPPED
        await answered(runtime, "sorry, go on")
    async with Runtime(agents=[agent], home=tmp_path / "a home") as runtime:
        last = await answered(runtime, "once more")

    sent = [parts(body) for body in stand_in.bodies(mark)]
    assert last.reply == "bye"
    assert len(sent) == 9
    assert len({rest for _, rest in sent}) == 1
    for (before, _), (after, _) in pairwise(sent):
        assert after.startswith(before)
    assert stand_in.lines("refused") == []


async def test_anthropic_gets_its_thoughts_back_with_the_results(stand_in: Providers):
    stand_in.plan(think=[Step(text="so", thinking="deep", calls=TWO_LOOKS), Step(text="done")])
    async with talking(ANTHROPIC, thinking="low") as runtime:
        await answered(runtime, "{think}")

    _, second = stand_in.bodies("think")
    thought, said, *calls = second["messages"][1]["content"]
    results = second["messages"][2]["content"]
    assert thought["thinking"] == "deep"
    assert thought["signature"].startswith("sig_")
    assert said["text"] == "so"
    assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]


@pytest.mark.parametrize("first", WIRES)
@pytest.mark.parametrize("second", WIRES)
async def test_thoughts_go_back_to_whom_they_came_from_and_to_nobody_else(
    first: str, second: str, stand_in: Providers, tmp_path: Path
):
    steps = [Step(text="so", thinking="deep", calls=TWO_LOOKS), Step(text="done")]
    stand_in.plan(private=steps)
    for model in (first, second):
        agent = Agent(model=model, tools=[Tool(look, effect=Effect.READ)], has_default_tools=False)
        async with Runtime(agents=[agent], home=tmp_path / "a home") as runtime:
            turn = await answered(runtime, "{private}")
            assert turn.state is TurnState.DONE

    _, _, third = stand_in.bodies("private")[-3:]
    assert ("deep" in json.dumps(third)) is (first == second)
    assert stand_in.lines("refused") == []


async def test_openai_gets_its_sealed_thoughts_back(stand_in: Providers):
    stand_in.plan(sealed=[Step(text="", thinking="deep", calls=TWO_LOOKS), Step(text="done")])
    async with talking(RESPONSES, thinking="low") as runtime:
        await answered(runtime, "{sealed}")

    _, second = stand_in.bodies("sealed")
    (reasoning,) = [item for item in second["input"] if item.get("type") == "reasoning"]
    assert reasoning["encrypted_content"].startswith("sealed_")
    assert reasoning["id"].startswith("rs_")


async def test_a_conversation_goes_on_with_the_key_of_another_account(stand_in: Providers):
    said = "The encrypted content for item rs_1 could not be verified."
    refusal = Step(status=400, body=json.dumps({"error": {"message": said}}))
    stand_in.plan(
        own_key=[Step(text="so", thinking="deep")],
        other_key=[refusal, Step(text="yes")],
        later=[Step()],
    )
    async with talking(RESPONSES) as runtime:
        await answered(runtime, "{own_key}")
        after = await answered(runtime, "{other_key}")
        more = await answered(runtime, "{later}")
        states = await asks(runtime)

    assert (after.reply, more.reply) == ("yes", "ok")
    assert states == ["answered"] * 3
    refused, taken = (
        '"encrypted_content"' in json.dumps(one) for one in stand_in.bodies("other_key")
    )
    assert (refused, taken) == (True, False)
    assert len(stand_in.bodies("later")) == 1  # it is remembered


@pytest.mark.parametrize(("wire", "cache_write"), [(ANTHROPIC, 30), (CHAT, 0), (RESPONSES, 30)])
async def test_tokens_caches_and_cost_are_on_record(
    wire: str, cache_write: int, stand_in: Providers
):
    tokens = Tokens(input=1000, output=50, cache_read=900, cache_write=30)
    stand_in.plan(cached=[Step(text="ok", tokens=tokens)])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{cached}")
        (entry,) = (await runtime.entries())[-1:]
        ((usage,),) = await runtime.store.read("SELECT usage FROM asks")

    told = json.loads(entry.body)["message"]["usage"]
    assert (told["input"], told["output"]) == (1000, 50)
    assert (told["cache_read"], told["cache_write"]) == (900, cache_write)
    assert told["cost"] > 0
    assert turn.cost == told["cost"]
    assert json.loads(usage) == told


async def test_anthropic_is_told_where_to_cache(stand_in: Providers):
    stand_in.plan(points=[Step()])
    async with talking(ANTHROPIC) as runtime:
        await answered(runtime, "{points}")

    (body,) = stand_in.bodies("points")
    assert body["cache_control"]["type"] == "ephemeral"
    assert body["system"][-1]["cache_control"]["type"] == "ephemeral"


async def test_a_price_that_nobody_knows_is_told_once(
    stand_in: Providers, caplog: pytest.LogCaptureFixture
):
    async with talking("ollama:llama3") as runtime:
        first = await answered(runtime, "hello")
        await answered(runtime, "hello again")

    assert first.cost == 0
    assert caplog.text.count("nobody knows the price of ollama:llama3") == 1


async def test_a_level_of_thinking_that_is_missing_becomes_the_next_lower(
    stand_in: Providers, caplog: pytest.LogCaptureFixture
):
    stand_in.plan(level=[Step()])
    async with talking("openai:o3", thinking="xhigh") as runtime:
        await answered(runtime, "{level}")
        await answered(runtime, "and {level}")

    assert [body["reasoning"]["effort"] for body in stand_in.bodies("level")] == ["high"] * 2
    assert caplog.text.count("openai:o3 cannot think at the level xhigh; it gets high") == 1


def test_a_model_knows_how_much_it_reads_before_it_is_asked(stand_in: Providers):
    assert context_window(find(ANTHROPIC)) == 1_000_000


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    wire=st.sampled_from(WIRES),
    text=st.text(min_size=1, max_size=40).filter(str.strip),
    pieces=st.integers(1, 9),
    chunk=st.integers(1, 90),
    is_calling=st.booleans(),
)
async def test_an_answer_is_the_same_however_it_is_cut(
    wire: str, text: str, pieces: int, chunk: int, is_calling: bool, stand_in: Providers
):
    calls = TWO_LOOKS if is_calling else ()
    stand_in.plan(sliced=[Step(text=text, pieces=pieces, chunk=chunk, calls=calls)])
    model = find(wire)
    assert isinstance(model, DirectModel)
    heard = [
        piece
        async for piece in model.stream(
            Request(system="s", messages=(UserMessage(text="{sliced}"),))
        )
    ]
    await model.aclose()

    *_, reply = heard
    assert isinstance(reply, Reply)
    said = "".join(block.text for block in reply.content if isinstance(block, Text))
    shown = "".join(piece.text for piece in heard if isinstance(piece, Delta))
    assert said == text
    assert shown == clean(text)
    assert len(reply.content) == 1 + len(calls)
