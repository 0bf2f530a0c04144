"""No conversation is stuck: whatever a model's window is, it is found, and made to do."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.integration.engine.narrow import SILENT, Narrow, talk, well_formed
from wakeful.models.model import Request
from wakeful.models.refusals import SENTENCES, Sentence
from wakeful.models.windows import ModelSettings
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import Scripted, call, says, wait_for
from wakeful.tools.tool import Tool, tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.compacting import CompactionRules, MemoryFlush
from wakeful.vocabulary.entry import CompactionBody
from wakeful.vocabulary.errors import ModelHung

RULES = CompactionRules(memory_flush=MemoryFlush(enabled=False))
WORDS = "word " * 800  # 1 000 tokens


def runtime_with(
    model: Narrow,
    *,
    tools: tuple[Tool, ...] = (),
    window: int | None = None,
    instructions: str = "",
    rules: CompactionRules = RULES,
) -> Runtime:
    agent = Agent(
        model=model,
        compaction=rules,
        tools=tools,
        has_default_tools=False,
        instructions=instructions,
    )
    known = {} if window is None else {model.name: ModelSettings(context_window=window)}
    return Runtime(agents=[agent], settings=Settings(models=known))


async def said(runtime: Runtime, text: str) -> Turn:
    turn = await runtime.wait(await runtime.send(text))
    assert turn is not None
    return turn


async def summaries(runtime: Runtime) -> list[str]:
    bodies = [entry.content() for entry in await runtime.entries()]
    return [body.summary for body in bodies if isinstance(body, CompactionBody)]


async def grown(runtime: Runtime, model: Narrow, messages: int) -> None:
    """Hold a long conversation while the model still takes it."""
    model.window, window = 1_000_000, model.window
    for _ in range(messages):
        await said(runtime, WORDS)
    model.window = window
    model.requests.clear()


@pytest.mark.parametrize(
    "sentence", [SENTENCES[0], SENTENCES[4], SILENT], ids=["number", "words", "nothing"]
)
async def test_a_long_conversation_fits_a_model_that_nobody_knows_the_window_of(
    sentence: Sentence,
):
    model = Narrow(8_000, sentence=sentence)
    async with runtime_with(model) as runtime:
        await grown(runtime, model, 60)
        turns = [await said(runtime, "and now?") for _ in range(3)]

    assert [turn.reply for turn in turns] == ["ok"] * 3
    assert model.refused <= 8
    assert len(model.requests) <= 40


async def test_what_a_refusal_taught_is_known_in_the_next_turn():
    model = Narrow(8_000)
    async with runtime_with(model) as runtime:
        await grown(runtime, model, 20)
        await said(runtime, "and now?")
        before = model.refused
        for _ in range(12):
            await said(runtime, WORDS)

    assert before > 0
    assert model.refused == before


async def test_a_window_from_the_settings_is_never_outgrown():
    model = Narrow(8_000)
    async with runtime_with(model, window=8_000) as runtime:
        turns = [await said(runtime, WORDS) for _ in range(20)]
        made = await summaries(runtime)

    assert all(turn.state is TurnState.DONE for turn in turns)
    assert made
    assert model.refused == 0


async def test_somebody_may_compact_what_is_shorter_than_what_is_kept_in_a_larger_window():
    model = Narrow(8_000)
    async with runtime_with(model, window=8_000) as runtime:
        for _ in range(4):
            await said(runtime, WORDS)
        turn = await runtime.wait(await runtime.compact())

    assert turn is not None
    assert turn.reply is not None
    assert turn.reply.startswith("Compacted")


async def test_a_wish_to_compact_is_fulfilled_though_the_question_is_refused():
    model = Narrow(8_000, sentence=SENTENCES[4])
    async with runtime_with(model) as runtime:
        await grown(runtime, model, 60)
        turn = await runtime.wait(await runtime.compact())
        after = await said(runtime, "and now?")

    assert turn is not None
    assert turn.reply is not None
    assert turn.reply.startswith("Compacted")
    assert after.reply == "ok"


async def test_one_message_larger_than_the_window_is_cut_and_answered():
    model = Narrow(8_000)
    async with runtime_with(model) as runtime:
        turn = await said(runtime, "Sum this up: " + "x" * 200_000)
        after = await said(runtime, "and now?")

    assert (turn.state, turn.reply) == (TurnState.DONE, "ok")
    asked = [one for one in model.requests if one.purpose == "summary"]
    assert "characters left out …]" in asked[-1].messages[0].text
    assert "Sum this up" in asked[-1].messages[0].text
    assert after.reply == "ok"


async def test_a_result_larger_than_the_window_is_cut_and_the_turn_goes_on():
    model = Narrow(8_000)
    model.replies = [says("", call("read")), "done reading"]
    async with runtime_with(model, tools=(reading("x" * 200_000),)) as runtime:
        turn = await said(runtime, "read it")

    assert (turn.state, turn.reply) == (TurnState.DONE, "done reading")


async def test_instructions_larger_than_the_window_are_named_as_the_reason():
    model = Narrow(8_000)
    async with runtime_with(model, instructions="rule " * 10_000) as runtime:
        turn = await said(runtime, "hello")

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "context_overflow")
    assert turn.error is not None
    assert "The instructions and tools of this agent alone take about 12" in turn.error
    assert "of the 8000 tokens that vllm:narrow reads at once" in turn.error
    assert len(model.requests) <= 12


async def test_what_the_model_cannot_sum_up_is_left_out_and_said_to_be():
    model = Narrow(8_000, sums_up=lambda _: "I am too small a model for headings.")
    async with runtime_with(model) as runtime:
        await grown(runtime, model, 20)
        turn = await said(runtime, "and now?")
        event = await wait_for(runtime, "session.compaction_failed")
        made = await summaries(runtime)
        entries = await runtime.entries()

    assert (turn.state, turn.reply) == (TurnState.DONE, "ok")
    assert "lacks" in event.data["reason"]
    assert "messages were left out here" in made[-1]
    assert len(entries) > 40


async def test_a_summary_that_nobody_needs_yet_leaves_nothing_out():
    model = Narrow(16_000, sums_up=lambda _: "no headings")
    async with runtime_with(model, window=16_000) as runtime:
        await grown(runtime, model, 9)
        turn = await runtime.wait(await runtime.compact())
        made = await summaries(runtime)

    assert turn is not None
    assert turn.error_kind == "compaction_failure"
    assert made == []


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    window=st.integers(600, 40_000),
    is_known=st.booleans(),
    counts=st.booleans(),
    density=st.floats(0.6, 4.0),
    sentence=st.sampled_from((*SENTENCES, SILENT)),
    can_sum_up=st.booleans(),
)
async def test_every_turn_ends_whatever_the_window_and_the_sizes(
    seed: int,
    window: int,
    is_known: bool,
    counts: bool,
    density: float,
    sentence: Sentence,
    can_sum_up: bool,
):
    random = Random(seed)
    sizes = [random.choice([10, 400, 4_000, 40_000, 160_000]) for _ in range(6)]

    def sums_up(request: Request) -> str:
        return well_formed(request) if can_sum_up else talk(random, random.randrange(2_000))

    model = Narrow(window, density=density, sentence=sentence, counts=counts, sums_up=sums_up)
    known = window if is_known else None
    async with runtime_with(model, window=known and max(known, 1_000)) as runtime:
        for size in sizes:
            before = len(model.requests)
            turn = await said(runtime, talk(random, size))
            assert turn.state is TurnState.DONE or turn.error_kind in ("context_overflow", "limit")
            assert turn.state is TurnState.DONE or turn.error
            assert len(model.requests) - before <= 60
        if window >= 4_000 and density <= 2:  # there is room for a summary and for what is asked
            assert (await said(runtime, "and now?")).state is TurnState.DONE


def reading(text: str) -> Tool:
    async def read() -> str:
        """Read."""
        return text

    return tool(name="read", effect="read")(read)


def test_the_rules_of_these_tests_are_the_usual_ones():
    assert replace(RULES, memory_flush=MemoryFlush()) == CompactionRules()


async def test_a_model_that_hung_is_on_record_in_every_step_and_its_time_out_paid_once():
    hung, second = (
        Scripted([ModelHung("first did not begin to answer.")]),
        Scripted(
            [says("", call("read", call_id="a")), says("", call("read", call_id="b")), "done"]
        ),
    )
    agent = Agent(
        model=hung, fallback_models=[second], tools=[reading("x")], has_default_tools=False
    )
    async with Runtime(agents=[agent]) as runtime:
        turn = await said(runtime, "read")
        (link,) = await runtime.services.views.why.chain(turn.id)
        events = runtime.metrics.events()

    assert turn.reply == "done"
    assert len(hung.requests) == 1
    assert [ask.state for ask in link.asks] == ["answered"] * 3
    assert all("first did not begin to answer" in (ask.error or "") for ask in link.asks)
    assert events["turn.fell_back"] == 3
