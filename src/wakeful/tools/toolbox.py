"""The tools a turn may use, chosen by the agent and by how far its stimulus is trusted."""

from collections.abc import Iterable, Mapping

from wakeful.models.model import ToolSpec
from wakeful.tools.tool import Tool
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Trust


class Toolbox:
    """Tools by name; the order is fixed, so that prompts stay the same from turn to turn."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            if tool.name in self._tools:
                raise InvalidInput("tools", f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def get(self, name: str, trust: Trust) -> Tool | None:
        """Return a tool that a turn of this trust may call."""
        tool = self._tools.get(name)
        return tool if tool is not None and _may_use(tool, trust) else None

    def specs(self, trust: Trust) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values() if _may_use(tool, trust))

    def all(self) -> Mapping[str, Tool]:
        return self._tools


def _may_use(tool: Tool, trust: Trust) -> bool:
    return trust is Trust.OPERATOR or tool.is_for_external
