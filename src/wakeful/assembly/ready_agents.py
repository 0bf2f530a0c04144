"""Agents made ready: model, tools, and the servers that some of the tools come from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from wakeful.assembly.plan import Plan
from wakeful.intake.bindings import Binding
from wakeful.models.catalog import Catalog
from wakeful.tools.builtin import default_tools
from wakeful.tools.mcp.server import McpServer
from wakeful.tools.toolbox import Toolbox
from wakeful.turn.agent import Agent, ReadyAgent
from wakeful.views.agents import AgentCard
from wakeful.vocabulary.errors import InvalidInput
from wakeful.workspace import refuse_around


def mcp_servers(plan: Plan, running: Mapping[str, McpServer]) -> dict[str, McpServer]:
    """Return the servers whose tools some agent has; the others are not even started.

    One that runs already under the same settings is returned as it is.
    """
    known, home = plan.settings.mcp_servers, plan.settings.home or Path()
    used = {name: agent.id for agent in plan.agents.values() for name in agent.mcp}
    for name, agent_id in used.items():
        if name not in known:
            rule = f"must be one of {', '.join(sorted(known)) or 'none'}, not {name[:60]!r}"
            raise InvalidInput(f"agents.{agent_id}.mcp", rule)
    found: dict[str, McpServer] = {}
    for name in sorted(used):
        settings, kept = known[name], running.get(name)
        # Of its own by default: in the home folder lies the operator's token.
        own = "" if plan.settings.home is None else f"mcp/{name}"
        folder = home / Path(settings.folder or own).expanduser()
        if kept is None or not kept.is_for(settings, folder):
            kept = McpServer(name, settings, folder=folder, clock=plan.clock)
        found[name] = kept
    return found


def refuse_open_homes(plan: Plan) -> None:
    """Raise if an agent's file tools would reach what is the operator's."""
    home = plan.settings.home
    for agent in plan.agents.values():
        if home is not None and agent.workspace is not None:
            refuse_around(home, agent.workspace)


def ready_agent(
    agent: Agent,
    servers: Mapping[str, McpServer],
    catalog: Catalog,
    bindings: Sequence[Binding],
) -> ReadyAgent:
    own = {tool.name for tool in agent.tools}
    builtin = default_tools() if agent.has_default_tools else ()
    tools = [*agent.tools, *(tool for tool in builtin if tool.name not in own)]
    toolbox = Toolbox(tools, [servers[name] for name in agent.mcp])
    models = (agent.model, *agent.fallback_models)
    model = catalog.resolve(models, agent.config.limits)
    return ReadyAgent(agent, model, toolbox, is_proactive=_is_proactive(agent, bindings))


def _is_proactive(agent: Agent, bindings: Sequence[Binding]) -> bool:
    """Tell whether sessions of an agent wake by themselves: all of them are told alike."""
    return agent.config.proactive.enabled or any(
        binding.agent == agent.id and binding.proactive is not None and binding.proactive.enabled
        for binding in bindings
    )


def card_of(agent: ReadyAgent) -> AgentCard:
    return AgentCard(
        config=agent.config,
        model=agent.model.name,
        fallback_models=agent.fallback_models,
        tools=tuple(agent.toolbox.all()),
        mcp=agent.toolbox.statuses(),
    )
