"""A wake gate for tests that build rooms of their own: it knows the agents, and no prices."""

from wakeful.assembly.gate import build_gate
from wakeful.bus.bus import Bus
from wakeful.gate import wakes
from wakeful.gate.gate import WakeGate
from wakeful.models.model import Model
from wakeful.notices.notices import Notices
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.vocabulary.agent import AgentConfig, Agents, Limits
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids


def open_gate(bus: Bus, ids: Ids, *configs: AgentConfig) -> WakeGate:
    """Return a gate that refuses what the budgets of these agents refuse, and nothing else."""
    agents = Agents({config.id: config for config in configs})
    return build_gate(
        agents, lambda: ReadyAgents({}, _nobody), bus, Notices(bus, ids), None, wakes.everything
    )


def _nobody(name: str, _limits: Limits) -> Model:
    raise InvalidInput("model", f"there is no {name}")
