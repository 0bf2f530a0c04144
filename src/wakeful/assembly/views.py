"""The half of the services that only looks: all it needs is a store that can be read."""

from collections.abc import Callable, Mapping

from wakeful.bus.bus import Bus
from wakeful.gate.days import Days
from wakeful.intake.bindings import Bindings
from wakeful.services import Views
from wakeful.store.database import Store
from wakeful.views.activity import ActivityView
from wakeful.views.agents import AgentCard, AgentView
from wakeful.views.approvals import ApprovalView
from wakeful.views.attachments import AttachmentView
from wakeful.views.automations import AutomationView
from wakeful.views.budgets import BudgetView
from wakeful.views.counts import CountsView
from wakeful.views.deliveries import DeliveryView
from wakeful.views.heartbeats import HeartbeatView
from wakeful.views.hooks import HookView
from wakeful.views.in_turn import InTurn
from wakeful.views.inbox import InboxView
from wakeful.views.lanes import LaneView
from wakeful.views.ledger import LedgerView
from wakeful.views.notices import NoticeView
from wakeful.views.outputs import OutputView
from wakeful.views.quiet import QuietView
from wakeful.views.search import SearchView
from wakeful.views.sessions import SessionView
from wakeful.views.sleeps import SleepView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.views.usage import UsageView
from wakeful.views.why import WhyView
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock

Cards = Mapping[str, Callable[[], AgentCard]]  # what each agent is now, by its id


def views_over(
    store: Store,
    bus: Bus,
    clock: Clock,
    bindings: Bindings,
    cards: Cards,
    agents: Agents,
    days: Days,
) -> Views:
    """Build every view over a store: of a runtime, or of a database that is only read."""
    sessions, heartbeats = SessionView(store), HeartbeatView(store)
    budgets, quiet = BudgetView(store, clock, agents, days), QuietView(store, clock, agents, days)
    in_turn, approvals = InTurn(store), ApprovalView(store)
    automations = AutomationView(store, clock)
    return Views(
        store=store,
        bus=bus,
        clock=clock,
        bindings=bindings,
        activity=ActivityView(store),
        agents=AgentView(store, cards, heartbeats, budgets, quiet, approvals, automations),
        approvals=approvals,
        attachments=AttachmentView(store),
        automations=automations,
        budgets=budgets,
        counts=CountsView(store, bus),
        deliveries=DeliveryView(store),
        heartbeats=heartbeats,
        inbox=InboxView(store),
        hooks=HookView(store),
        lanes=LaneView(store, clock),
        ledger=LedgerView(store),
        notices=NoticeView(store),
        outputs=OutputView(store),
        quiet=quiet,
        search=SearchView(store, in_turn),
        sessions=sessions,
        sleeps=SleepView(store),
        transcripts=TranscriptView(store),
        turns=TurnView(store, bus, clock, days),
        usage=UsageView(store, in_turn),
        why=WhyView(store, sessions, approvals),
    )
