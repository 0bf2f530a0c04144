"""`decide` over every origin, priority, mode and lane state, against the written rules."""

import inspect
import itertools

import pytest
from msgspec.structs import replace

from wakeful.broker import stimuli
from wakeful.intake.decide import (
    RUNNING,
    WAITS,
    Action,
    Arrival,
    Decision,
    Guard,
    LaneFacts,
    LaneState,
    Running,
    Verdict,
    decide,
)
from wakeful.sleeps.sleeps import SleepPolicy
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary.queueing import Drop, Mode, QueueSettings
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import CAPPED, Origin, Priority, Trust

ROUTE = Route(door="cli")
JOINS = {"user", "a2a", "hub", "subagent"}  # rule 8
WAITS_FOR_IDLE = {
    "automation",
    "heartbeat",
    "tick",
    "wake",
    "callback",
    "webhook",
    "inbox",
    "system",
    "approval",
}
NEVER_PREEMPTS = {"automation", "heartbeat", "tick", "wake", "callback", "system", "approval"}
SELF_WAKING = {"tick", "wake", "heartbeat"}

EVERYTHING = list(itertools.product(Origin, Priority, Mode, LaneState))


def arrival(
    origin: Origin,
    priority: Priority = Priority.NEXT,
    *,
    trust: Trust = Trust.OPERATOR,
    has_home: bool = True,
    route: Route = ROUTE,
    is_due: bool = True,
) -> Arrival:
    return Arrival(
        origin=origin,
        priority=priority,
        trust=trust,
        route=route,
        has_home=has_home,
        is_due=is_due,
    )


def running(
    priority: Priority = Priority.NEXT, *, is_preemptible: bool = True, is_ending: bool = False
) -> Running:
    return Running(
        priority=priority,
        trust=Trust.OPERATOR,
        route=ROUTE,
        is_preemptible=is_preemptible,
        is_ending=is_ending,
    )


def lane(state: LaneState, turn: Running | None = None, *, is_full: bool = False) -> LaneFacts:
    return LaneFacts(
        state=state,
        running=(turn or running()) if state in RUNNING else None,
        sleep_policy=SleepPolicy.WAKE if state is LaneState.ASLEEP else None,
        is_full=is_full,
    )


def expected(origin: str, priority: str, mode: str, state: str) -> tuple[str, str | None, str]:
    """The rules of the specification, one sentence each, for a lane with a `next` turn running."""
    if state == "halted":
        return ("suppress" if origin in SELF_WAKING else "park", "halted", "none")
    if state == "asleep":
        if priority == "now" and (origin == "approval" or origin not in NEVER_PREEMPTS):
            return ("start", None, "none")
        if origin in ("heartbeat", "tick"):
            return ("suppress", "asleep", "none")
        if origin in JOINS | {"approval"} and priority == "later":
            return ("park", "asleep", "none")
        if origin == "system":
            return ("park", "asleep", "none")
    if origin == "inbox" and priority != "now":
        return ("hold", None, "none")
    if state in ("idle", "debouncing", "asleep"):
        waits = origin in ("user", "hub") and priority == "next" and mode != "queue"
        return ("debounce" if waits else "start", None, "none")
    if priority == "now":
        return ("queue", None, "none" if origin in NEVER_PREEMPTS else "preempt")
    if origin in WAITS_FOR_IDLE or priority == "later":
        return ("queue", None, "none")
    if mode == "interrupt":
        return ("queue", None, "supersede")
    if mode == "steer" or (mode == "steer-backlog" and state != "compacting"):
        return ("steer", None, "none")
    return ("queue", None, "none")


@pytest.mark.parametrize(("origin", "priority", "mode", "state"), EVERYTHING)
def test_every_case_follows_the_written_rules(
    origin: Origin, priority: Priority, mode: Mode, state: LaneState
):
    settings = QueueSettings(mode=mode, debounce_ms=1000)

    decision = decide(arrival(origin, priority), lane(state), settings)

    found = (decision.action.value, decision.reason, decision.interrupt.name.lower())
    assert found == expected(origin, priority.name.lower(), mode, state)


@pytest.mark.parametrize(("origin", "priority", "mode", "state"), EVERYTHING)
def test_only_a_running_turn_is_ever_interrupted_or_steered(
    origin: Origin, priority: Priority, mode: Mode, state: LaneState
):
    decision = decide(arrival(origin, priority), lane(state), QueueSettings(mode=mode))

    touches = decision.interrupt is not Interrupt.NONE or decision.action is Action.STEER
    assert not touches or state in RUNNING


@pytest.mark.parametrize("origin", list(Origin))
def test_a_now_does_not_preempt_a_now(origin: Origin):
    busy = lane(LaneState.STREAMING, running(Priority.NOW))

    decision = decide(arrival(origin, Priority.NOW), busy, QueueSettings())

    assert decision.interrupt is Interrupt.NONE


def test_work_that_was_interrupted_too_often_is_left_alone():
    busy = lane(LaneState.TOOLS, running(is_preemptible=False))

    decision = decide(arrival(Origin.USER, Priority.NOW), busy, QueueSettings())

    assert decision == Decision(action=Action.QUEUE)


@pytest.mark.parametrize("mode", list(Mode))
def test_external_text_never_joins_or_ends_the_operators_turn(mode: Mode):
    stranger = arrival(Origin.HUB, trust=Trust.EXTERNAL)

    decision = decide(stranger, lane(LaneState.TOOLS), QueueSettings(mode=mode))

    assert decision == Decision(action=Action.QUEUE)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_turn_that_is_ending_takes_nothing_more(mode: Mode):
    ending = lane(LaneState.TOOLS, running(is_ending=True))

    decision = decide(arrival(Origin.USER), ending, QueueSettings(mode=mode))

    assert decision == Decision(action=Action.QUEUE)


