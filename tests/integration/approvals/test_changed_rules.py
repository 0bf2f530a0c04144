"""What becomes of a call that was cut off when the rule of its tool is another one afterwards."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.approvals.asking import asking
from wakeful.testing.kit import call, says, wait_for
from wakeful.tools.tool import Tool, tool


def posting(begun: asyncio.Event) -> Tool:
    @tool(effect="idempotent")
    async def post() -> str:
        """Post something, and never hear what came of it."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    return post


@pytest.mark.parametrize("rule", ["deny", "ask"])
async def test_a_call_that_may_not_run_again_is_in_doubt(rule: str, tmp_path: Path):
    begun = asyncio.Event()
    tools = [posting(begun)]
    lines = [says("", call("post"))]
    async with asking(lines, {}, tools=tools, home=tmp_path) as runtime:
        await runtime.send("begin")
        await begun.wait()
        runtime.leave()  # as killed
    async with asking(["well"], {"post": rule}, tools=tools, home=tmp_path) as runtime:
        await wait_for(runtime, "turn.finished")
        ((state,),) = await runtime.store.read("SELECT state FROM tool_calls")
        asked = await runtime.approvals()

    assert state == "unknown"
    assert not asked
