"""What a turn promises: steps, tools, limits, silence, failure."""

import asyncio

import pytest

from tests.integration.engine.looking import shown, states
from wakeful.models.model import Reply
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, in_memory, says, wait_for
from wakeful.tools.tool import LedgerContext, Tool, ToolContext, ToolResult, tool
from wakeful.turn.agent import Agent
from wakeful.turn.calls import MOST_BESIDE
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.entry import AssistantBody
from wakeful.vocabulary.errors import ContextOverflow, Garbled, InvalidInput, Permanent, Transient
from wakeful.vocabulary.message import Text, ToolCall, Usage
from wakeful.vocabulary.route import Route


async def answered(runtime: Runtime, text: str = "hello"):
    turn = await runtime.wait(await runtime.send(text))
    assert turn is not None
    return turn


def recorder(log: list[str], *, name: str = "act", effect: str = "effect") -> Tool:
    async def act(what: str = "") -> str:
        """Do something."""
        log.append(what)
        return f"did {what}"

    return tool(name=name, effect=effect)(act)


async def test_a_message_is_answered_and_both_stand_in_the_transcript():
    async with in_memory(["good morning"]) as runtime:
        turn = await answered(runtime)
        entries = await runtime.entries()

    assert (turn.state, turn.reply) == (TurnState.DONE, "good morning")
    assert [type(entry.content()).__name__ for entry in entries] == ["UserBody", "AssistantBody"]
    assert {entry.turn_id for entry in entries} == {turn.id}


async def test_each_turn_sees_what_was_said_before():
    model = Scripted(["one", "two"])
    async with in_memory(model) as runtime:
        await answered(runtime, "first")
        await answered(runtime, "second")

    assert shown(model.requests[1]) == ["user: first", "assistant: one", "user: second"]


async def test_tool_results_reach_the_next_question():
    log: list[str] = []
    model = Scripted([says("", call("act", what="x")), "finished"])
    async with in_memory(model, tools=[recorder(log)]) as runtime:
        turn = await answered(runtime, "go")

    assert log == ["x"]
    assert shown(model.requests[1]) == ["user: go", "assistant:  +act", "tool: did x"]
    assert (turn.reply, turn.step, turn.tool_calls) == ("finished", 2, 1)


async def test_reads_run_side_by_side_and_effects_in_order():
    at_once = asyncio.Barrier(2)
    log: list[str] = []

    @tool(effect="read")
    async def look(what: str) -> str:
        """Look."""
        await at_once.wait()
        log.append(what)
        return what

    calls = (
        call("look", call_id="r1", what="a"),
        call("look", call_id="r2", what="b"),
        call("act", call_id="e1", what="c"),
        call("act", call_id="e2", what="d"),
    )
    model = Scripted([says("", *calls), "finished"])
    async with in_memory(model, tools=[look, recorder(log)]) as runtime:
        await answered(runtime)

    assert set(log[:2]) == {"a", "b"}
    assert log[2:] == ["c", "d"]
    assert shown(model.requests[1])[2:] == ["tool: a", "tool: b", "tool: did c", "tool: did d"]


