"""`decide` over every kind, priority, mode and lane state, against the written rules."""

import itertools

import pytest
from msgspec.structs import replace

from wakeful.gate.wakes import GateVerdict, Verdict
from wakeful.intake.decide import (
    WAITS,
    Action,
    Arrival,
    Decision,
    LaneFacts,
    LaneState,
    RunningTurn,
    decide,
)
from wakeful.sleeps.sleeps import SleepPolicy
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Drop, Mode, QueueSettings
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Priority, Trust

RUNNING = {LaneState.STREAMING, LaneState.TOOLS, LaneState.COMPACTING}

ROUTE = Route(door="cli")
JOINS = {
    "user",
    "hub",
    "a2a",
    "a2a.reply",
    "subagent.announce",
    "subagent.message",
}
PREEMPTS = {
    "user",
    "hub",
    "a2a",
    "inbox",
    "webhook",
    "subagent.announce",
    "subagent.message",
}
WAKES = JOINS | {"approval", "webhook", "wake"}  # `wake` whatever its priority
SELF_WAKING = {"tick", "wake", "heartbeat"}
AGENTS = {"subagent.announce", "subagent.message"}

CASES = list(itertools.product(Priority, Mode, LaneState))  # of each kind


def arrival(
    kind: Kind,
    priority: Priority = Priority.NEXT,
    *,
    trust: Trust = Trust.OPERATOR,
    has_home: bool = True,
    route: Route = ROUTE,
    is_due: bool = True,
) -> Arrival:
    return Arrival(
        kind=kind,
        priority=priority,
        trust=trust,
        route=route,
        has_home=has_home,
        is_due=is_due,
    )


def running(
    priority: Priority = Priority.NEXT, *, is_preemptible: bool = True, is_ending: bool = False
) -> RunningTurn:
    return RunningTurn(
        priority=priority,
        trust=Trust.OPERATOR,
        route=ROUTE,
        is_preemptible=is_preemptible,
        is_ending=is_ending,
    )


def lane(state: LaneState, turn: RunningTurn | None = None, *, is_full: bool = False) -> LaneFacts:
    return LaneFacts(
        state=state,
        running=(turn or running()) if state in RUNNING else None,
        sleep_policy=SleepPolicy.WAKE if state is LaneState.ASLEEP else None,
        is_full=is_full,
    )


def expected(kind: str, priority: str, mode: str, state: str) -> tuple[str, str | None, str]:
    """The rules of the specification, one sentence each, for a lane with a `next` turn running."""
    if state == "halted":
        return ("suppress" if kind in SELF_WAKING else "park", "halted", "none")
    if state == "asleep":
        if kind in ("heartbeat", "tick"):
            return ("suppress", "asleep", "none")
        if kind in WAKES - {"wake"} and priority == "later":
            return ("park", "asleep", "none")
        if kind == "system.event":
            return ("park", "asleep", "none")
    if kind == "inbox" and priority != "now":
        return ("hold", None, "none")
    if state in ("idle", "debouncing", "asleep"):
        waits = kind in ("user", "hub") and priority == "next" and mode != "queue"
        return ("debounce" if waits else "start", None, "none")
    if priority == "now":
        return ("queue", None, "preempt" if kind in PREEMPTS else "none")
    if kind not in JOINS or priority == "later":
        return ("queue", None, "none")
    if mode == "interrupt":
        return ("queue", None, "none" if kind in AGENTS else "supersede")
    if mode == "steer" or (mode == "steer-backlog" and state != "compacting"):
        return ("steer", None, "none")
    return ("queue", None, "none")


@pytest.mark.parametrize("kind", list(Kind))
def test_every_case_follows_the_written_rules(kind: Kind):
    written = {
        (priority, mode, state): expected(kind, priority.name.lower(), mode, state)
        for priority, mode, state in CASES
    }

    decided = {
        (priority, mode, state): decide(
            arrival(kind, priority), lane(state), QueueSettings(mode=mode, debounce_ms=1000)
        )
        for priority, mode, state in CASES
    }

    assert {
        case: (decision.action.value, decision.reason, decision.interrupt.name.lower())
        for case, decision in decided.items()
    } == written


