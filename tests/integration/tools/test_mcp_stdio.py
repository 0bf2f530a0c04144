"""An honest server over its pipes: what it offers, what it is told, and what its death leaves."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.integration.tools.mcp_serving import HONEST, call, is_up, serving
from tests.waiting import eventually
from wakeful.tools.mcp.options import RemoteEffect, RemoteTool
from wakeful.tools.tool import Effect

# Real processes, which load a large library, on a machine that may be busy.
pytestmark = pytest.mark.timeout(90)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


async def test_its_tools_are_offered_and_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    own = {"add": RemoteTool(effect=RemoteEffect.READ, timeout_s=5)}
    async with serving(*HONEST, env={"NOTES": "1"}, tools=own) as server:
        tools = server.tools
        assert list(tools) == [
            "notes_add",
            "notes_grow",
            "notes_hang",
            "notes_known",
            "notes_picture",
            "notes_refuse",
        ]
        add = tools["notes_add"]
        assert add.description == "Add two numbers."
        assert add.spec.parameters["properties"]["a"]["type"] == "integer"
        assert (add.effect, add.timeout_s) == (Effect.READ, 5)
        assert {tool.effect for tool in tools.values()} == {Effect.READ, Effect.EFFECT}
        assert not any(tool.is_for_external for tool in tools.values())

        assert (await call(server, "add", a=1, b=2)).text == "3"
        shown = await call(server, "picture")
        assert [(one.name, one.media_type) for one in shown.attachments] == [("1.png", "image/png")]
        refused = await call(server, "refuse")
        assert refused.is_error
        assert "refuse" in refused.text
        names = ["ANTHROPIC_API_KEY", "NOTES", "PATH"]
        said = (await call(server, "known", names=names)).text
        assert said.endswith("['NOTES', 'PATH']")
        process_id = int(said.split()[0])
        assert os.getpgid(process_id) != os.getpgid(0)

    assert not is_alive(process_id)


async def test_a_changed_list_is_noticed_and_an_unchanged_one_stays_the_same():
    async with serving(*HONEST) as server:
        before = server.tools
        await call(server, "add", a="x", b=[])  # an error makes it look again
        assert server.tools is before

        await call(server, "grow")
        await eventually(lambda: "notes_more_of_it" in server.tools)
        assert (await call(server, "more_of_it", a=2, b=2)).text == "4"


async def test_a_server_killed_in_a_call_leaves_doubt_and_comes_back(tmp_path: Path):
    def marked() -> list[int]:
        return [int(path.suffix[1:]) for path in tmp_path.glob("mark.*")]

    async with serving(*HONEST) as server:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call(server, "hang", mark=str(tmp_path / "mark")))
            await eventually(lambda: bool(marked()))
            os.kill(marked()[0], signal.SIGKILL)
        result = task.result()
        await eventually(lambda: is_up(server))
        assert (await call(server, "add", a=1, b=1)).text == "2"

    assert result.is_error
    assert result.is_in_doubt
    assert result.text.startswith("interrupted, outcome unknown: the MCP server 'notes' did not")
    assert len(marked()) == 1
