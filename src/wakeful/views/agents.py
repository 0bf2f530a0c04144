"""Look at agents: what they are, what they are doing, when they wake next."""

from collections.abc import Callable, Mapping, Sequence

from wakeful.gate import halts
from wakeful.gate.parked import RELEASE_TIMER
from wakeful.gate.quiet import QuietStatus
from wakeful.intake.inbox_items import TIMER_KIND as EXPIRY_TIMER
from wakeful.outbox import held
from wakeful.store.database import Store
from wakeful.timers import timers
from wakeful.triggers.beating import TIMER_KIND as HEARTBEAT_TIMER
from wakeful.triggers.quieting import TIMER_KIND as QUIET_TIMER
from wakeful.triggers.sleeping import TIMER_KIND as SLEEP_TIMER
from wakeful.views.approvals import ApprovalView
from wakeful.views.automations import AutomationView
from wakeful.views.budgets import BudgetStatus, BudgetView
from wakeful.views.heartbeats import HeartbeatStatus, HeartbeatView
from wakeful.views.next_wake import Beat, next_wake
from wakeful.views.quiet import QuietView
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import AgentConfig
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record

# Kinds of timers: what the first two free shows in the lanes, the third outlives its sleep, the
# fourth only ends what waits in the inbox, and the last is looked at by itself, since it may be
# known that it will wake nobody.
WAKING_NOBODY = [QUIET_TIMER, RELEASE_TIMER, SLEEP_TIMER, EXPIRY_TIMER, HEARTBEAT_TIMER]
MOST_COUNTED = 1000  # idle lanes: nobody needs to know more exactly
MOST_LOOKED_AT = 50  # stimuli, for what was skipped

# The first three cost what runs and waits, the last a bounded look: each has a small index of its
# own, which `|| ''` keeps the databases from leaving for the one of all lanes.
LANES = """
SELECT
  (SELECT COUNT(*) FROM lanes WHERE owner IS NOT NULL AND agent_id || '' = :id),
  (SELECT COUNT(*) FROM lanes
    WHERE owner IS NULL AND ready_at IS NOT NULL AND agent_id || '' = :id),
  (SELECT COUNT(*) FROM lanes WHERE turn_id IS NOT NULL AND owner IS NULL AND ready_at IS NULL
    AND agent_id || '' = :id),
  (SELECT MIN(ready_at) FROM lanes
    WHERE owner IS NULL AND ready_at IS NOT NULL AND agent_id || '' = :id),
  (SELECT COUNT(*) FROM (SELECT 1 FROM lanes WHERE agent_id = :id LIMIT :most) AS counted)
"""


# Of what came last to a session: a bounded look, whatever its history holds.
SKIPPED = """
SELECT kind, state_reason, COUNT(*), MAX(accepted_at) FROM
  (SELECT kind, state, state_reason, accepted_at FROM stimuli
    WHERE session_key = :session_key ORDER BY id DESC LIMIT :most) AS newest
WHERE state = 'suppressed' GROUP BY kind, state_reason ORDER BY MAX(accepted_at) DESC
"""


class ServerStatus(Record):
    """How a server is doing whose tools an agent uses."""

    name: str
    state: str  # connecting, up, down
    tools: tuple[str, ...] = ()  # by the names that models are told
    problems: tuple[str, ...] = ()  # a sentence each


class AgentCard(Record):
    """What an agent is, as far as anybody may know."""

    config: AgentConfig
    model: str
    fallback_models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    mcp: tuple[ServerStatus, ...] = ()


class AsleepSession(Record):
    """A session that sleeps."""

    session_key: str | None
    reason: str
    wake_at: int
    refused: str | None = None  # why it sleeps although its time has come


class SkippedWakes(Record):
    """What did not wake an agent, why, how often and when last."""

    origin: str
    reason: str
    count: int
    last_at: int


class HeldMessages(Record):
    """What an agent said without being asked, and too often: it leaves as a digest."""

    messages: int = 0
    leaves_at: int | None = None  # the first of it


