"""The settings file as types: each key with its default, none of them required."""

from enum import StrEnum

from wakeful.intake.bindings import Binding, DmScope
from wakeful.intake.draft import AttachmentLimits
from wakeful.models.providers import ProviderSettings
from wakeful.models.windows import ModelSettings
from wakeful.settings.hooks import HookSettings
from wakeful.settings.settings import (
    LaneSettings,
    OutboundSettings,
    ResetSettings,
    StormSettings,
)
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.vocabulary.agent import Limits, ThinkingLevel, ThrottleRules
from wakeful.vocabulary.approving import Permissions
from wakeful.vocabulary.automation import AutomationLimits
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.inbox import InboxRules
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.retention import Retention
from wakeful.vocabulary.route import Route

DEFAULT_PORT = 8484
SESSIONS_PER_HOUR = 60
MEGABYTES_PER_DAY = 500


class ServerSettings(Record):
    """Where the server listens, and under which names."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    sessions_per_hour: int = SESSIONS_PER_HOUR
    megabytes_per_day: int = MEGABYTES_PER_DAY


class AgentSettings(Record):
    """One agent, under its id."""

    model: str = "demo"
    fallback_models: tuple[str, ...] = ()
    thinking: ThinkingLevel | None = None
    instructions: str = ""
    instructions_file: str | None = None
    workspace: str | None = None
    shared_files: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    mcp: tuple[str, ...] = ()
    queue: QueueOverrides = NO_OVERRIDES
    limits: Limits = Limits()
    compaction: CompactionRules = CompactionRules()
    proactive: ProactiveRules = ProactiveRules()
    heartbeat: HeartbeatRules = HeartbeatRules()
    budget: BudgetRules = BudgetRules()
    quiet_hours: DailyHours | None = None
    throttle: ThrottleRules = ThrottleRules()
    routes: tuple[Route, ...] = ()
    approvals: Permissions = {}


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class TelemetrySettings(Record):
    """What the runtime says about itself; nothing is ever sent anywhere."""

    log_level: LogLevel = LogLevel.INFO


class SettingsFile(Record):
    """The whole file."""

    timezone: str | None = None
    database: str = "sqlite"
    database_file: str | None = None
    server: ServerSettings = ServerSettings()
    agents: dict[str, AgentSettings] = {}
    tools_from: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()
    dm_scope: DmScope = DmScope.MAIN
    identity_links: dict[str, tuple[str, ...]] = {}
    unified: bool = False
    reset: ResetSettings = ResetSettings()
    queue: QueueOverrides = NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}
    lanes: LaneSettings = LaneSettings()
    storm: StormSettings = StormSettings()
    max_chain_depth: int = 16
    attachments: AttachmentLimits = AttachmentLimits()
    inbox: InboxRules = InboxRules()
    outbound: dict[str, OutboundSettings] = {}
    hooks: dict[str, HookSettings] = {}
    mcp_servers: dict[str, McpServerSettings] = {}
    models: dict[str, ModelSettings] = {}
    providers: dict[str, ProviderSettings] = {}
    retention: Retention = Retention()
    automations: AutomationLimits = AutomationLimits()
    telemetry: TelemetrySettings = TelemetrySettings()
    drain_s: float = 30.0
    watchdog_s: float = 30.0