def test_a_webhook_without_a_session_follows_the_inbox_tiers():
    homeless = arrival(Origin.WEBHOOK, has_home=False)

    assert decide(homeless, lane(LaneState.IDLE), QueueSettings()).action is Action.HOLD


@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("verdict", [Verdict.BUDGET, Verdict.QUIET_HOURS])
def test_the_gate_parks_others_but_suppresses_the_agents_own_clockwork(
    origin: Origin, verdict: Verdict
):
    guard = Guard(verdict=verdict, look_at=99)

    decision = decide(arrival(origin), lane(LaneState.IDLE), QueueSettings(), guard)

    if origin in SELF_WAKING:
        assert decision == Decision(action=Action.SUPPRESS, reason=verdict.value)
    else:
        assert decision == Decision(action=Action.PARK, reason=verdict.value, look_at=99)


def test_a_storm_becomes_an_inbox_item_and_a_loop_ends():
    idle, settings = lane(LaneState.IDLE), QueueSettings()

    storm = decide(arrival(Origin.HUB), idle, settings, Guard(verdict=Verdict.STORM))
    loop = decide(arrival(Origin.A2A), idle, settings, Guard(verdict=Verdict.LOOP))

    assert (storm.action, storm.reason) == (Action.HOLD, "storm")
    assert (loop.action, loop.reason) == (Action.SUPPRESS, "loop")


@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("drop", list(Drop))
def test_the_cap_counts_messages_of_people_and_agents_only(origin: Origin, drop: Drop):
    full = lane(LaneState.STREAMING, is_full=True)

    decision = decide(arrival(origin), full, QueueSettings(drop=drop))

    if origin not in ("user", "hub", "a2a"):
        assert not decision.drops_oldest
    elif drop is Drop.NEW:
        assert decision == Decision(action=Action.SUPPRESS, reason="queue-cap")
    else:
        assert decision.drops_oldest
        assert decision.action in WAITS


@pytest.mark.parametrize("policy", list(SleepPolicy))
def test_a_marker_sleep_keeps_only_the_hub_out(policy: SleepPolicy):
    asleep = LaneFacts(state=LaneState.ASLEEP, sleep_policy=policy)

    hub = decide(arrival(Origin.HUB), asleep, QueueSettings())
    user = decide(arrival(Origin.USER), asleep, QueueSettings())

    assert user.wakes
    assert user.action is Action.START
    if policy is SleepPolicy.BUFFER:
        assert (hub.action, hub.reason, hub.wakes) == (Action.PARK, "asleep", False)
    elif policy is SleepPolicy.DROP:
        assert (hub.action, hub.reason, hub.wakes) == (Action.SUPPRESS, "asleep", False)
    else:
        assert hub.wakes


def test_work_that_is_due_runs_and_leaves_the_sleep_armed():
    asleep = lane(LaneState.ASLEEP)

    for origin in (Origin.AUTOMATION, Origin.CALLBACK):
        decision = decide(arrival(origin), asleep, QueueSettings())
        assert (decision.action, decision.wakes) == (Action.START, False)


@pytest.mark.parametrize("state", list(LaneState))
def test_a_halt_is_no_way_round_the_guards(state: LaneState):
    for verdict, action in ((Verdict.STORM, Action.HOLD), (Verdict.LOOP, Action.SUPPRESS)):
        guard = Guard(verdict=verdict)
        assert decide(arrival(Origin.HUB), lane(state), QueueSettings(), guard).action is action


@pytest.mark.parametrize("mode", list(Mode))
def test_what_is_not_due_yet_disturbs_nobody(mode: Mode):
    tomorrow = arrival(Origin.USER, Priority.NOW, is_due=False)
    settings = QueueSettings(mode=mode, debounce_ms=100)

    for state in (LaneState.IDLE, LaneState.STREAMING, LaneState.ASLEEP):
        assert decide(tomorrow, lane(state), settings) == Decision(action=Action.QUEUE)


def test_interrupt_ends_a_turn_of_another_route_but_steer_does_not_join_it():
    elsewhere = arrival(Origin.USER, route=Route(door="hub"))
    busy = lane(LaneState.STREAMING)

    interrupt = decide(elsewhere, busy, QueueSettings(mode=Mode.INTERRUPT))
    steer = decide(elsewhere, busy, QueueSettings(mode=Mode.STEER))

    assert interrupt.interrupt is Interrupt.SUPERSEDE
    assert steer == Decision(action=Action.QUEUE)


def test_the_cap_counts_what_a_halt_parks():
    full = lane(LaneState.HALTED, is_full=True)

    decision = decide(arrival(Origin.USER), full, QueueSettings())

    assert (decision.action, decision.drops_oldest) == (Action.PARK, True)


def test_the_broker_counts_the_same_origins_as_the_vocabulary():
    source = inspect.getsource(stimuli)

    assert source.count("IN ('user', 'hub', 'a2a')") == 2
    assert sorted(CAPPED) == ["a2a", "hub", "user"]


@pytest.mark.parametrize("mode", [Mode.STEER, Mode.STEER_BACKLOG])
def test_nobody_joins_what_the_runtime_does_for_itself(mode: Mode):
    own_work = replace(running(), is_joinable=False)

    decision = decide(
        arrival(Origin.USER), lane(LaneState.TOOLS, own_work), QueueSettings(mode=mode)
    )

    assert decision.action is Action.QUEUE
