"""Automations, built of what the operator chose."""

from collections.abc import Callable
from dataclasses import dataclass

from wakeful.assembly.configured import Configured
from wakeful.automations.acts import AutomationActs
from wakeful.automations.finishing import Finishing
from wakeful.automations.jobs import bound_to
from wakeful.automations.scheduling import Foreseen, Scheduling
from wakeful.automations.wishes import Checks
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.intake.deletion import BoundAutomation
from wakeful.intake.filing import File
from wakeful.notices.notices import Notices
from wakeful.store.database import Store, Tx
from wakeful.timers.timekeeper import TimerKind
from wakeful.triggers.beating import Beating
from wakeful.triggers.heartbeat_acts import HeartbeatActs
from wakeful.triggers.heartbeat_skips import AskedBy
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Draft, Receipt


@dataclass(frozen=True, kw_only=True)
class AutomationParts:
    """What fires automations, and what ends their runs."""

    scheduling: Scheduling
    finishing: Finishing
    heartbeats: HeartbeatActs

    @property
    def timers(self) -> TimerKind[Foreseen]:
        return TimerKind(self.scheduling.fire, self.scheduling.prepare)

    def acts(
        self,
        store: Store,
        chosen: Configured,
        settlement: Settlement,
        knows_door: Callable[[str], bool],
    ) -> AutomationActs:
        """Return what people and agents do about automations."""
        checks = Checks(
            limits=chosen.settings.automations,
            check_model=chosen.catalog.find,
            knows_door=knows_door,
        )
        return AutomationActs(store, chosen.bindings, settlement, self.scheduling, checks)


def build_automations(
    store: Store, bus: Bus, ids: Ids, clock: Clock, agents: Agents, file: File, beating: Beating
) -> AutomationParts:
    """Return what fires automations and ends their runs."""
    notices, heartbeats = Notices(bus, ids), HeartbeatActs(store, agents, beating, file)

    def file_event(tx: Tx, draft: Draft, wakes: bool) -> Receipt:
        return heartbeats.file_event_in(tx, draft, wakes=wakes)

    def ask_for_heartbeat(tx: Tx, agent_id: str, source: str) -> None:
        if agent_id in agents:
            beating.ask(tx, agent_id, AskedBy.EVENT, source)

    scheduling = Scheduling(agents, bus, ids, clock, notices, file, file_event)
    scheduling.follow(beating.zone)
    finishing = Finishing(bus, notices, file, ask_for_heartbeat)
    return AutomationParts(scheduling=scheduling, finishing=finishing, heartbeats=heartbeats)


def keeping(tx: Tx, session_key: str) -> list[BoundAutomation]:
    """Return the automations that keep a session from being deleted unasked."""
    return [
        BoundAutomation(id=job.id, name=job.name, enabled=job.enabled)
        for job in bound_to(tx, session_key)
    ]
