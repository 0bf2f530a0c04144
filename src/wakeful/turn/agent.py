"""An agent: as it is configured, and as it is made ready to run turns."""

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from wakeful.models.model import Model, Request, ToolSpec, cache_edges
from wakeful.models.windows import tokens_read
from wakeful.prompts.files import PromptFiles
from wakeful.prompts.system import system_prompt
from wakeful.tools.tool import Tool
from wakeful.tools.toolbox import Toolbox
from wakeful.vocabulary import approving, compacting, hours, queueing
from wakeful.vocabulary.agent import (
    AgentConfig,
    Limits,
    ThinkingLevel,
    ThrottleRules,
    checked_throttle,
    parse_thinking,
)
from wakeful.vocabulary.approving import Permission, Permissions, ToolPermission
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.budget import checked as checked_budget
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.heartbeat import checked as checked_heartbeat
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.proactive import checked as checked_proactive
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import checked_agent_id
from wakeful.vocabulary.stimulus import Trust
from wakeful.workspace import checked_shared

DEFAULT_LIMITS = Limits()
DEFAULT_COMPACTION = CompactionRules()
DEFAULT_PROACTIVE = ProactiveRules()
DEFAULT_HEARTBEAT = HeartbeatRules()
DEFAULT_BUDGET = BudgetRules()
DEFAULT_THROTTLE = ThrottleRules()
NO_APPROVALS: Permissions = {}


class Agent:
    """An agent's configuration: which model, tools, workspace and limits it has."""

    # Each of these is a word of the configuration; a caller names the few it needs.
    def __init__(  # noqa: PLR0913
        self,
        id: str = "main",
        *,
        model: str | Model = "demo",
        fallback_models: Sequence[str | Model] = (),
        thinking: str | None = None,
        instructions: str = "",
        tools: Sequence[Tool] = (),
        has_default_tools: bool = True,
        mcp: Sequence[str] = (),
        workspace: Path | str | None = None,
        shared_files: Sequence[str] = (),
        queue: QueueOverrides = NO_OVERRIDES,
        limits: Limits = DEFAULT_LIMITS,
        compaction: CompactionRules = DEFAULT_COMPACTION,
        proactive: ProactiveRules = DEFAULT_PROACTIVE,
        heartbeat: HeartbeatRules = DEFAULT_HEARTBEAT,
        budget: BudgetRules = DEFAULT_BUDGET,
        quiet_hours: DailyHours | None = None,
        throttle: ThrottleRules = DEFAULT_THROTTLE,
        routes: Sequence[Route] = (),
        approvals: Mapping[str, Permission | ToolPermission | str] = NO_APPROVALS,
    ) -> None:
        self.id = checked_agent_id(id, "id")
        self.model = model
        self.fallback_models = tuple(fallback_models)
        self.instructions = instructions
        self.tools = tuple(tools)
        self.has_default_tools = has_default_tools
        self.mcp = tuple(dict.fromkeys(mcp))  # servers of the settings whose tools it has
        self.workspace = None if workspace is None else Path(workspace).expanduser()
        self.shared_files = checked_shared(shared_files)  # of it, with strangers
        self.config = AgentConfig(
            id=self.id,
            queue=queueing.checked(queue),
            limits=limits,
            compaction=compacting.checked(compaction),
            proactive=checked_proactive(proactive),
            heartbeat=checked_heartbeat(heartbeat, self.id),
            budget=checked_budget(budget),
            quiet_hours=None if quiet_hours is None else hours.checked(quiet_hours, "quiet_hours"),
            throttle=checked_throttle(throttle),
            routes=tuple(routes),
            thinking=None if thinking is None else parse_thinking(thinking),
            approvals=approving.checked(approving.read(approvals)),
        )


def model_name(model: str | Model) -> str:
    return model if isinstance(model, str) else model.name


class ReadyAgent:
    """An agent made ready to run turns: model resolved, tools gathered, prompt written."""

    def __init__(
        self, agent: Agent, model: Model, toolbox: Toolbox, *, is_proactive: bool = False
    ) -> None:
        self.agent_id = agent.id
        self.model = model
        self.fallback_models = tuple(map(model_name, agent.fallback_models))
        # One that the caller gave may be another agent's, too: it is not ours to close early.
        models = (agent.model, *agent.fallback_models)
        self.has_own_model = all(isinstance(one, str) for one in models)
        self.toolbox = toolbox
        self.config = replace(agent.config, cache_edges_ms=cache_edges(model))
        self.workspace = agent.workspace
        self.shared_files = agent.shared_files
        self._introduction = system_prompt(agent.id, agent.instructions, is_proactive=is_proactive)
        self._files = None if agent.workspace is None else PromptFiles(agent.workspace)
        asks = msgspec.json.encode(agent.config.approvals, order="sorted").decode()
        self._described = "\n".join((self._introduction, *toolbox.all(), *agent.mcp, asks))
        self.config_hash = _hash(model.name, self._described)
        self._request: tuple[int, int, int] | None = None  # what the last one was told first

    def speaking(self, model: Model, thinking: ThinkingLevel | None) -> Self:
        """Return the same agent with another model."""
        other = copy(self)
        other.model = model
        edges = cache_edges(model)
        other.config = replace(self.config, thinking=thinking, cache_edges_ms=edges)
        other.config_hash = _hash(f"{model.name} {thinking}", self._described)
        return other

    @property
    def fixed_tokens(self) -> int:
        """How many tokens its instructions and tools take, as far as it is known."""
        if self._request is None:
            self._request = (
                0,
                0,
                _fixed_tokens(self._introduction, self.toolbox.specs(Trust.OPERATOR)),
            )
        return self._request[2]

    def note_request(self, request: Request) -> None:
        """Learn from a request how much its instructions and tools take."""
        known = (len(request.system), len(request.tools))
        if self._request is None or self._request[:2] != known:
            self._request = (*known, _fixed_tokens(request.system, request.tools))

    async def can_remember(self) -> bool:
        """Tell whether memories could be kept; a folder that is not there yet is made."""
        return await asyncio.to_thread(lambda: self.is_writable)

    @property
    def is_writable(self) -> bool:
        """Whether the agent has a folder of its own to write in."""
        return self.workspace is not None and _is_writable(self.workspace)

    async def system(self, trust: Trust, *, is_light: bool = False) -> str:
        """Return the system prompt as it is now: what is configured, then files of the workspace.

        The same bytes as before unless one of the files has changed. Strangers can make a model
        say all of it: they get what is shared. A light heartbeat gets its tasks and the rules.
        """
        shared = None if trust is Trust.OPERATOR else self.shared_files
        said = ""
        if self._files is not None:
            said = await asyncio.to_thread(self._files.read, shared, is_light=is_light)
        return f"{self._introduction}\n\n{said}" if said else self._introduction


def _fixed_tokens(system: str, tools: Sequence[ToolSpec]) -> int:
    return tokens_read(Request(system=system, messages=(), tools=tools))


def _is_writable(folder: Path) -> bool:
    return not folder.exists() or os.access(folder, os.W_OK)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
