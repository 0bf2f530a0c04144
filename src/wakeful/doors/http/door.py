"""The door: every subject's endpoints in one table, behind one guard, on one server."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.doors.http import pages
from wakeful.doors.http.activity import ActivityChanges, ActivityEndpoints
from wakeful.doors.http.agents import AgentEndpoints, Halts
from wakeful.doors.http.app import App, Serve
from wakeful.doors.http.approvals import ApprovalChanges, ApprovalEndpoints
from wakeful.doors.http.attachments import Attachments
from wakeful.doors.http.automations import AutomationChanges, AutomationEndpoints
from wakeful.doors.http.budgets import BudgetChanges, BudgetEndpoints
from wakeful.doors.http.endpoint import Row
from wakeful.doors.http.events import Events
from wakeful.doors.http.forecast import ForecastEndpoints
from wakeful.doors.http.forwarding import Proxies
from wakeful.doors.http.guard import Guard, GuardRules
from wakeful.doors.http.health import HealthRoutes, Probe
from wakeful.doors.http.heartbeats import HeartbeatEndpoints
from wakeful.doors.http.hooks import HookEndpoints
from wakeful.doors.http.inbox import InboxChanges, InboxEndpoints
from wakeful.doors.http.inside import Inside
from wakeful.doors.http.logins import Logins
from wakeful.doors.http.messages import Messages
from wakeful.doors.http.mounts import Mount, Mounts
from wakeful.doors.http.notices import NoticeEndpoints
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.openapi import OpenApi
from wakeful.doors.http.outputs import Outputs
from wakeful.doors.http.problems import ErrorForm
from wakeful.doors.http.quiet import QuietChanges, QuietEndpoints
from wakeful.doors.http.search import Search
from wakeful.doors.http.server import HttpOptions, HttpServer, is_loopback
from wakeful.doors.http.session_changes import SessionChanges
from wakeful.doors.http.sessions import Sessions
from wakeful.doors.http.sleeps import SleepEndpoints
from wakeful.doors.http.sockets import Socket, Sockets
from wakeful.doors.http.stimuli import Cancellations, Stimuli
from wakeful.doors.http.table import Table
from wakeful.doors.http.tokens import TokenEndpoints
from wakeful.doors.http.transfers import Transfers
from wakeful.doors.http.turns import Aborts, Turns
from wakeful.doors.http.usage import UsageEndpoints
from wakeful.services import Services

_EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})


def rows(
    services: Services, streams: OpenStreams, probe: Probe, inside: Inside, others: Sequence[Row]
) -> Sequence[Row]:
    """Return every row: our own, those of others, and the document of both."""
    views = services.views
    subjects = (
        Messages(services, streams),
        Sessions(views),
        Transfers(services),
        Search(views),
        SessionChanges(services),
        Stimuli(views),
        Attachments(views),
        Cancellations(services),
        Turns(views, streams),
        Aborts(services),
        Outputs(views),
        Events(views, streams),
        AgentEndpoints(views),
        Halts(services),
        SleepEndpoints(services),
        HeartbeatEndpoints(services),
        AutomationEndpoints(views),
        AutomationChanges(services),
        BudgetEndpoints(views),
        BudgetChanges(services),
        QuietEndpoints(views),
        QuietChanges(services),
        UsageEndpoints(services.views),
        ForecastEndpoints(services.forecast),
        NoticeEndpoints(views),
        ApprovalEndpoints(views),
        ApprovalChanges(services),
        InboxEndpoints(views),
        InboxChanges(services),
        ActivityEndpoints(views),
        ActivityChanges(services),
        HookEndpoints(services, inside),
        TokenEndpoints(services.credentials),
        Logins(services),
        HealthRoutes(services, probe),
    )
    own = [endpoint for subject in subjects for endpoint in subject.endpoints()]
    every = [*own, *pages.endpoints(), *others]
    return [*every, *OpenApi(every).endpoints()]


class HttpDoor:
    """What a runtime opens to speak HTTP: `Runtime(http=HttpDoor(HttpOptions(port=8484)))`."""

    def __init__(
        self,
        options: HttpOptions | None = None,
        *,
        others: Sequence[Row] = (),
        error_forms: Mapping[str, ErrorForm] | None = None,
    ) -> None:
        self._options = options or HttpOptions()
        self._others = others  # rows of whoever else answers at this port
        self._error_forms = error_forms or {}  # by the prefix below which they hold
        self._guard: Guard | None = None
        self._gatekeeper: Gatekeeper | None = None
        self.table = Table(())  # what it answers, once it is open

    @property
    def is_local(self) -> bool:
        return is_loopback(self._options.host)

    @property
    def operator_token(self) -> str | None:
        return self._options.operator_token

    def follow(self, options: HttpOptions) -> None:
        """Know other hosts, origins, proxies and limits from now on; host and port stay."""
        self._options = replace(options, host=self._options.host, port=self._options.port)
        if self._guard is not None:
            self._guard.follow(_guard_rules(self._options))
        if self._gatekeeper is not None:
            _limit(self._gatekeeper, self._options)

    def open(self, services: Services) -> HttpServer:
        """Build the app and take its port; the caller runs the server as a service."""
        options = self._options
        clock, registry = services.views.clock, services.metrics.registry
        streams = OpenStreams(services.gatekeeper, registry)
        probe = Probe(services.views.store, clock)
        inside = Inside()
        every = rows(services, streams, probe, inside, self._others)
        self.table = Table(every, self._error_forms)
        mounts, sockets = Mounts(streams), Sockets(services.gatekeeper, streams, clock)
        others: dict[type[Row], Serve] = {Mount: mounts.serve, Socket: sockets.serve}
        app = App(self.table, registry, others)
        guard = Guard(app, self.table, services.gatekeeper, clock, _guard_rules(options))
        self._guard, self._gatekeeper = guard, services.gatekeeper
        inside.reach(guard)
        _limit(services.gatekeeper, options)
        return HttpServer(
            guard, self.table, options, clock, streams, beside=(probe.run, mounts.run)
        )


def _guard_rules(options: HttpOptions) -> GuardRules:
    own: set[str] = set() if options.host in _EVERYWHERE else {_name(options.host)}
    return GuardRules(
        hosts=frozenset(options.hosts) | own,
        origins=frozenset(options.origins),
        proxies=Proxies(options.trusted_proxies),
    )


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _limit(gatekeeper: Gatekeeper, options: HttpOptions) -> None:
    """Let tokens make and send no more than this, from now on."""
    gatekeeper.sessions_per_hour = options.sessions_per_hour
    gatekeeper.megabytes_per_day = options.megabytes_per_day
