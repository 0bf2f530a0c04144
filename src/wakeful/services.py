"""What doors, commands and the runtime's own verbs reach: all there is to look at, and to do.

Assembly builds them once. A service that is added is a field here and a line in its builder.
"""

from dataclasses import dataclass
from typing import Protocol

from wakeful.access.credentials import Credentials
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.activity.activity import ActivityActs
from wakeful.approvals.acts import ApprovalActs
from wakeful.automations.acts import AutomationActs
from wakeful.bus.bus import Bus
from wakeful.gate.budget_acts import BudgetActs
from wakeful.intake.bindings import Bindings
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import Deletion
from wakeful.intake.imports import TranscriptImports
from wakeful.intake.inbox_items import InboxItems
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.triggers.heartbeat_acts import HeartbeatActs
from wakeful.triggers.quiet_acts import QuietActs
from wakeful.triggers.sleep_acts import SleepActs
from wakeful.views.activity import ActivityView
from wakeful.views.agents import AgentView
from wakeful.views.approvals import ApprovalView
from wakeful.views.attachments import AttachmentView
from wakeful.views.automations import AutomationView
from wakeful.views.budgets import BudgetView
from wakeful.views.counts import CountsView
from wakeful.views.deliveries import DeliveryView
from wakeful.views.heartbeats import HeartbeatView
from wakeful.views.hooks import HookView
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
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.forecast import USUAL_DAYS, Forecast
from wakeful.vocabulary.ids import Ids
from wakeful.webhooks.table import Webhooks


@dataclass(frozen=True, kw_only=True)
class Views:
    """The half that only looks; it needs no more than a database that can be read."""

    store: Store
    bus: Bus
    clock: Clock
    bindings: Bindings
    activity: ActivityView
    agents: AgentView
    approvals: ApprovalView
    attachments: AttachmentView
    automations: AutomationView
    budgets: BudgetView
    counts: CountsView
    deliveries: DeliveryView
    heartbeats: HeartbeatView
    inbox: InboxView
    hooks: HookView
    lanes: LaneView
    ledger: LedgerView
    notices: NoticeView
    outputs: OutputView
    quiet: QuietView
    search: SearchView
    sessions: SessionView
    sleeps: SleepView
    transcripts: TranscriptView
    turns: TurnView
    usage: UsageView
    why: WhyView


class ForecastOf(Protocol):
    """Tells what the schedule alone will do, in so many days, of one agent or of all."""

    async def __call__(self, days: int = USUAL_DAYS, agent: str | None = None) -> Forecast: ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything that may be looked at, and everything that may be done."""

    views: Views
    ids: Ids
    metrics: Metrics
    intake: Intake
    activity: ActivityActs
    acts: SessionActs
    compactions: Compactions
    sleep_acts: SleepActs
    heartbeats: HeartbeatActs
    budget_acts: BudgetActs
    quiet_acts: QuietActs
    approval_acts: ApprovalActs
    inbox_items: InboxItems
    deletion: Deletion
    imports: TranscriptImports
    automations: AutomationActs
    credentials: Credentials
    gatekeeper: Gatekeeper
    webhooks: Webhooks
    forecast: ForecastOf
