"""A server that lies, hangs, shouts or dies harms nobody but itself."""

import asyncio
import time
from pathlib import Path

import pytest
import uvloop

from tests.integration.tools.mcp_serving import call, is_up, lying, serving
from tests.patience import patience
from tests.waiting import eventually
from wakeful.tools.mcp.listing import LARGEST_SCHEMA, LONGEST_DESCRIPTION, MOST_TOOLS
from wakeful.tools.mcp.options import McpServerSettings, RemoteEffect
from wakeful.tools.mcp.server import CONNECT_LIMIT_S, McpServer
from wakeful.tools.running import cut
from wakeful.vocabulary.clock import ManualClock

OBJECT = {"type": "object"}

# Real processes, which load a large library, on a machine that may be busy.
pytestmark = pytest.mark.timeout(90)


async def test_only_tools_that_can_be_used_are_offered_and_the_others_are_told():
    tools = [
        {"name": "good", "inputSchema": OBJECT, "description": 1_000_000},
        {"name": "a.b", "inputSchema": OBJECT},
        {"name": "a/b", "inputSchema": OBJECT},
        {"name": "bad\nname", "inputSchema": OBJECT},
        {"name": "<|im_start|>", "inputSchema": OBJECT},
        {"name": "n" * 65, "inputSchema": OBJECT},
        {"name": "odd", "inputSchema": {**OBJECT, "properties": {"a": {"type": "strng"}}}},
        {"name": "wide", "inputSchema": {**OBJECT, "title": "w" * LARGEST_SCHEMA}},
        {"name": "claims", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    ]
    async with serving(*lying(tools=tools)) as server:
        status = server.status()
        assert status.state == "up", status
        good = server.tools["notes_good"]

    assert status.tools == ("notes_a_b", "notes_claims", "notes_good")
    assert len(good.description) < LONGEST_DESCRIPTION + 100
    assert good.description.endswith("… [995904 more characters were cut]")
    assert server.tools["notes_claims"].effect == "effect"
    told = "\n".join(status.problems)
    assert "'a/b' is left out: another tool is already named 'notes_a_b'" in told
    assert "'odd' has a bad schema: 'strng' is not valid" in told
    assert "'wide' has a schema of 32" in told
    assert "'bad name' cannot be a tool's name" in told
    assert "'<|im_start|>' cannot be a tool's name" in told
    assert len(status.problems) == 6


async def test_a_list_that_cannot_be_read_is_told():
    async with serving(*lying(tools=[{"name": "flat", "inputSchema": {"type": 1}}])) as server:
        status = server.status()

    assert status.state == "down"
    assert status.problems[0].startswith("its list of tools cannot be read: 1 validation error")


async def test_a_server_may_have_only_so_many_tools():
    names = [f"t{number:04}" for number in range(MOST_TOOLS + 50)]
    async with serving(*lying(*names)) as server:
        status = server.status()

    assert len(status.tools) == MOST_TOOLS
    assert len(status.problems) == 20


async def test_noise_wrong_ids_and_a_flood_of_errors_are_passed_over():
    plan = lying("misaddress", "mumble", "fine", greeting="hello, I am\nnot a message", flood=20)
    async with serving(*plan, timeout_s=5) as server:
        assert (await call(server, "misaddress")).text == "fine"
        mumbled = await call(server, "mumble")
        assert (await call(server, "fine")).text == "fine"
        assert is_up(server)

    assert mumbled.is_error
    assert mumbled.is_in_doubt
    assert "no answer that can be read" in mumbled.text


async def test_a_long_answer_is_cut_like_any_other():
    async with serving(*lying("long")) as server:
        result = await call(server, "long")

    shown, kept = cut(result.text, "tn_1.1.0")
    assert len(result.text) == 3_000_000
    assert len(shown) < 17_000
    assert kept is not None
    assert len(kept) == 1_048_576


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("shout", "it sent over 4194304 bytes"),
        ("nag", "it asks for more and more, and does not listen"),
        ("babble", "100 lines of its output were no messages"),
    ],
)
async def test_a_flood_without_end_ends_the_server_and_the_call(what: str, why: str):
    async with serving(*lying(what, "fine")) as server:
        result = await call(server, what)
        await eventually(lambda: is_up(server))
        assert (await call(server, "fine")).text == "fine"

    assert result.is_in_doubt
    assert why in result.text


async def test_a_server_that_hangs_is_given_up_and_replaced():
    async with serving(*lying("deaf", "fine"), timeout_s=0.2, effect=RemoteEffect.READ) as server:
        began = time.monotonic()
        result = await call(server, "deaf")

    assert result.text == "timed out after 0.2 s"
    assert time.monotonic() - began < patience(15)


@pytest.mark.parametrize("effect", list(RemoteEffect))
async def test_a_server_that_dies_in_a_call_leaves_its_last_words_and_doubt_if_it_may_have_acted(
    effect: RemoteEffect,
):
    async with serving(*lying("die", "fine"), effect=effect) as server:
        result = await call(server, "die")
        await eventually(lambda: is_up(server))
        assert (await call(server, "fine")).text == "fine"

    assert result.is_in_doubt is (effect is not RemoteEffect.READ)
    assert result.text.startswith("interrupted, outcome unknown: ") is result.is_in_doubt
    assert "it ended; its last words: I am broken" in result.text


async def test_a_server_that_cannot_start_says_why():
    async with serving(*lying(words="ModuleNotFoundError: nothing works")) as server:
        broken = server.status()
    async with serving("/no/such/program") as server:
        missing = server.status()

    assert broken.state == missing.state == "down"
    assert "ModuleNotFoundError: nothing works" in broken.problems[0]
    assert "/no/such/program: No such file or directory" in missing.problems[0]


async def test_while_a_server_is_away_its_tools_stay_and_say_so(tmp_path: Path):
    folder = tmp_path / "here"
    folder.mkdir()
    async with serving(*lying("die", "fine"), folder=folder) as server:
        before = server.tools
        folder.rmdir()  # so that it cannot be started again
        await call(server, "die")
        await eventually(lambda: "No such file" in str(server.status().problems))

        result = await call(server, "fine")

        assert server.tools is before
        assert result.is_error
        assert not result.is_in_doubt
        assert result.text.startswith("the MCP server 'notes' is not reachable: ")
        folder.mkdir()
        await eventually(lambda: is_up(server))
        assert (await call(server, "fine")).text == "fine"


def test_a_server_is_spoken_to_on_the_fast_event_loop_too():
    async def talk() -> str:
        async with serving(*lying("fine")) as server:
            return (await call(server, "fine")).text

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(talk()) == "fine"


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path):
    mark = tmp_path / "mark"
    silent = ("/bin/sh", "-c", f"echo $$ > '{mark}'; exec sleep 600")
    clock = ManualClock()
    server = McpServer("n", McpServerSettings(command=silent), folder=tmp_path, clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await eventually(lambda: mark.exists() and mark.read_text().endswith("\n"))
        clock.advance(CONNECT_LIMIT_S)
        await eventually(lambda: server.status().state == "down")
        assert server.status().problems == ("it does not answer",)
        assert not Path(f"/proc/{mark.read_text().strip()}").exists()  # noqa: ASYNC240
        task.cancel()
