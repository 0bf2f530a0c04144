"""What a plan says, built and checked before anybody works by it; and everybody who then does."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from wakeful.assembly.doors import webhook_doors
from wakeful.assembly.plan import Plan
from wakeful.assembly.ready_agents import card_of, mcp_servers, ready_agent, refuse_open_homes
from wakeful.assembly.views import Cards
from wakeful.automations.acts import AutomationActs
from wakeful.automations.scheduling import Scheduling
from wakeful.doors.sender import Door, Sender
from wakeful.gate.days import Days
from wakeful.intake.accept import IntakeRules
from wakeful.intake.bindings import Bindings
from wakeful.intake.intake import Intake
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.models.catalog import Catalog
from wakeful.models.model import Model
from wakeful.operations.janitor import Janitor
from wakeful.settings.hooks import hook_of
from wakeful.settings.settings import Settings
from wakeful.tools.mcp.server import McpServer
from wakeful.triggers.beating import Beating
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.turn import TurnRunner
from wakeful.views.agents import AgentView
from wakeful.vocabulary.agent import AgentConfig, Agents
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.inbox import InboxRules
from wakeful.vocabulary.stimulus import StormLimits
from wakeful.webhooks.hook import Hook
from wakeful.webhooks.table import Webhooks


@dataclass(frozen=True, kw_only=True)
class Configured:
    """Everything that an operator chose and that may change while turns go on."""

    settings: Settings
    servers: Mapping[str, McpServer]
    ready_agents: Mapping[str, ReadyAgent]
    catalog: Catalog
    bindings: Bindings
    rules: IntakeRules
    doors: Mapping[str, Door]
    hooks: Mapping[str, Hook]

    @property
    def configs(self) -> dict[str, AgentConfig]:
        return {agent_id: agent.config for agent_id, agent in self.ready_agents.items()}

    @property
    def cards(self) -> Cards:
        return {agent_id: partial(card_of, agent) for agent_id, agent in self.ready_agents.items()}

    @property
    def pools(self) -> dict[str, int]:
        return msgspec.structs.asdict(self.settings.lanes)


def configured(plan: Plan, running: Mapping[str, McpServer] | None = None) -> Configured:
    """Build what a plan says, or refuse the first thing that could not work.

    MCP servers that run already, and are wanted just as they are, go on.
    """
    refuse_open_homes(plan)
    settings = plan.settings
    servers = mcp_servers(plan, running or {})
    catalog = Catalog(settings.providers, settings.models, plan.clock)
    ready_agents = {
        agent.id: ready_agent(agent, servers, catalog, settings.bindings)
        for agent in plan.agents.values()
    }
    agents = Agents({agent_id: agent.config for agent_id, agent in ready_agents.items()})
    return Configured(
        settings=settings,
        servers=servers,
        ready_agents=ready_agents,
        catalog=catalog,
        bindings=_bindings(settings, agents, plan),
        rules=_intake_rules(settings, agents),
        doors={**plan.doors, **webhook_doors(settings.outbound, plan.clock)},
        hooks=_hooks(settings, agents),
    )


@dataclass(frozen=True, kw_only=True)
class Followers:
    """Whoever works by what was chosen, and follows when it changes."""

    agents: Agents
    bindings: Bindings
    days: Days
    intake: Intake
    ready_agents: ReadyAgents
    catalog: Catalog
    cards: AgentView
    dispatcher: Dispatcher
    turns: TurnRunner
    beating: Beating
    scheduling: Scheduling
    automations: AutomationActs
    sender: Sender
    janitor: Janitor
    webhooks: Webhooks

    def follow(self, new: Configured) -> list[Model]:
        """Work by other settings from now on; return the models that nobody new will ask.

        Nothing waits and nothing is cut: an open turn keeps what it opened with, and whatever is
        accepted or claimed next goes by what is new.
        """
        self.agents.follow(new.configs)
        self.bindings.follow(new.bindings)
        self.catalog.follow(new.catalog)
        self.intake.follow(new.rules)
        self.cards.follow(new.cards)
        self.dispatcher.follow(new.pools)
        self.turns.follow(new.settings.timezone)
        self.beating.follow(new.settings.zone)
        self.scheduling.follow(new.settings.zone)
        self.automations.follow(new.settings.automations)
        self.days.follow(new.settings.zone)
        self.sender.follow(new.doors)
        self.webhooks.follow(new.hooks)
        self.janitor.follow(new.settings.retention)
        return self.ready_agents.follow(new.ready_agents, new.catalog.resolve_one)


def _bindings(settings: Settings, agents: Agents, plan: Plan) -> Bindings:
    for position, binding in enumerate(settings.bindings):
        if binding.agent not in agents:
            raise InvalidInput(f"bindings[{position}].agent", f"no agent {binding.agent!r}")
    return Bindings(
        settings.bindings,
        default_agent=plan.default_agent,
        dm_scope=settings.dm_scope,
        identity_links=settings.identity_links,
        is_unified=settings.unified,
    )


def _hooks(settings: Settings, agents: Agents) -> dict[str, Hook]:
    for name, hook in settings.hooks.items():
        if hook.agent not in agents:
            raise InvalidInput(f"hooks.{name}.agent", f"no agent {hook.agent!r}")
    return {name: hook_of(name, hook) for name, hook in settings.hooks.items()}


def _intake_rules(settings: Settings, agents: Agents) -> IntakeRules:
    storm = settings.storm
    return IntakeRules(
        queue=settings.queue,
        doors=settings.doors,
        storm=StormLimits(turns=storm.turns, window_s=storm.window_s),
        max_chain_depth=settings.max_chain_depth,
        reset=settings.reset.times(settings.timezone),
        attachments=settings.attachments,
        inbox=_inbox_rules(settings, agents),
    )


def _inbox_rules(settings: Settings, agents: Agents) -> InboxRules:
    for name, source in settings.inbox.sources.items():
        if source.agent is not None and source.agent not in agents:
            raise InvalidInput(f"inbox.sources.{name}.agent", f"no agent {source.agent!r}")
    return settings.inbox
