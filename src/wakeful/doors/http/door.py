"""The door: every subject's endpoints in one table, behind one guard, on one server."""

from collections.abc import Sequence

from wakeful.doors.http.agents import Agents
from wakeful.doors.http.app import App
from wakeful.doors.http.endpoint import Endpoint
from wakeful.doors.http.events import Events
from wakeful.doors.http.guard import Guard, GuardRules
from wakeful.doors.http.health import HealthRoutes
from wakeful.doors.http.lasting import Lasting
from wakeful.doors.http.messages import Messages
from wakeful.doors.http.openapi import OpenApi
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.server import HttpOptions, HttpServer
from wakeful.doors.http.sessions import Sessions
from wakeful.doors.http.stimuli import Stimuli
from wakeful.doors.http.tokens import Tokens
from wakeful.doors.http.turns import Turns

_EVERYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})


def endpoints(rooms: Rooms, lasting: Lasting) -> Sequence[Endpoint]:
    """Return the whole table."""
    subjects = (
        Messages(rooms, lasting),
        Sessions(rooms),
        Stimuli(rooms),
        Turns(rooms, lasting),
        Events(rooms, lasting),
        Agents(rooms),
        Tokens(rooms),
        HealthRoutes(rooms),
    )
    table = [endpoint for subject in subjects for endpoint in subject.endpoints()]
    return [*table, *OpenApi(table).endpoints()]


def open_door(rooms: Rooms, options: HttpOptions) -> HttpServer:
    """Build the app and take its port; the caller runs the server as a service."""
    lasting = Lasting(rooms.gatekeeper, rooms.metrics.registry)
    app = App(endpoints(rooms, lasting), rooms.metrics.registry)
    own: set[str] = set() if options.host in _EVERYWHERE else {_name(options.host)}
    rules = GuardRules(hosts=frozenset(options.hosts) | own, origins=frozenset(options.origins))
    guard = Guard(app, rooms.gatekeeper, rooms.clock, rules, app.largest_body)
    return HttpServer(guard, options, rooms.clock, lasting)


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
