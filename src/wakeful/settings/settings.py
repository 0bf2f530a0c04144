"""Settings: everything an operator may choose, with a default for each; nobody below reads it."""

import re
from collections.abc import Sequence
from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

from wakeful.access.principal import INBOX, checked_scopes
from wakeful.doors.signing import read_keys
from wakeful.intake.bindings import Binding, DmScope
from wakeful.intake.draft import AttachmentLimits
from wakeful.intake.reset_times import ResetTimes
from wakeful.models.choosing import refuse_bad_provider
from wakeful.models.providers import ProviderSettings
from wakeful.models.windows import ModelSettings
from wakeful.net.addresses import is_public
from wakeful.net.target import parse
from wakeful.settings.hooks import HookSettings, hook_of
from wakeful.settings.keys import refuse_out_of_bounds
from wakeful.tools.mcp.options import McpServerSettings, refuse_bad_server
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.automation import AutomationLimits
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.inbox import InboxRules
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides, checked
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.retention import Retention
from wakeful.vocabulary.route import READ_DOORS
from wakeful.vocabulary.text import is_plain

DEFAULT_RESET = "04:00"
DEFAULT_IDLE_MINUTES = 60
LONGEST_EDGE_MS = 86_400_000  # nobody sleeps for longer at once

_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")

TAKEN_DOORS = READ_DOORS | {"hub", "mcp"}  # names that mean something already


class LaneSettings(Record):
    """How many lanes of each pool run at once on this node."""

    main: int = 64  # model turns mostly wait for the network
    subagent: int = 8
    automation: int = 16


class StormSettings(Record):
    """How many turns one source may open in one session, and in how many seconds."""

    turns: int = 8
    window_s: int = 60


class ResetSettings(Record):
    """When a person's next message begins a new transcript; false: never by itself."""

    daily: str | bool = False
    idle_minutes: int | bool = False

    def times(self, timezone: str) -> ResetTimes:
        """Return the rules that are switched on; `true` means their usual value."""
        daily = DEFAULT_RESET if self.daily is True else self.daily or None
        idle = DEFAULT_IDLE_MINUTES if self.idle_minutes is True else self.idle_minutes or None
        return ResetTimes(
            daily=None if daily is None else _time_of_day(daily, "reset.daily"),
            idle_minutes=idle,
            zone=ZoneInfo(timezone) if timezone else None,
        )


class OutboundSettings(Record):
    """A receiver of signed webhooks, under its name, which is the door of routes to it."""

    url: str
    secret: str | None = None  # or several with white space between them: each of them signs
    secret_file: str | None = None
    allow_private: bool = False  # the host may have an address that is not public
    has_attachments: bool = False  # bytes go along, not only where they can be taken


