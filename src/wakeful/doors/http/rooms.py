"""What the door reaches of the runtime: the way in, the views, and who may use them."""

from dataclasses import dataclass

from wakeful.access.credentials import Credentials
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.bus.bus import Bus
from wakeful.commands.commands import Commands
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import Deletion
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.transcript.sessions import Session
from wakeful.turns.turns import Turn
from wakeful.views.agents import AgentView
from wakeful.views.lanes import LaneView
from wakeful.views.ledger import LedgerView
from wakeful.views.sessions import SessionView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.views.why import WhyView
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import OPERATOR


def _is_open_to_all(key: SessionKey) -> bool:
    """Tell whether anybody who may send may make a session: a web chat, or one below `api`."""
    parts = keys.parse(key)
    is_api = parts.kind is KeyKind.OTHER and parts.words[0] == "api" and len(parts.words) > 1
    return is_api or parts.kind is KeyKind.WEB


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """Everything a route may touch; built by the runtime."""

    default_agent: str
    store: Store
    bus: Bus
    clock: Clock
    metrics: Metrics
    intake: Intake
    acts: SessionActs
    compactions: Compactions
    deletion: Deletion
    gatekeeper: Gatekeeper
    credentials: Credentials
    turns: TurnView
    ledger: LedgerView
    sessions: SessionView
    transcripts: TranscriptView
    lanes: LaneView
    agents: AgentView
    why: WhyView
    commands: Commands | None = None  # None where nothing can be said

    def key(self, words: str, field: str = "session_key") -> SessionKey:
        """Return the session key that a path or a query names."""
        return keys.canonical(words, self.default_agent, field)

    async def entered(self, principal: Principal, words: str) -> SessionKey:
        """Return the key of a session that this principal may write to, or make.

        Intake looks again in the accepting transaction, since two may make one at once.
        """
        if principal.owner == OPERATOR:
            return self.intake.bindings.thinking_place(self.key(words))
        try:
            key = self.key(words)
            self.agents.card(keys.agent_of(key))
        except InvalidInput:
            raise NotFound("session", f"no session {words[:120]!r}") from None
        owner = await self.sessions.owner_of(key)
        if not (_is_open_to_all(key) if owner is None else owner == principal.owner):
            raise NotFound("session", f"no session {key!r}")
        return key

    async def session(self, principal: Principal, words: str) -> Session:
        """Return a session that this principal may see, by any of its names."""
        return await self.sessions.get(self._key_of_one(words), principal.owner)

    async def session_key(self, principal: Principal, words: str) -> SessionKey:
        """Return the key of a session that this principal may see; it need not be readable."""
        return await self.sessions.seen(self._key_of_one(words), principal.owner)

    async def thinking(self, principal: Principal, words: str) -> SessionKey:
        """Return the session whose turns answer what this principal says in another."""
        key, owner = self._key_of_one(words), principal.owner
        return await self.sessions.seen(self.intake.bindings.thinking_place(key, owner), owner)

    def _key_of_one(self, words: str) -> SessionKey:
        try:
            return self.key(words)
        except InvalidInput:
            raise NotFound("session", f"no session {words[:120]!r}") from None

    async def turn(self, principal: Principal, turn_id: str) -> Turn:
        """Return a turn that this principal may see."""
        turn = await self.turns.turn(turn_id)
        if principal.owner == OPERATOR:
            return turn
        if await self.sessions.owner_of(turn.session_key) != principal.owner:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        return turn