async def test_a_reply_with_very_many_reads_runs_all_of_them_though_not_all_at_once():
    running, most = 0, 0

    @tool(effect="read")
    async def look(what: int) -> str:
        """Look."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return f"saw {what}"

    calls = [call("look", call_id=f"r{number}", what=number) for number in range(100)]
    model = Scripted([says("", *calls), "finished"])
    async with in_memory(model, tools=[look]) as runtime:
        await answered(runtime)

    assert shown(model.requests[1])[2:] == [f"tool: saw {number}" for number in range(100)]
    assert most == MOST_BESIDE


async def test_a_failing_tool_is_a_result_the_model_sees():
    @tool
    def fails() -> str:
        """Fail."""
        raise RuntimeError("no luck")

    model = Scripted([says("", call("fails")), "I see"])
    async with in_memory(model, tools=[fails]) as runtime:
        turn = await answered(runtime)

    assert turn.reply == "I see"
    assert shown(model.requests[1])[-1] == "tool: RuntimeError: no luck"


async def test_an_unknown_tool_and_bad_arguments_are_results_too():
    log: list[str] = []
    calls = (call("nothing"), call("act", call_id="bad", what=["a"]))
    model = Scripted([says("", *calls), "I see"])
    async with in_memory(model, tools=[recorder(log)]) as runtime:
        await answered(runtime)

    assert shown(model.requests[1])[-2:] == [
        "tool: there is no tool 'nothing'",
        "tool: what: Expected `str`, got `array`",
    ]
    assert log == []


async def test_a_ledger_tool_writes_with_its_own_result_or_not_at_all():
    @tool(effect="ledger")
    def note(context: LedgerContext, text: str) -> str:
        """Write something down."""
        context.tx.run(
            "INSERT INTO halts (scope, halted_at, halted_by) VALUES (:scope, 0, 'test')",
            scope=text,
        )
        if text == "bad":
            raise RuntimeError("changed my mind")
        return "noted"

    calls = (call("note", call_id="1", text="good"), call("note", call_id="2", text="bad"))
    model = Scripted([says("", *calls), "finished"])
    async with in_memory(model, tools=[note]) as runtime:
        turn = await answered(runtime)
        rows = await runtime.store.read("SELECT scope FROM halts")
        intents = await runtime.store.read("SELECT state FROM tool_calls ORDER BY call_id")

    assert [row[0] for row in rows] == ["good"]
    assert [row[0] for row in intents] == ["done", "failed"]
    assert shown(model.requests[1])[-2:] == ["tool: noted", "tool: RuntimeError: changed my mind"]
    assert turn.reply == "finished"


async def test_what_a_ledger_tool_refuses_in_words_is_no_traceback(
    caplog: pytest.LogCaptureFixture,
):
    @tool(effect="ledger")
    def note(is_broken: bool) -> str:
        """Write something down."""
        raise RuntimeError("not foreseen") if is_broken else InvalidInput("text", "is not nice")

    calls = (call("note", call_id="1", is_broken=False), call("note", call_id="2", is_broken=True))
    async with in_memory([says("", *calls), "finished"], tools=[note]) as runtime:
        await answered(runtime)

    lines = [record for record in caplog.records if "ledger tool" in record.getMessage()]
    assert [(line.getMessage(), bool(line.exc_info)) for line in lines] == [
        ("the ledger tool 'note' failed: text: is not nice", False),
        ("the ledger tool 'note' failed: RuntimeError: not foreseen", True),
    ]


async def test_a_tool_may_end_the_turn_after_the_other_calls():
    log: list[str] = []

    @tool(effect="ledger")
    def rest() -> ToolResult:
        """Rest."""
        return ToolResult(text="resting", ends_turn=True)

    model = Scripted([says("good night", call("rest"), call("act", what="last"))])
    async with in_memory(model, tools=[rest, recorder(log)]) as runtime:
        turn = await answered(runtime)

    assert (turn.state, turn.reply, log) == (TurnState.DONE, "good night", ["last"])
    assert len(model.requests) == 1


async def test_a_tool_is_told_the_same_key_over_every_attempt():
    keys: list[str] = []

    @tool
    def act(context: ToolContext) -> str:
        """Act."""
        keys.append(context.key)
        return "done"

    async with in_memory([says("", call("act", call_id="c1")), "ok"], tools=[act]) as runtime:
        turn = await answered(runtime)

    assert keys == [f"{turn.id}:1:c1"]


async def test_a_long_output_is_cut_and_the_whole_is_kept():
    @tool(effect="read")
    def flood() -> str:
        """Say a lot."""
        return "x" * 100_000

    model = Scripted([says("", call("flood")), "ok"])
    async with in_memory(model, tools=[flood]) as runtime:
        await answered(runtime)
        rows = await runtime.store.read("SELECT output FROM tool_calls")

    seen = shown(model.requests[1])[-1]
    assert len(seen) < 17_000
    assert "83616 more characters" in seen
    assert rows[0][0] == "x" * 100_000


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(steps=2), "I stopped after 2 steps, the limit for one turn."),
        (Limits(tool_calls=1), "I stopped after 1 tool calls; one turn may make 1."),
        (Limits(tokens=15), "I stopped after 22 tokens; one turn may use 15."),
        (Limits(money=0.5), "I stopped after spending 0.50; one turn may spend 0.50."),
    ],
)
async def test_each_limit_ends_the_turn_with_a_sentence(limits: Limits, sentence: str):
    log: list[str] = []

    def step(number: int) -> Reply:
        return Reply(
            content=(ToolCall(id=f"c{number}", name="act", arguments={"what": str(number)}),),
            stop_reason="tool_use",
            usage=Usage(input=10, output=1, cost=0.5),
        )

    model = Scripted([step(number) for number in range(9)])
    agent = Agent(model=model, tools=[recorder(log)], limits=limits)
    async with Runtime(agents=[agent]) as runtime:
        turn = await answered(runtime)
        entries = await runtime.entries()

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "limit")
    assert turn.reply == sentence
    last = entries[-1].content()
    assert isinstance(last, AssistantBody)
    assert last.message.text == sentence


async def test_a_turn_that_takes_too_long_is_ended():
    clock = ManualClock()
    pause = Pause("thinking")
    agent = Agent(model=Scripted([pause, "next"]), limits=Limits(wall_s=60))
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("hello")
        await pause.reached.wait()
        clock.advance(61)
        turn = await runtime.wait(receipt)
        assert turn is not None
        again = await answered(runtime, "still there?")

    assert turn.state is TurnState.TIMED_OUT
    assert turn.reply == "I ran out of time: one turn may take 60 seconds."
    assert again.reply == "next"


class Connected(Scripted):
    """A model that holds a connection."""

    def __init__(self, closed: list[str], name: str, error: str = "") -> None:
        super().__init__(["hello"])
        self._closed = closed
        self._called = name
        self._error = error

    async def aclose(self) -> None:
        self._closed.append(self._called)
        if self._error:
            raise OSError(self._error)


async def test_every_model_is_closed_at_the_end_whatever_another_one_does():
    closed: list[str] = []
    first, second = Connected(closed, "first", "stuck"), Connected(closed, "second")
    agents = [
        Agent("main", model=second, fallback_models=[first]),
        Agent("other", model=Connected(closed, "third", "stuck, too")),
    ]
    with pytest.raises(OSError, match="stuck"):
        async with Runtime(agents=agents) as runtime:
            await answered(runtime)

    assert sorted(closed) == ["first", "second", "third"]


async def test_a_model_that_is_busy_is_asked_again_later_without_holding_the_lane():
    clock = ManualClock()
    model = Scripted([Transient("overloaded", retry_after_s=30), "here I am"])
    async with in_memory(model, clock=clock) as runtime:
        receipt = await runtime.send("hello")
        left = await wait_for(runtime, "turn.left")
        assert left.data["reason"] == "waiting for the model"
        assert left.data["resume_at"] == clock.now() + 30_000
        clock.advance(30)
        turn = await runtime.wait(receipt)
        rows = await runtime.store.read("SELECT state, error FROM asks ORDER BY attempt")

    assert turn is not None
    assert (turn.reply, turn.attempts) == ("here I am", 1)
    assert [tuple(row) for row in rows] == [("failed", "overloaded"), ("answered", None)]


async def test_a_model_that_never_answers_fails_the_turn_and_the_lane_goes_on():
    clock = ManualClock()
    model = Scripted([*[Transient("overloaded")] * 3, "better now"])
    agent = Agent(model=model, limits=Limits(retries=2))
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("hello")
        for number in range(2):
            await wait_for(runtime, "turn.left", lambda e, n=number: e.data["epoch"] == n + 1)
            clock.advance(10)
        turn = await runtime.wait(receipt)
        assert turn is not None
        again = await answered(runtime, "and now?")

    assert (turn.state, turn.error_kind, turn.error) == (
        TurnState.FAILED,
        "provider",
        "overloaded",
    )
    assert again.reply == "better now"


@pytest.mark.parametrize(
    "garbage",
    [
        Garbled("cut JSON"),
        Reply(content=()),
        Reply(content=(Text(text="  "),)),
        Reply(content=(call("act", call_id="1"), call("act", call_id="1"))),
        Reply(content=(ToolCall(id="", name="act", arguments={}),)),
        Reply(content=(ToolCall(id="x", name="", arguments={}),)),
    ],
)
async def test_a_garbled_answer_is_asked_for_once_more_and_then_fails(
    garbage: Reply | Exception,
):
    async with in_memory([garbage, "clear", garbage, garbage]) as runtime:
        first = await answered(runtime)
        second = await answered(runtime)
        entries = await runtime.entries()

    assert first.reply == "clear"
    assert (second.state, second.error_kind) == (TurnState.FAILED, "provider")
    assert len(entries) == 4


async def test_a_garbled_answer_has_a_try_of_its_own():
    """Neither takes the other's: a provider that was busy may stutter, and be busy again."""
    clock = ManualClock()
    lines = [Transient("busy"), Garbled("cut"), Transient("busy"), "clear"]
    agent = Agent(model=Scripted(lines), limits=Limits(retries=2))
    async with Runtime(agents=[agent], clock=clock) as runtime:
        receipt = await runtime.send("hello")
        for epoch in (1, 3):
            await wait_for(runtime, "turn.left", lambda e, n=epoch: e.data["epoch"] == n)
            clock.advance(2)
        turn = await runtime.wait(receipt)
        rows = await runtime.store.read("SELECT state FROM asks ORDER BY attempt")

    assert turn is not None
    assert turn.reply == "clear"
    assert [row[0] for row in rows] == ["failed", "garbled", "failed", "answered"]