class Settings(Record):
    """The settings of one runtime."""

    home: Path | None = None  # None: in memory, gone with the process
    database: str = "sqlite"  # or postgresql://…
    timezone: str = ""  # the user's zone; empty: the machine's
    lanes: LaneSettings = LaneSettings()
    queue: QueueOverrides = NO_OVERRIDES
    doors: dict[str, QueueOverrides] = {}  # queue settings per door
    storm: StormSettings = StormSettings()
    bindings: tuple[Binding, ...] = ()
    dm_scope: DmScope = DmScope.MAIN
    identity_links: dict[str, tuple[str, ...]] = {}  # one name for several addresses
    unified: bool = False  # the web chats of an agent share one session
    reset: ResetSettings = ResetSettings()
    max_chain_depth: int = 16
    attachments: AttachmentLimits = AttachmentLimits()
    inbox: InboxRules = InboxRules()
    outbound: dict[str, OutboundSettings] = {}
    hooks: dict[str, HookSettings] = {}
    mcp_servers: dict[str, McpServerSettings] = {}
    models: dict[str, ModelSettings] = {}  # what is known about them, by `provider:model`
    providers: dict[str, ProviderSettings] = {}
    retention: Retention = Retention()
    automations: AutomationLimits = AutomationLimits()
    drain_s: float = 30.0  # how long a stop waits for running turns
    watchdog_s: float = 0.0  # end the process if its event loop hangs for so long; 0: never

    @property
    def zone(self) -> ZoneInfo | None:
        """The user's zone; None: the machine's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    def __post_init__(self) -> None:
        refuse_out_of_bounds(self.lanes, "lanes")
        refuse_out_of_bounds(self.storm, "storm")
        refuse_out_of_bounds(self.retention, "retention")
        refuse_out_of_bounds(self.automations, "automations")
        refuse_out_of_bounds(self.attachments, "attachments")
        _refuse_bad_inbox(self.inbox)
        refuse_out_of_bounds(self.reset, "reset")
        if isinstance(self.reset.daily, str):
            _time_of_day(self.reset.daily, "reset.daily")
        refuse_out_of_bounds(self, "")
        for name, model in self.models.items():
            if ":" not in name:
                raise InvalidInput(f"models.{name}", "must be named provider:model")
            refuse_out_of_bounds(model, f"models.{name}")
            _refuse_bad_edges(model.cache_edges_ms, f"models.{name}.cache_edges_ms")
        checked(self.queue)
        for door, overrides in self.doors.items():
            checked(overrides, f"doors.{door}")
        for name, outbound in self.outbound.items():
            refuse_bad_outbound(name, outbound)
        for name, hook in self.hooks.items():
            hook_of(name, hook)
            refuse_out_of_bounds(hook.storm, f"hooks.{name}.storm")
        for name, server in self.mcp_servers.items():
            refuse_bad_server(name, server)
        for name, provider in self.providers.items():
            refuse_bad_provider(name, provider)
        if self.database != "sqlite" and not self.database.startswith(
            ("postgresql://", "postgres://")
        ):
            # Not the value: it may hold a password.
            raise InvalidInput("database", "must be 'sqlite' or postgresql://…")


def _time_of_day(text: str, field: str) -> time:
    if _TIME.fullmatch(text) is None:
        raise InvalidInput(field, f"must be a time of the day such as 04:00, not {text[:40]!r}")
    return time.fromisoformat(text)


def _refuse_bad_edges(edges: Sequence[int] | None, field: str) -> None:
    if edges is None:
        return
    if len(edges) != 2 or edges[0] > edges[1]:
        raise InvalidInput(field, "must be two lengths, the shorter first")
    for edge in edges:
        if not 0 <= edge <= LONGEST_EDGE_MS:
            raise InvalidInput(field, f"must be from 0 to {LONGEST_EDGE_MS}, not {edge}")


def _refuse_bad_inbox(inbox: InboxRules) -> None:
    """Raise for the first source that could not work, or number that nobody can mean."""
    refuse_out_of_bounds(inbox, "inbox")
    for name, source in inbox.sources.items():
        at = f"inbox.sources.{name}"
        try:
            checked_scopes((f"{INBOX}{name}",))
        except InvalidInput:
            rule = "must be named with 1 to 64 of a-z, 0-9, '_', '.', '-', as tokens name it"
            raise InvalidInput(at, rule) from None
        refuse_out_of_bounds(source, at)
        refuse_out_of_bounds(source.storm, f"{at}.storm")
        if source.session_prefix is not None:
            keys.canonical(source.session_prefix.removesuffix(":"), field=f"{at}.session_prefix")


def refuse_bad_outbound(name: str, outbound: OutboundSettings) -> None:
    """Raise for a receiver that nothing could be sent to."""
    at = f"outbound.{name}"
    if name in TAKEN_DOORS or not name or not is_plain(name):
        raise InvalidInput(at, "must have another name: this one cannot be a door of its own")
    target = parse(outbound.url, f"{at}.url")
    if target.address is not None and not outbound.allow_private and not is_public(target.address):
        rule = "has an address that is not public; 'allow_private: true' permits it"
        raise InvalidInput(f"{at}.url", rule)
    read_keys(outbound.secret or "", f"{at}.secret")