class AgentStatus(Record):
    """An agent and what it is doing now."""

    card: AgentCard
    is_halted: bool
    lanes: Mapping[str, int]  # running, waiting; idle: up to 1000
    sleeps: Sequence[AsleepSession]
    heartbeat: HeartbeatStatus
    budget: BudgetStatus
    quiet: QuietStatus
    skipped: Sequence[SkippedWakes]
    held: HeldMessages
    approvals: int  # open: what people should decide
    automations: int  # that are on
    next_wake_at: int | None


class AgentView:
    """Reads what the agents of this runtime are doing."""

    def __init__(
        self,
        store: Store,
        cards: Mapping[str, Callable[[], AgentCard]],
        heartbeats: HeartbeatView,
        budgets: BudgetView,
        quiet: QuietView,
        approvals: ApprovalView,
        automations: AutomationView,
    ) -> None:
        self._store = store
        self._heartbeats = heartbeats
        self._budgets = budgets
        self._quiet = quiet
        self._approvals = approvals
        self._automations = automations
        self._cards = cards

    def follow(self, cards: Mapping[str, Callable[[], AgentCard]]) -> None:
        """Show these agents from now on."""
        self._cards = cards

    def card(self, agent_id: str) -> AgentCard:
        """Return what an agent is now: its tools may come and go with their servers."""
        card = self._cards.get(agent_id)
        if card is None:
            known = ", ".join(sorted(self._cards))
            rule = f"no agent {agent_id[:64]!r} is configured (known: {known})"
            raise NotFound("agent", rule)
        return card()

    def knows(self, agent_id: str) -> bool:
        return agent_id in self._cards

    async def all(self) -> list[AgentStatus]:
        return [await self.get(agent_id) for agent_id in self._cards]

    async def get(self, agent_id: str) -> AgentStatus:
        card = self.card(agent_id)
        halted = await self._store.read("SELECT scope FROM halts")
        sleeps = [
            AsleepSession(session_key=row[0], reason=row[1], wake_at=row[2], refused=row[3])
            for row in await self._store.read(
                "SELECT session_key, reason, wake_at, refused FROM sleeps WHERE agent_id = :id "
                "ORDER BY wake_at LIMIT 100",
                id=agent_id,
            )
        ]
        ((running, due, stalled, ready_at, every),) = await self._store.read(
            LANES, id=agent_id, most=MOST_COUNTED
        )
        ((timer_at,),) = await self._store.read(
            timers.NEXT_OF_AGENT, agent_id=agent_id, but=WAKING_NOBODY
        )
        ((held_back, leaves_at),) = await self._store.read(held.OF_AGENT, id=agent_id)
        waiting = due + stalled
        heartbeat = await self._heartbeats.of(agent_id, card.config.heartbeat)
        return AgentStatus(
            card=card,
            is_halted=halts.covers(frozenset(row[0] for row in halted), agent_id),
            lanes={
                "running": running,
                "waiting": waiting,
                "idle": max(0, every - running - waiting),
            },
            sleeps=sleeps,
            heartbeat=heartbeat,
            budget=await self._budgets.own(agent_id),
            quiet=await self._quiet.of(agent_id),
            skipped=await self._skipped(agent_id),
            held=HeldMessages(messages=held_back, leaves_at=leaves_at),
            approvals=await self._approvals.count_open(agent_id),
            automations=await self._automations.count_enabled(agent_id),
            next_wake_at=next_wake(
                [ready_at],
                [timer_at, sleeps[0].wake_at if sleeps else None],
                await self._beat(card.config, heartbeat.next_due_at),
                await self._quiet.until(agent_id),
                self._quiet.zone,
            ),
        )

    async def _beat(self, config: AgentConfig, due_at: int | None) -> Beat:
        rows = await self._store.read(
            "SELECT wake_at FROM sleeps WHERE owner = :key",
            key=config.heartbeat.session_of(config.id),
        )
        asleep_until = rows[0][0] if rows else None
        return Beat(due_at=due_at, rules=config.heartbeat, asleep_until=asleep_until)

    async def _skipped(self, agent_id: str) -> list[SkippedWakes]:
        rows = await self._store.read(SKIPPED, session_key=keys.main(agent_id), most=MOST_LOOKED_AT)
        return [
            SkippedWakes(
                origin=kind.partition(".")[0], reason=reason or "", count=count, last_at=last_at
            )
            for kind, reason, count, last_at in rows
        ]
