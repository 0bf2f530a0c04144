"""One question, one answer: the shortest way in, and a server inside a program."""

import asyncio
from pathlib import Path

import pytest

import wakeful
from tests.integration.cli.shell import Home
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions
from wakeful.testing.kit import Scripted, in_memory


async def test_a_question_is_answered():
    async with in_memory(["It is three."]) as runtime:
        assert await runtime.ask("how much?") == "It is three."
        assert await runtime.ask("/stop") == "Nothing was running."


async def test_words_come_as_they_are_written():
    async with wakeful.Runtime() as runtime:
        words = [word async for word in runtime.stream("what is 3*4")]

    assert len(words) > 2
    assert "".join(words) == "3*4 = 12"


async def test_a_command_is_streamed_as_its_reply():
    async with in_memory(["never asked"]) as runtime:
        said = [word async for word in runtime.stream("/stop")]

    assert said == ["Nothing was running."]


async def test_a_turn_without_an_answer_raises_what_it_says():
    async with in_memory(
        [wakeful.Permanent("no such model"), wakeful.Permanent("none")]
    ) as runtime:
        with pytest.raises(wakeful.Permanent, match="no such model"):
            await runtime.ask("hello")
        with pytest.raises(wakeful.Permanent, match="none"):
            _ = [word async for word in runtime.stream("hello")]


async def test_a_time_that_is_over_leaves_the_message_safe():
    model = Scripted([wakeful.Transient("busy", retry_after_s=3600), "late"])
    async with in_memory(model) as runtime:
        with pytest.raises(wakeful.Transient, match="the message is safe"):
            await runtime.ask("hello", timeout_s=0.01)


def test_a_program_without_a_loop_asks_too(tmp_path: Path):
    agent = wakeful.Agent(model=Scripted(["Hello."]))

    assert wakeful.ask("hi", agent=agent, home=tmp_path / "home") == "Hello."
    assert wakeful.ask("what is 3*4", home=tmp_path / "home") == "3*4 = 12"


async def test_a_server_inside_a_program_is_found_by_the_command_line(tmp_path: Path):
    home = Home(tmp_path / "home")
    door = HttpDoor(HttpOptions(port=0))
    async with wakeful.Runtime(home=home.folder, http=door) as runtime:
        said = await asyncio.to_thread(home.ok, "chat", "what is 3*4")
        url = (await asyncio.to_thread(home.json, "status"))["url"]

        assert said == "3*4 = 12\n"
        assert url == runtime.url
    assert not (home.folder / "server.json").exists()