async def test_each_step_has_a_try_for_a_garbled_answer():
    log: list[str] = []
    lines = [Garbled("cut"), says("", call("act", what="it")), Garbled("cut"), "clear"]
    async with in_memory(lines, tools=[recorder(log)]) as runtime:
        turn = await answered(runtime)

    assert (turn.reply, log) == ("clear", ["it"])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Permanent("bad key"), "provider"),
        (ContextOverflow(), "context_overflow"),
        (ValueError("a bug"), "provider"),
    ],
)
async def test_a_model_that_cannot_answer_fails_the_turn_at_once(error: Exception, kind: str):
    async with in_memory([error, "fine"]) as runtime:
        turn = await answered(runtime)
        again = await answered(runtime)
        found = await states(runtime)

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, kind)
    assert again.reply == "fine"
    assert found == ["failed", "done"]


async def test_lone_surrogates_and_nul_in_a_reply_are_replaced():
    bad = "a\ud800b\x00c"
    async with in_memory([says(bad, call("act", what=bad)), bad], tools=[recorder([])]) as runtime:
        turn = await answered(runtime)

    assert turn.reply == "a\ufffdb\ufffdc"


async def test_deltas_are_shown_live_and_not_stored():
    async with in_memory(["word by word"]) as runtime:
        events = runtime.subscribe(topics=["turn.*"], session="main", since=await runtime.cursor())
        await runtime.send("hello")
        seen = [await anext(events) for _ in range(3)]
        stored = await runtime.store.read("SELECT kind FROM events WHERE kind = 'turn.delta'")

    assert [event.kind for event in seen] == ["turn.started", "turn.delta", "turn.finished"]
    assert (seen[1].data["text"], seen[1].cursor) == ("word by word", None)
    assert not stored


