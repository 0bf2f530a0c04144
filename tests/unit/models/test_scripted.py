import asyncio

import pytest

from wakeful.models.model import Delta, Reply, Request
from wakeful.models.scripted import Line, Pause, Scripted, call, says
from wakeful.vocabulary.errors import Permanent, Transient
from wakeful.vocabulary.message import Text, UserMessage

REQUEST = Request(system="", messages=[UserMessage(text="hello")])


async def streamed(model: Scripted) -> list[Delta | Reply]:
    return [item async for item in model.stream(REQUEST)]


async def test_lines_are_said_in_order_each_with_one_reply_last() -> None:
    model = Scripted(["one", "two"])

    assert await streamed(model) == [Delta(text="one"), says("one")]
    assert await streamed(model) == [Delta(text="two"), says("two")]


async def test_every_request_is_kept_for_the_test_to_see() -> None:
    model = Scripted(["one"])

    await streamed(model)

    assert model.requests == [REQUEST]


async def test_tool_calls_are_part_of_the_reply_and_not_streamed() -> None:
    model = Scripted([says("wait", call("look", where="here"))])

    *deltas, reply = await streamed(model)

    assert deltas == [Delta(text="wait")]
    assert isinstance(reply, Reply)
    assert reply.stop_reason == "tool_use"
    assert reply.content == (Text(text="wait"), call("look", "call_look", where="here"))


async def test_an_error_in_the_script_is_raised() -> None:
    model = Scripted([Transient("later"), "then"])

    with pytest.raises(Transient, match="later"):
        await streamed(model)
    assert (await streamed(model))[-1] == says("then")


async def test_a_function_is_asked_what_to_say() -> None:
    def repeat(request: Request) -> Line:
        last = request.messages[-1]
        assert isinstance(last, UserMessage)
        return last.text.upper()

    for model in (Scripted(repeat), Scripted([repeat])):
        assert (await streamed(model))[-1] == says("HELLO")


async def test_a_pause_waits_until_the_test_goes_on() -> None:
    pause = Pause("thinking")
    model = Scripted([pause])

    async with asyncio.TaskGroup() as group:
        task = group.create_task(streamed(model))
        await pause.reached.wait()
        is_done_early = task.done()
        pause.go_on.set()

    assert not is_done_early
    assert task.result()[-1] == says("thinking")


async def test_a_script_that_is_over_is_an_error() -> None:
    with pytest.raises(Permanent, match="no more lines"):
        await streamed(Scripted([]))
