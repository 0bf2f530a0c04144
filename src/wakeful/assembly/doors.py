"""The doors of a runtime: HTTP, and the receivers of webhooks."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.assembly.assembly import Assembly
from wakeful.assembly.minds import card_of
from wakeful.assembly.plan import HttpDoor, Plan
from wakeful.commands.command import Reach
from wakeful.commands.commands import Commands
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.sender import Door
from wakeful.doors.signing import read_keys
from wakeful.net.addresses import NOBODY, allow
from wakeful.net.target import parse
from wakeful.settings.settings import OutboundSettings
from wakeful.turn.agent import Mind
from wakeful.views.agents import AgentView
from wakeful.views.ledger import LedgerView
from wakeful.views.sessions import SessionView
from wakeful.views.why import WhyView
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Permanent


async def with_door(
    assembly: Assembly,
    plan: Plan,
    door: HttpDoor,
    minds: Mapping[str, Mind],
    stack: AsyncExitStack,
) -> Assembly:
    """Take the port of the HTTP door, and make the operator's token if there is none yet."""
    credentials, home = assembly.credentials, plan.settings.home
    has_token = door.operator_token is not None or await credentials.has_valid()
    if not door.is_local and not has_token:
        raise Permanent(
            "an address that others reach needs a token: start on 127.0.0.1 once, or add one"
        )
    operator = None if home is None else await credentials.operator(home, door.operator_token)
    listener = door.open(_door_rooms(assembly, plan, minds))
    stack.callback(listener.close)
    services = {**assembly.services, "http": listener}
    return replace(assembly, services=services, http=listener, operator=operator)


def _door_rooms(assembly: Assembly, plan: Plan, minds: Mapping[str, Mind]) -> Rooms:
    store, sessions = assembly.store, SessionView(assembly.store)
    agents = AgentView(store, {mind.agent_id: partial(card_of, mind) for mind in minds.values()})
    why = WhyView(store, sessions)
    return Rooms(
        default_agent=plan.default_agent,
        store=store,
        bus=assembly.bus,
        clock=plan.clock,
        metrics=plan.metrics,
        intake=assembly.intake,
        acts=assembly.acts,
        compactions=assembly.compactions,
        deletion=assembly.deletion,
        gatekeeper=Gatekeeper(store, plan.clock),
        credentials=assembly.credentials,
        turns=assembly.turns,
        ledger=LedgerView(store),
        sessions=sessions,
        transcripts=assembly.transcripts,
        lanes=assembly.lanes,
        agents=agents,
        why=why,
        commands=Commands(
            Reach(
                store=store,
                bus=assembly.bus,
                ids=assembly.ids,
                clock=plan.clock,
                intake=assembly.intake,
                compactions=assembly.compactions,
                acts=assembly.acts,
                sessions=sessions,
                lanes=assembly.lanes,
                agents=agents,
                why=why,
            )
        ),
    )


def webhook_doors(outbound: Mapping[str, OutboundSettings], clock: Clock) -> dict[str, Door]:
    """Return a door for each receiver of webhooks."""
    if not outbound:
        return {}
    # Loaded by those alone who send webhooks: HTTP and TLS take time and memory.
    from wakeful.doors.webhooks_out import WebhookOut
    from wakeful.net.client import Client

    client = Client(clock)
    return {
        name: WebhookOut(
            name,
            one.url,
            read_keys(one.secret or ""),
            client=client,
            clock=clock,
            allowed=allow([parse(one.url).host]) if one.allow_private else NOBODY,
        )
        for name, one in outbound.items()
    }
