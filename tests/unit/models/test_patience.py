"""Nobody is waited for for ever."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from wakeful.models.model import Delta, Piece, Reply, Request
from wakeful.models.scripted import Scripted, says
from wakeful.models.timed import TimedModel
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import Transient

LIMITS = Limits(first_token_s=30, idle_s=10, answer_s=100)
REQUEST = Request(system="", messages=())


class Slow:
    """Says each piece when it is told to."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self.is_closed = False

    @property
    def name(self) -> str:
        return "slow"

    async def stream(self, request: Request) -> AsyncIterator[Piece]:
        try:
            while True:
                piece = await self.pieces.get()
                yield piece
                if isinstance(piece, Reply):
                    return
        finally:
            self.is_closed = True


class Scene:
    """A patient listener, a slow model and a clock that stands still."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.model = Slow()
        self.heard: list[Piece] = []
        self.failure = ""

    async def listen(self) -> None:
        try:
            async for piece in TimedModel(self.model, LIMITS, self.clock).stream(REQUEST):
                self.heard.append(piece)
        except Transient as error:
            self.failure = str(error)

    async def after(self, seconds: float, *pieces: Piece) -> None:
        """Let time pass, then let the model say something, and let it be heard."""
        self.clock.advance(seconds)
        for piece in pieces:
            self.model.pieces.put_nowait(piece)
        for _ in range(10):
            cycle = asyncio.Event()
            asyncio.get_running_loop().call_soon(cycle.set)
            await cycle.wait()


async def failed(*acts: tuple[float, str]) -> str:
    scene = Scene()
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(scene.listen())
        await scene.after(0)
        for seconds, text in acts:
            await scene.after(seconds, Delta(text=text))
        await scene.after(LIMITS.first_token_s)
        await listening
    assert scene.model.is_closed
    return scene.failure


async def test_a_model_that_never_begins_is_given_up():
    assert await failed() == "slow did not begin to answer in 30 seconds."


async def test_a_model_that_falls_silent_is_given_up():
    assert await failed((20, "a"), (9, "b")) == "slow fell silent for 10 seconds."


async def test_a_model_that_never_ends_is_given_up():
    trickle = [(9.0, "x")] * 11

    assert await failed(*trickle) == "slow did not finish its answer in 100 seconds."


async def test_thinking_is_a_sign_of_life_that_nobody_is_shown():
    scene = Scene()
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(scene.listen())
        await scene.after(29, Delta(text=""))
        await scene.after(9, Delta(text=""))
        await scene.after(9, Delta(text="hi"), says("hi"))
        await listening

    assert scene.heard == [Delta(text="hi"), says("hi")]


async def test_a_slow_listener_is_not_the_models_fault():
    scene = Scene()
    pieces = TimedModel(scene.model, LIMITS, scene.clock).stream(REQUEST)
    scene.model.pieces.put_nowait(Delta(text="a"))
    scene.model.pieces.put_nowait(says("a"))
    await anext(pieces)

    await scene.after(1000)

    assert await anext(pieces) == says("a")


async def test_a_process_that_stood_still_reads_what_came_before_it_gives_a_model_up():
    """Stopped and continued, it finds the time over and the answer waiting."""
    scene = Scene()
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(scene.listen())
        await scene.after(0, Delta(text="a"))
        await scene.after(LIMITS.first_token_s + 1, Delta(text="b"))
        await scene.after(0, says("ab"))
        await listening

    assert scene.failure == ""
    assert scene.heard == [Delta(text="a"), Delta(text="b"), says("ab")]


async def test_a_time_out_of_the_models_own_stays_what_it_is():
    model = Scripted([TimeoutError("mine")])

    with pytest.raises(TimeoutError, match="mine"):
        await anext(TimedModel(model, LIMITS, ManualClock()).stream(REQUEST))
