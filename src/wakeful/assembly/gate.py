"""The wake gate, built of what the operator chose."""

from collections.abc import Callable, Sequence
from datetime import tzinfo

from wakeful.bus.bus import Bus
from wakeful.gate.budgets import Budgets
from wakeful.gate.days import Days
from wakeful.gate.gate import WakeGate
from wakeful.gate.quiet import QuietHours
from wakeful.gate.wakes import MayWake
from wakeful.models.tariffs import Tariff, tariffs_of
from wakeful.notices.notices import Notices
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.vocabulary.agent import Agents


def build_gate(
    agents: Agents,
    ready_agents: Callable[[], ReadyAgents],
    bus: Bus,
    notices: Notices,
    zone: tzinfo | None,
    features: MayWake,
) -> WakeGate:
    """Return the gate; the agents made ready are asked for when there is something to ask."""

    def tariffs(agent_id: str) -> Sequence[Tariff]:
        agent = ready_agents().get(agent_id)
        return () if agent is None else tariffs_of(agent.model)

    days = Days(zone)
    budgets = Budgets(agents, days, bus, notices)
    return WakeGate(bus, budgets, QuietHours(agents, days), tariffs, features)