@pytest.mark.parametrize("kind", list(Kind))
def test_only_a_running_turn_is_ever_interrupted_or_steered(kind: Kind):
    decided = [
        (state, decide(arrival(kind, priority), lane(state), QueueSettings(mode=mode)))
        for priority, mode, state in CASES
    ]

    touched = {
        state
        for state, decision in decided
        if decision.interrupt is not Interrupt.NONE or decision.action is Action.STEER
    }
    assert touched <= RUNNING


@pytest.mark.parametrize("kind", list(Kind))
def test_a_now_does_not_preempt_a_now(kind: Kind):
    busy = lane(LaneState.STREAMING, running(Priority.NOW))

    decision = decide(arrival(kind, Priority.NOW), busy, QueueSettings())

    assert decision.interrupt is Interrupt.NONE


def test_work_that_was_interrupted_too_often_is_left_alone():
    busy = lane(LaneState.TOOLS, running(is_preemptible=False))

    decision = decide(arrival(Kind.USER, Priority.NOW), busy, QueueSettings())

    assert decision == Decision(action=Action.QUEUE)


@pytest.mark.parametrize("mode", list(Mode))
def test_external_text_never_joins_or_ends_the_operators_turn(mode: Mode):
    stranger = arrival(Kind.HUB, trust=Trust.EXTERNAL)

    decision = decide(stranger, lane(LaneState.TOOLS), QueueSettings(mode=mode))

    assert decision == Decision(action=Action.QUEUE)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_turn_that_is_ending_takes_nothing_more(mode: Mode):
    ending = lane(LaneState.TOOLS, running(is_ending=True))

    decision = decide(arrival(Kind.USER), ending, QueueSettings(mode=mode))

    assert decision == Decision(action=Action.QUEUE)


def test_a_webhook_without_a_session_follows_the_inbox_tiers():
    homeless = arrival(Kind.WEBHOOK, has_home=False)

    assert decide(homeless, lane(LaneState.IDLE), QueueSettings()).action is Action.HOLD


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("verdict", [Verdict.BUDGET, Verdict.QUIET_HOURS])
def test_the_gate_parks_others_but_suppresses_the_agents_own_clockwork(
    kind: Kind, verdict: Verdict
):
    guard = GateVerdict(verdict=verdict, look_at=99)

    decision = decide(arrival(kind), lane(LaneState.IDLE), QueueSettings(), guard)

    if kind is Kind.INBOX:
        assert decision == Decision(action=Action.HOLD)  # it would open no turn
    elif kind is Kind.POST:
        assert decision == Decision(action=Action.START)  # it asks no model
    elif kind in SELF_WAKING:
        assert decision == Decision(action=Action.SUPPRESS, reason=verdict.value, look_at=99)
    else:
        assert decision == Decision(action=Action.PARK, reason=verdict.value, look_at=99)


def test_a_storm_becomes_an_inbox_item_and_a_loop_ends():
    idle, settings = lane(LaneState.IDLE), QueueSettings()

    storm = decide(arrival(Kind.HUB), idle, settings, GateVerdict(verdict=Verdict.STORM))
    loop = decide(arrival(Kind.A2A), idle, settings, GateVerdict(verdict=Verdict.LOOP))

    assert (storm.action, storm.reason) == (Action.HOLD, "storm")
    assert (loop.action, loop.reason) == (Action.SUPPRESS, "loop")


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("drop", list(Drop))
def test_the_cap_counts_messages_of_people_and_agents_only(kind: Kind, drop: Drop):
    full = lane(LaneState.STREAMING, is_full=True)

    decision = decide(arrival(kind), full, QueueSettings(drop=drop))

    if kind not in ("user", "hub", "a2a"):
        assert not decision.drops_oldest
    elif drop is Drop.NEW:
        assert decision == Decision(action=Action.SUPPRESS, reason="queue-cap")
    else:
        assert decision.drops_oldest
        assert decision.action in WAITS


