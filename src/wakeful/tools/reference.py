"""The reference page of the built-in tools, made from the tools themselves."""

from collections.abc import Iterator

from wakeful.tools.builtin import default_tools, optional_tools
from wakeful.tools.tool import Effect, Tool

_HEAD = """\
# Tools

What an agent has. Those marked *off* act with the runtime's own rights or speak to strangers: \
an agent has them only if `tools:` names them. A turn that was opened by text from outside has \
only those marked *outside too*. Tools of MCP servers and your own come on top ([write a \
tool](../howto/tools.md), [connect a server](../howto/mcp.md)).

The effect says what a crash in the middle leaves: `read` and `idempotent` run again, `effect` \
never does and is shown to the model as "interrupted, outcome unknown", `ledger` happened with \
its result or not at all. A model is shown 16 kB of a result; the rest is read by its id, with \
`read_output` or `GET /api/outputs/{id}`.

| tool | effect | who has it | time-out | what it does |
|---|---|---|---|---|
"""


def reference() -> str:
    """Return the page in Markdown."""
    return _HEAD + "".join(_rows())


def _rows() -> Iterator[str]:
    optional = {tool.name for tool in optional_tools()}
    for tool in sorted((*default_tools(), *optional_tools()), key=lambda tool: tool.name):
        who = "*off*" if tool.name in optional else "default"
        if tool.is_for_external:
            who = "default, *outside too*"
        yield f"| `{tool.name}` | `{tool.effect}` | {who} | {_time_out(tool)} | {_first(tool)} |\n"


def _time_out(tool: Tool) -> str:
    return "none" if tool.effect is Effect.LEDGER else f"{tool.timeout_s:g} s"


def _first(tool: Tool) -> str:
    return tool.description.partition("\n")[0].replace("|", "\\|")
