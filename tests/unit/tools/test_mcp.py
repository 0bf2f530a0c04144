"""What an operator says of MCP servers, and what the servers say, is checked before it is used."""

from pathlib import Path
from typing import Any

import pytest

from wakeful.tools.mcp.listing import Listed, checked, name_of
from wakeful.tools.mcp.options import (
    McpServerSettings,
    RemoteEffect,
    RemoteTool,
    refuse_bad_server,
)
from wakeful.tools.mcp.server import McpServer
from wakeful.tools.tool import Effect, Tool, ToolContext
from wakeful.tools.toolbox import Toolbox
from wakeful.views.agents import ServerStatus
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Trust


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("Notes", {"command": ("x",)}, "mcp_servers.Notes: must have a name of 1 to 32 small"),
        ("a_b", {"command": ("x",)}, "mcp_servers.a_b: must have a name"),
        ("n", {}, "mcp_servers.n: needs either 'url' or 'command'"),
        ("n", {"url": "http://x.example", "command": ("x",)}, "needs either 'url' or 'command'"),
        ("n", {"url": "ftp://x.example"}, "mcp_servers.n.url: must be http"),
        ("n", {"url": "http://127.0.0.1/mcp"}, "mcp_servers.n.url: has an address that is not"),
        ("n", {"url": "http://x.example", "env": {"A": "1"}}, "'env' and 'folder' go with"),
        ("n", {"url": "http://x.example", "args": ("a",)}, "'args', 'env' and 'folder' go with"),
        ("n", {"command": "npx -y files"}, "n.command: must be a list of words, or the program"),
        ("n", {"args": ("a",)}, "mcp_servers.n: needs either 'url' or 'command'"),
        ("n", {"command": ("x",), "bearer": "t"}, "'headers', 'bearer' and 'allow_private' go"),
        ("n", {"command": ("",)}, "mcp_servers.n.command: must be a list of words"),
        ("n", {"command": ("x",), "env": {"A=B": "1"}}, "mcp_servers.n.env.A=B: cannot be"),
        ("n", {"url": "http://x.example", "headers": {"A": "b\r\nC: d"}}, "headers.A: must be"),
        (
            "n",
            {"url": "http://x.example", "bearer": "t", "headers": {"authorization": "x"}},
            "mcp_servers.n.bearer: must not be given together with 'Authorization'",
        ),
    ],
)
def test_a_server_nobody_could_speak_to_is_refused(name: str, given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=r".") as refused:
        refuse_bad_server(name, McpServerSettings(**given))

    assert told in str(refused.value)


def test_the_operator_says_what_tools_do_by_server_or_one_by_one() -> None:
    server = McpServerSettings(
        command=("x",),
        effect=RemoteEffect.IDEMPOTENT,
        timeout_s=9,
        tools={"a": RemoteTool(effect=RemoteEffect.READ), "b": RemoteTool(timeout_s=3)},
    )

    assert McpServerSettings(command=("x",)).effect_of("any") is Effect.EFFECT
    assert [server.effect_of(tool).value for tool in "abc"] == ["read", "idempotent", "idempotent"]
    assert [server.timeout_of(tool) for tool in "abc"] == [9, 3, 9]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string"}, "does not describe an object"),
        ({}, "does not describe an object"),
        ({"type": "object", "properties": []}, "has a bad schema: [] is not of type 'object'"),
        ({"type": "object", "properties": {"a": {"pattern": "b{%s}" % ("9" * 20)}}}, "bad schema"),
        ({"type": "object", "x": {1, 2}}, None),
    ],
)
def test_a_schema_that_no_model_could_be_told_is_refused(schema: Any, told: str | None) -> None:
    listing = checked("n", [Listed(name="t", description="", schema=schema)])

    assert (list(listing.tools) == ["n_t"]) is (told is None)
    assert told is None or told in listing.refused[0]


def test_names_are_told_with_their_server() -> None:
    assert name_of("notes", "a.b/c d") == "notes_a_b_c_d"


class Offering:
    """A source whose tools are given."""

    def __init__(self, *names: str) -> None:
        self.tools = {name: make(name) for name in names}

    def find(self, name: str) -> Tool | None:
        return self.tools.get(name)

    async def settled(self) -> None:
        return None

    def status(self) -> ServerStatus:
        return ServerStatus(name="n", state="up", tools=tuple(self.tools))


def make(name: str) -> Tool:
    def same(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    return Tool(same, name=name, schema={"type": "object"})


async def test_an_agents_own_tools_hide_those_of_its_servers_and_it_is_told() -> None:
    own = make("memory_read")
    toolbox = Toolbox([own, make("z")], [Offering("a", "memory_read")])

    await toolbox.settled()

    assert list(toolbox.all()) == ["a", "memory_read", "z"]
    assert toolbox.get("memory_read", Trust.OPERATOR) is own
    assert toolbox.get("a", Trust.OPERATOR) is not None
    assert toolbox.get("a", Trust.EXTERNAL) is None
    assert "'memory_read' is hidden by a tool of the agent" in toolbox.statuses()[0].problems[0]


def test_a_tool_with_a_schema_of_its_own_takes_its_arguments_as_they_are() -> None:
    assert make("a").parse({"someThing": [1]}) == {"arguments": {"someThing": [1]}}
    assert make("a").spec.parameters == {"type": "object"}


@pytest.mark.parametrize("name", ["notes_a b", "notes_\u00fc", "notes_" + "x" * 100, "notes_\n"])
def test_what_cannot_be_a_tools_name_is_not_found_while_a_server_is_away(name: str) -> None:
    settings = McpServerSettings(command=("true",))
    server = McpServer("notes", settings, folder=Path(), clock=ManualClock())

    assert server.find("notes_add") is not None
    assert server.find(name) is None
