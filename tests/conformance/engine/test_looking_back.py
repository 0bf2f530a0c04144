"""An agent looks back alike on each database."""

import re

from tests.conformance.engine.conftest import SettingsFor
from wakeful.models.model import Reply, Request
from wakeful.testing.kit import Scripted, call, in_memory, says
from wakeful.tools.tool import tool


@tool(effect="read")
def flood() -> str:
    """Say a lot, in letters of several bytes."""
    return "äß€😀" * 10_000


async def test_cut_outputs_lists_and_histories_are_read(settings_for: SettingsFor):
    def read_on(request: Request) -> Reply:
        id = re.findall(r"id '(\S+)', offset", request.messages[-1].text)[0]
        return says(
            "",
            call("read_output", id=id, offset=39_990, limit=100),
            call("sessions_list", kinds=["main", "web"], active_minutes=10),
            call("sessions_history", limit=5, include_tools=True),
        )

    model = Scripted([says("", call("flood")), read_on, "done"])
    async with in_memory(model, tools=[flood], settings=settings_for()) as runtime:
        turn = await runtime.wait(await runtime.send("look"))

    assert turn is not None
    assert turn.reply == "done"
    output, listed, history = (message.text for message in model.requests[2].messages[-3:])
    assert output == ("äß€😀" * 3)[-10:]
    assert listed.startswith("agent:main:main (")
    assert "operator: look" in history
    assert "you:  [called flood]" in history
