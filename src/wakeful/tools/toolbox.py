"""The tools a turn may use, chosen by the agent and by how far its stimulus is trusted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from wakeful.models.model import ToolSpec
from wakeful.tools.tool import Tool
from wakeful.views.agents import ServerStatus
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Trust


class ToolSource(Protocol):
    """Somebody whose tools come and go while the runtime runs."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Return what it has to offer; replaced as a whole, never changed."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return a tool by its name, also one that it may have but has not listed yet."""
        ...

    async def settled(self) -> None:
        """Wait, though not for long, until it is known what there is."""
        ...

    def status(self) -> ServerStatus: ...


class Toolbox:
    """Tools by name; the order is fixed, so that prompts stay the same from turn to turn."""

    def __init__(self, tools: Iterable[Tool], sources: Sequence[ToolSource] = ()) -> None:
        self._sources = tuple(sources)
        self._tools: dict[str, Tool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            if tool.name in self._tools:
                raise InvalidInput("tools", f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    async def settled(self) -> None:
        """Wait, though not for long, until every source has said what it has."""
        for source in self._sources:
            await source.settled()

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Return how the sources are doing, and which of their tools are hidden."""
        return tuple(self._with_hidden(source.status()) for source in self._sources)

    def get(self, name: str, trust: Trust, granted: Collection[str] = ()) -> Tool | None:
        """Return a tool that a turn of this trust may call, or that it was granted."""
        tool = self._tools.get(name)
        for source in self._sources:
            tool = tool or source.find(name)
        return tool if tool is not None and _may_use(tool, trust, granted) else None

    def specs(self, trust: Trust, granted: Collection[str] = ()) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self.all().values() if _may_use(tool, trust, granted))

    def all(self) -> Mapping[str, Tool]:
        """Return every tool there is now, by name; the agent's own hide those of its sources."""
        if not self._sources:
            return self._tools
        offered = {name: tool for source in self._sources for name, tool in source.tools.items()}
        return dict(sorted((offered | self._tools).items()))

    def _with_hidden(self, status: ServerStatus) -> ServerStatus:
        hidden = (
            f"{name!r} is hidden by a tool of the agent with that name; rename the server"
            for name in status.tools
            if name in self._tools
        )
        return msgspec.structs.replace(status, problems=(*status.problems, *hidden))


def _may_use(tool: Tool, trust: Trust, granted: Collection[str]) -> bool:
    return trust is Trust.OPERATOR or tool.is_for_external or tool.name in granted