OUT = Route(door="out", address="ann")


@pytest.mark.parametrize(
    ("reply", "sent"),
    [
        ("hello Ann", ["hello Ann"]),
        ("NO_REPLY", []),
        ("  HEARTBEAT_OK\n", []),
        ("[SILENT]", []),
        ("NO_REPLY but the rest counts", ["but the rest counts"]),
        ("NO_REPLYING is a word", ["NO_REPLYING is a word"]),
    ],
)
async def test_a_reply_is_filed_for_its_route_unless_it_is_silence(reply: str, sent: list[str]):
    async with in_memory([reply]) as runtime:
        await runtime.wait(await runtime.send("hello", route=OUT))
        rows = await runtime.store.read("SELECT text FROM deliveries")
        entries = await runtime.entries()

    assert [row[0] for row in rows] == sent
    last = entries[-1].content()
    assert isinstance(last, AssistantBody)
    assert (last.message.text, last.is_silent) == (reply, not sent)


async def test_what_send_message_sent_is_not_delivered_again():
    model = Scripted([says("", call("send_message", text="hi Ann")), "hi Ann"])
    async with in_memory(model) as runtime:
        await runtime.wait(await runtime.send("greet her", route=OUT))
        rows = await runtime.store.read("SELECT text FROM deliveries")

    assert [row[0] for row in rows] == ["hi Ann"]


async def test_a_route_that_is_read_gets_no_rows():
    async with in_memory(["hello"]) as runtime:
        await runtime.wait(await runtime.send("hello", route=Route(door="http", address="x")))
        assert not await runtime.store.read("SELECT 1 FROM deliveries")
