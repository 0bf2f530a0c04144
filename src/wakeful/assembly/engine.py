"""What decides and writes in transactions: the same for a runtime and for a forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from wakeful.approvals.answering import Answering
from wakeful.approvals.asking import TIMER_KIND as APPROVAL_TIMER
from wakeful.assembly.automations import AutomationParts, build_automations
from wakeful.assembly.configured import Configured
from wakeful.assembly.gate import build_gate
from wakeful.assembly.hooks import Hooks, all_grants, first_of
from wakeful.automations.jobs import TIMER_KIND as AUTOMATION_TIMER
from wakeful.broker import lane_rows
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.gate.parked import RELEASE_TIMER
from wakeful.gate.wakes import all_of
from wakeful.intake.inbox_items import TIMER_KIND as EXPIRY_TIMER
from wakeful.intake.inbox_items import InboxItems, forget_expiry
from wakeful.intake.intake import Intake
from wakeful.notices.notices import Notices
from wakeful.store.database import Lock, Store, Tx
from wakeful.telemetry.metrics import Metrics
from wakeful.timers.timekeeper import Due, TimerKind
from wakeful.timers.timers import Timer
from wakeful.triggers.beating import TIMER_KIND as HEARTBEAT_TIMER
from wakeful.triggers.beating import Beating
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.daily_turns import DailyTurns
from wakeful.triggers.quieting import TIMER_KIND as QUIET_TIMER
from wakeful.triggers.quieting import Quieting
from wakeful.triggers.releasing import Releasing
from wakeful.triggers.sleeping import TIMER_KIND as SLEEP_TIMER
from wakeful.triggers.sleeping import Sleeping
from wakeful.triggers.ticking import TIMER_KIND as TICK_TIMER
from wakeful.triggers.ticking import Ticking
from wakeful.turn.commit import TurnDeps
from wakeful.turn.ending import Ending
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft, Receipt
from wakeful.webhooks.table import Webhooks

_drafts = msgspec.json.Decoder(Draft)


class Trigger(Protocol):
    """An inner source of stimuli."""

    async def reconcile(self, store: Store, agent_ids: Sequence[str], /) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What an engine stands on: a store, and what is the process's own."""

    store: Store
    bus: Bus
    ids: Ids
    clock: Clock
    metrics: Metrics


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Everything that decides what comes of a stimulus, and every function of a timer."""

    agents: Agents
    blocks: ProactiveBlocks
    ticking: Ticking
    sleeping: Sleeping
    beating: Beating
    answering: Answering
    quieting: Quieting
    releasing: Releasing
    automations: AutomationParts
    ending: Ending
    settlement: Settlement
    intake: Intake
    inbox_items: InboxItems
    webhooks: Webhooks
    deps: TurnDeps
    timer_kinds: Mapping[str, TimerKind[Any]]

    @property
    def triggers(self) -> Sequence[Trigger]:
        """What sets the timers that the settings want, in this order."""
        scheduling = self.automations.scheduling
        return (self.ticking, self.beating, self.quieting, self.releasing, scheduling)


def build_engine(
    ground: Ground,
    chosen: Configured,
    hooks: Hooks,
    ready_agents: Callable[[], ReadyAgents],
    knows_door: Callable[[str], bool],
) -> Engine:
    """Build it; the agents made ready are asked for when there is something to ask."""
    store, bus, ids, clock = ground.store, ground.bus, ground.ids, ground.clock
    agents, zone = Agents(chosen.configs), chosen.settings.zone

    def file(tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        return intake.keep_in(tx, drafts)  # what accepts asks the triggers, and they file

    def refuse(tx: Tx, refused: Sequence[tuple[Draft, str]]) -> list[Receipt]:
        return intake.refuse_in(tx, refused)

    def workspace_of(agent_id: str) -> Path | None:
        return ready_agents().workspace_of(agent_id)

    webhooks = Webhooks(chosen.hooks, clock, ground.metrics)
    blocks = ProactiveBlocks(agents, chosen.bindings)
    ticking = Ticking(blocks, file)
    sleeping = Sleeping(bus, file, ticking.on_sleep)
    beating = Beating(agents, bus, file, refuse, workspace_of)
    beating.follow(zone)
    notices = Notices(bus, ids)
    answering = Answering(bus, notices, file)
    automations = build_automations(store, bus, ids, clock, agents, file, beating)
    gate = build_gate(
        agents,
        ready_agents,
        bus,
        notices,
        zone,
        all_of(DailyTurns(blocks, notices, ground.metrics).may_wake, hooks.may_wake),
    )
    quieting = Quieting(gate.quiet, agents, bus, clock, file, sleeping.look_again)
    releasing = Releasing(bus, sleeping)
    settlement = Settlement(
        bus,
        (
            ticking.on_settled,
            sleeping.on_settled,
            beating.on_settled,
            answering.on_settled,
            automations.finishing.on_settled,
            forget_expiry,
            *hooks.on_settled,
        ),
    )
    ending = Ending(
        bus,
        ids,
        settlement,
        gate.budgets,
        (
            ticking.on_ended,
            sleeping.on_ended,
            beating.on_ended,
            automations.finishing.on_ended,
            *hooks.on_ended,
        ),
    )
    intake = Intake(
        store,
        bus,
        ids,
        agents,
        chosen.rules,
        chosen.bindings,
        settlement=settlement,
        may_wake=gate.may_wake,
    )
    deps = TurnDeps(
        bus=bus,
        ids=ids,
        ending=ending,
        settlement=settlement,
        gate=gate,
        queue_settings_of=intake.queue.of,
        file=intake.accept_in,
        grants_of=all_grants(webhooks.grants_of, hooks.grants_of),
        reports_to=first_of(automations.finishing.reports_to, hooks.reports_to),
        proactive_of=blocks.of,
        answering=answering,
        automations=automations.acts(store, chosen, settlement, knows_door),
    )
    inbox_items = InboxItems(store, settlement)
    return Engine(
        agents=agents,
        blocks=blocks,
        ticking=ticking,
        sleeping=sleeping,
        beating=beating,
        answering=answering,
        quieting=quieting,
        releasing=releasing,
        automations=automations,
        ending=ending,
        settlement=settlement,
        intake=intake,
        inbox_items=inbox_items,
        webhooks=webhooks,
        deps=deps,
        timer_kinds={
            "stimulus": _stimulus_timers(intake),
            SLEEP_TIMER: TimerKind(sleeping.fire),
            TICK_TIMER: TimerKind(ticking.fire),
            HEARTBEAT_TIMER: TimerKind(beating.fire, beating.prepare),
            QUIET_TIMER: TimerKind(quieting.fire),
            RELEASE_TIMER: TimerKind(releasing.fire),
            AUTOMATION_TIMER: automations.timers,
            APPROVAL_TIMER: TimerKind(answering.fire),
            EXPIRY_TIMER: TimerKind(inbox_items.fire),
        },
    )


def locks_of_timer(timer: Timer) -> Sequence[Lock]:
    """Return what the transaction must hold in which a timer fires."""
    return (lane_rows.lock(timer.target), halts.ASKING)


def _stimulus_timers(intake: Intake) -> TimerKind[None]:
    """Return what timers do that carry a stimulus: it is filed, for an absent agent, too."""

    def fire(tx: Tx, dues: Sequence[Due[None]]) -> None:
        intake.keep_in(tx, [_draft_of(due.timer) for due in dues])

    return TimerKind(fire)


def _draft_of(timer: Timer) -> Draft:
    draft = _drafts.decode(timer.payload)
    if draft.session_key != timer.target:
        raise InvalidInput("session_key", "a timer files stimuli for its target only")
    return draft
