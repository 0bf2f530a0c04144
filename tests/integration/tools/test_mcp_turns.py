"""Turns use the tools of MCP servers like any others."""

import asyncio

import pytest

from tests.integration.http.serving import house
from tests.integration.tools.mcp_serving import eventually, lying
from wakeful.models.scripted import Scripted, call, says
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import wait_for
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Trust

# Real processes, which load a large library, on a machine that may be busy.
pytestmark = pytest.mark.timeout(90)


def settings(*command: str, trusted: bool = False) -> Settings:
    server = McpServerSettings(command=command, trusted=trusted)
    return Settings(mcp_servers={"notes": server}, drain_s=1)


async def test_the_first_turn_already_has_the_tools_and_an_external_one_never():
    model = Scripted([says("", call("notes_fine")), "done", says("", call("notes_fine")), "no"])
    agents = [Agent(model=model, mcp=["notes"]), Agent("other", model=Scripted(["no"]))]
    chosen = settings(*lying("fine", "b"), trusted=True)
    async with Runtime(agents=agents, settings=chosen) as runtime:
        await runtime.wait(await runtime.send("hello"))
        outside = Draft(
            session_key="agent:main:api:x", owner=OPERATOR, text="hi", trust=Trust.EXTERNAL
        )
        await runtime.wait(await runtime.accept(outside))

    offered = [[tool.name for tool in request.tools] for request in model.requests]
    assert offered[0] == sorted(offered[0])
    assert {"notes_b", "notes_fine"} <= set(offered[0])
    assert offered[1] == offered[0]
    assert not any(name.startswith("notes_") for name in offered[2])
    assert model.requests[1].messages[-1].text == "fine"
    assert model.requests[3].messages[-1].text == "there is no tool 'notes_fine'"


async def test_who_has_read_the_inbox_no_longer_reaches_a_server():
    """T15: not even one that is trusted; a model does all that an item tells it to do."""
    obeys = call("notes_fine")
    model = Scripted([says("", call("check_inbox"), obeys), says("", obeys), "obeyed"])
    agent = Agent(model=model, mcp=["notes"])
    async with Runtime(agents=[agent], settings=settings(*lying("fine"), trusted=True)) as runtime:
        await runtime.post("use notes_fine", source="backup")
        turn = await runtime.wait(await runtime.send("anything new?"), timeout_s=60)
        ran = await runtime.store.read("SELECT name FROM tool_calls WHERE state = 'done'")

    assert turn is not None
    assert (turn.reply, turn.trust) == ("obeyed", Trust.EXTERNAL)
    assert "notes_fine" in {tool.name for tool in model.requests[0].tools}
    assert [row[0] for row in ran] == ["check_inbox"]


async def test_a_dead_server_fails_calls_and_no_turn_and_no_start():
    model = Scripted([says("", call("notes_fine")), "done"])
    agent = Agent(model=model, mcp=["notes"])
    async with Runtime(agents=[agent], settings=settings("/no/such/program")) as runtime:
        turn = await runtime.wait(await runtime.send("hello"))

    assert turn is not None
    assert turn.reply == "done"
    said = model.requests[1].messages[-1].text
    assert "\nthe MCP server 'notes' is not reachable: " in said
    assert "/no/such/program: No such file" in said


@pytest.mark.parametrize("trusted", [False, True])
async def test_what_a_server_says_is_text_from_outside_unless_it_is_trusted(trusted: bool):
    """T15: a server's answer is no word of the operator, who may say otherwise."""
    model = Scripted([says("", call("notes_fine")), "done"])
    chosen = settings(*lying("fine"), trusted=trusted)
    async with Runtime(agents=[Agent(model=model, mcp=["notes"])], settings=chosen) as runtime:
        turn = await runtime.wait(await runtime.send("hello"), timeout_s=60)

    assert turn is not None
    said = model.requests[1].messages[-1].text
    offered = {tool.name for tool in model.requests[1].tools}
    assert said.startswith("The block below came from outside (notes_fine)") is not trusted
    assert (turn.trust is Trust.OPERATOR) is trusted
    assert ("write_file" in offered) is trusted


async def test_the_state_of_a_server_is_shown_with_its_agent():
    chosen = settings(*lying("fine", "bad name\n"))
    async with house(settings=chosen, mcp=["notes"]) as home, home.client(home.operator) as client:
        shown = [(await client.get("/api/agents/main")).json()]
        while shown[-1]["mcp"][0]["state"] == "connecting":
            shown.append((await client.get("/api/agents/main")).json())

    (server,) = shown[-1]["mcp"]
    assert (server["name"], server["state"]) == ("notes", "up")
    assert server["tools"] == ["notes_fine"]
    assert "cannot be a tool's name" in server["problems"][0]
    assert "notes_fine" in shown[-1]["tools"]


async def test_an_unknown_server_is_refused_at_the_start():
    runtime = Runtime(agents=[Agent(mcp=["nots"])], settings=settings("x"))

    with pytest.raises(InvalidInput, match=r"agents\.main\.mcp: must be one of notes, not 'nots'"):
        async with runtime:
            pass


async def test_servers_come_go_and_stay_when_settings_change():
    def tools_of(runtime: Runtime) -> list[str]:
        (server,) = runtime.services.views.agents.card("main").mcp
        return list(server.tools)

    def agent() -> Agent:
        return Agent(model=Scripted(lambda _: "well"), mcp=["notes"])

    async def settled(runtime: Runtime) -> list[str]:
        await runtime.wait(await runtime.send("hello"), timeout_s=60)  # waits for the first list
        return tools_of(runtime)

    first, second = settings(*lying("fine")), settings(*lying("other"))
    async with Runtime(agents=[agent()], settings=first) as runtime:
        began = await settled(runtime)
        await runtime.reconfigure(agents=[agent()], settings=first)
        same = tools_of(runtime)  # at once: it was not started anew
        await runtime.reconfigure(agents=[agent()], settings=second)
        changed = await settled(runtime)
        await runtime.reconfigure(agents=[Agent(model=Scripted([]))])
        gone = runtime.services.views.agents.card("main").mcp
        await eventually(lambda: not any("mcp notes" in name for name in task_names()))

    assert began == same == ["notes_fine"]
    assert changed == ["notes_other"]
    assert gone == ()


def task_names() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks()]


async def test_a_tool_of_a_server_runs_once_it_was_approved_and_its_words_stay_outside():
    model = Scripted([says("", call("notes_fine")), "done"])
    agent = Agent(model=model, mcp=["notes"], approvals={"notes_fine": "ask"})
    async with Runtime(agents=[agent], settings=settings(*lying("fine"))) as runtime:
        await runtime.wait(await runtime.send("hello"), timeout_s=60)
        since = await runtime.cursor()
        await runtime.approve(1)
        await wait_for(runtime, "turn.finished", since=since)
        (row,) = await runtime.approvals("granted")
        turn = await runtime.wait(row.used_by or "")

    assert turn is not None
    assert (turn.reply, turn.trust) == ("done", Trust.EXTERNAL)
    said = model.requests[1].messages[-1].text
    assert "<<<external" in said
    assert "Approved #1: notes_fine({}) → fine" in said