@pytest.mark.parametrize("state", [LaneState.ASLEEP, LaneState.TOOLS])
@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("policy", [SleepPolicy.DEFAULT, SleepPolicy.BUFFER, SleepPolicy.DROP])
def test_a_marker_sleep_keeps_only_the_hub_out_and_nothing_ends_it(
    policy: SleepPolicy, kind: Kind, priority: Priority, state: LaneState
):
    asleep = replace(lane(state), sleep_policy=policy)

    decision = decide(arrival(kind, priority), asleep, QueueSettings())

    assert not decision.wakes
    if kind not in (Kind.HUB, Kind.CALLBACK):
        assert decision.reason is None
    elif policy is SleepPolicy.DROP:
        assert decision == Decision(action=Action.SUPPRESS, reason="asleep")
    else:
        assert decision == Decision(action=Action.PARK, reason="asleep")


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("kind", list(Kind))
def test_what_comes_in_wakes_a_session_and_what_is_due_leaves_it_asleep(
    kind: Kind, priority: Priority
):
    decision = decide(arrival(kind, priority), lane(LaneState.ASLEEP), QueueSettings())

    if kind is Kind.INBOX:
        assert decision.wakes is (priority is Priority.NOW)
    elif kind is Kind.WAKE:
        assert decision.wakes
    else:
        assert decision.wakes is (kind in WAKES and priority is not Priority.LATER)


@pytest.mark.parametrize("priority", [Priority.NEXT, Priority.LATER])
@pytest.mark.parametrize("kind", [Kind.INBOX, Kind.WEBHOOK])
def test_what_is_held_neither_ends_a_sleep_nor_waits_for_its_end(kind: Kind, priority: Priority):
    item = arrival(kind, priority, has_home=False)

    decision = decide(item, lane(LaneState.ASLEEP), QueueSettings())

    assert decision == Decision(action=Action.HOLD)


@pytest.mark.parametrize("state", list(LaneState))
def test_a_halt_is_no_way_round_the_guards(state: LaneState):
    for verdict, action in ((Verdict.STORM, Action.HOLD), (Verdict.LOOP, Action.SUPPRESS)):
        guard = GateVerdict(verdict=verdict)
        assert decide(arrival(Kind.HUB), lane(state), QueueSettings(), guard).action is action


@pytest.mark.parametrize("mode", list(Mode))
def test_what_is_not_due_yet_disturbs_nobody(mode: Mode):
    tomorrow = arrival(Kind.USER, Priority.NOW, is_due=False)
    settings = QueueSettings(mode=mode, debounce_ms=100)

    for state in (LaneState.IDLE, LaneState.STREAMING, LaneState.ASLEEP):
        assert decide(tomorrow, lane(state), settings) == Decision(action=Action.QUEUE)


def test_interrupt_ends_a_turn_of_another_route_but_steer_does_not_join_it():
    elsewhere = arrival(Kind.USER, route=Route(door="hub"))
    busy = lane(LaneState.STREAMING)

    interrupt = decide(elsewhere, busy, QueueSettings(mode=Mode.INTERRUPT))
    steer = decide(elsewhere, busy, QueueSettings(mode=Mode.STEER))

    assert interrupt.interrupt is Interrupt.SUPERSEDE
    assert steer == Decision(action=Action.QUEUE)


def test_the_cap_counts_what_a_halt_parks():
    full = lane(LaneState.HALTED, is_full=True)

    decision = decide(arrival(Kind.USER), full, QueueSettings())

    assert (decision.action, decision.drops_oldest) == (Action.PARK, True)


@pytest.mark.parametrize("mode", [Mode.STEER, Mode.STEER_BACKLOG])
def test_nobody_joins_what_the_runtime_does_for_itself(mode: Mode):
    own_work = replace(running(), is_joinable=False)

    decision = decide(arrival(Kind.USER), lane(LaneState.TOOLS, own_work), QueueSettings(mode=mode))

    assert decision.action is Action.QUEUE
