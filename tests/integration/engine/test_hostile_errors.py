"""Errors that nobody asked for: unstorable words, half-done tools, threads that do not start."""

import threading
from collections.abc import AsyncIterator

import pytest

from tests.integration.engine.looking import shown, turn_of
from wakeful.models.model import Delta, Reply, Request
from wakeful.store.backend import Rerun
from wakeful.testing.kit import ManualClock, Scripted, call, in_memory, says, wait_for
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.tools.running import THREAD_LIMIT
from wakeful.tools.tool import LedgerContext, tool
from wakeful.vocabulary.errors import InvalidInput, Transient
from wakeful.vocabulary.message import ToolMessage

MAIN = "agent:main:main"


async def test_a_model_that_is_busy_in_unstorable_words_is_asked_again():
    clock = ManualClock()
    async with in_memory([Transient("half \ud83d"), "fine"], clock=clock) as runtime:
        receipt = await runtime.send("hello")
        await wait_for(runtime, "turn.left")
        clock.advance(5)
        turn = await turn_of(runtime, receipt)

    assert turn.reply == "fine"


async def test_a_ledger_tool_that_fails_in_unstorable_words_is_a_result():
    @tool(effect="ledger")
    def bad() -> str:
        """Fail."""
        raise RuntimeError("half \ud83d")

    model = Scripted([says("", call("bad")), "I see"])
    async with in_memory(model, tools=[bad]) as runtime:
        turn = await turn_of(runtime, await runtime.send("go"))

    assert turn.reply == "I see"
    assert shown(model.requests[1])[-1] == "tool: RuntimeError: half \ufffd"


async def test_a_ledger_tool_that_refuses_after_writing_leaves_nothing():
    @tool(effect="ledger")
    def half(context: LedgerContext) -> str:
        """Write, then refuse."""
        timers.put(context.tx, Timer(id="half", due_at=2**50, kind="stimulus", target=MAIN))
        raise InvalidInput("second", "is bad")

    model = Scripted([says("", call("half")), "I see"])
    async with in_memory(model, tools=[half]) as runtime:
        await turn_of(runtime, await runtime.send("go"))
        left = await runtime.store.read("SELECT id FROM timers")

    assert not left
    assert shown(model.requests[1])[-1] == "tool: second: is bad"


async def test_a_deadlock_inside_a_ledger_tool_is_no_failure_of_the_tool():
    deadlocks = [Rerun()]

    @tool(effect="ledger")
    def unlucky() -> str:
        """Meet a deadlock, once."""
        if deadlocks:
            raise deadlocks.pop()
        return "lucky"

    model = Scripted([says("", call("unlucky")), "done"])
    async with in_memory(model, tools=[unlucky]) as runtime:
        await turn_of(runtime, await runtime.send("go"))

    assert shown(model.requests[1])[-1] == "tool: lucky"


async def test_threads_that_do_not_start_take_no_place_from_later_ones(
    monkeypatch: pytest.MonkeyPatch,
):
    start = threading.Thread.start

    def start_no_tool(thread: threading.Thread) -> None:
        if thread.name.startswith("tool "):
            raise RuntimeError("can't start new thread")
        start(thread)

    @tool(effect="read")
    def plain() -> str:
        """Run in a thread."""
        return "ran"

    def line(request: Request) -> str | Reply:
        if len(request.messages) == 1:
            monkeypatch.setattr(threading.Thread, "start", start_no_tool)
            return says("", *(call("plain", call_id=f"{n}") for n in range(THREAD_LIMIT)))
        monkeypatch.undo()
        return "done" if request.messages[-1].text == "ran" else says("", call("plain"))

    model = Scripted(line)
    async with in_memory(model, tools=[plain]) as runtime:
        turn = await turn_of(runtime, await runtime.send("go"))

    results = [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert results[:-1] == ["no thread could be started: can't start new thread"] * THREAD_LIMIT
    assert (turn.reply, results[-1]) == ("done", "ran")


async def test_an_answer_in_a_hundred_thousand_pieces_is_read_in_good_time():
    class Chatty:
        name = "chatty"

        async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
            for _ in range(100_000):
                yield Delta(text="twenty characters...")
            yield says("all of it")

    async with in_memory(Chatty()) as runtime:
        turn = await turn_of(runtime, await runtime.send("go"))

    assert turn.reply == "all of it"
