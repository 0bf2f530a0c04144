"""The door: every subject's endpoints in one table, behind one guard, on one server."""

from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.doors.http import pages
from wakeful.doors.http.agents import Agents, Halts
from wakeful.doors.http.app import App
from wakeful.doors.http.endpoint import Endpoint
from wakeful.doors.http.events import Events
from wakeful.doors.http.forwarding import Proxies
from wakeful.doors.http.guard import Guard, GuardRules
from wakeful.doors.http.health import HealthRoutes, Probe
from wakeful.doors.http.lasting import Lasting
from wakeful.doors.http.logins import Logins
from wakeful.doors.http.messages import Messages
from wakeful.doors.http.openapi import OpenApi
from wakeful.doors.http.outputs import Outputs
from wakeful.doors.http.search import Search
from wakeful.doors.http.server import HttpOptions, HttpServer, is_loopback
from wakeful.doors.http.session_changes import SessionChanges
from wakeful.doors.http.sessions import Sessions
from wakeful.doors.http.stimuli import Cancellations, Stimuli
from wakeful.doors.http.tokens import Tokens
from wakeful.doors.http.transfers import Transfers
from wakeful.doors.http.turns import Aborts, Turns
from wakeful.services import Services

_EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})


def endpoints(services: Services, lasting: Lasting, probe: Probe) -> Sequence[Endpoint]:
    """Return the whole table."""
    views = services.views
    subjects = (
        Messages(services, lasting),
        Sessions(views),
        Transfers(services),
        Search(views),
        SessionChanges(services),
        Stimuli(views),
        Cancellations(services),
        Turns(views, lasting),
        Aborts(services),
        Outputs(views),
        Events(views, lasting),
        Agents(views),
        Halts(services),
        Tokens(services.credentials),
        Logins(services),
        HealthRoutes(services, probe),
    )
    table = [endpoint for subject in subjects for endpoint in subject.endpoints()]
    table += pages.endpoints()
    return [*table, *OpenApi(table).endpoints()]


class HttpDoor:
    """What a runtime opens to speak HTTP: `Runtime(http=HttpDoor(HttpOptions(port=8484)))`."""

    def __init__(self, options: HttpOptions | None = None) -> None:
        self._options = options or HttpOptions()
        self._guard: Guard | None = None
        self.table: Sequence[Endpoint] = ()  # what it answers, once it is open

    @property
    def is_local(self) -> bool:
        return is_loopback(self._options.host)

    @property
    def operator_token(self) -> str | None:
        return self._options.operator_token

    def follow(self, options: HttpOptions) -> None:
        """Know other hosts, origins and proxies from now on; host and port stay as they are."""
        self._options = replace(options, host=self._options.host, port=self._options.port)
        if self._guard is not None:
            self._guard.follow(_guard_rules(self._options))

    def open(self, services: Services) -> HttpServer:
        """Build the app and take its port; the caller runs the server as a service."""
        options = self._options
        lasting = Lasting(services.gatekeeper, services.metrics.registry)
        probe = Probe(services.views.store, services.views.clock)
        self.table = endpoints(services, lasting, probe)
        app = App(self.table, services.metrics.registry)
        clock = services.views.clock
        guard = Guard(app, services.gatekeeper, clock, _guard_rules(options), app.body_rule)
        self._guard = guard
        return HttpServer(guard, options, services.views.clock, lasting, beside=probe.run)


def _guard_rules(options: HttpOptions) -> GuardRules:
    own: set[str] = set() if options.host in _EVERYWHERE else {_name(options.host)}
    return GuardRules(
        hosts=frozenset(options.hosts) | own,
        origins=frozenset(options.origins),
        proxies=Proxies(options.trusted_proxies),
    )


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
