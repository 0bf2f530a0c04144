"""Which waiting stimuli open the next turn."""

import pytest
from msgspec.structs import replace

from wakeful.lanes.choose import Choice, choose
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode, QueueSettings
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Place, Priority, State, Stimulus, Trust

NOW = 1000


def waiting(name: str, **changes: object) -> Stimulus:
    plain = Stimulus(
        id=name,
        session_key="agent:main:main",
        agent_id="main",
        kind=Kind.USER,
        priority=Priority.NEXT,
        place=Place.REST,
        seq=1,
        text=name,
        attachments=(),
        trust=Trust.OPERATOR,
        source="operator",
        scope="operator",
        cause_id=None,
        root_id=name,
        depth=0,
        route=None,
        mode=None,
        not_before=0,
        due_at=0,
        expires_at=None,
        is_debounced=False,
        state=State.PENDING,
        state_reason=None,
        turn_id=None,
        preemptions=0,
        accepted_at=0,
        settled_at=None,
    )
    return replace(plain, **changes)


def chosen(
    *stimuli: Stimulus, mode: Mode = Mode.STEER, debounce_until: int | None = None
) -> list[str]:
    choice = choose(
        stimuli,
        now=NOW,
        debounce_until=debounce_until,
        settings_of=lambda s: QueueSettings(mode=s.mode or mode),
    )
    return [] if choice is None else [stimulus.id for stimulus in choice.stimuli]


def parked(name: str, reason: str = "quiet-hours-lifted", **changes: object) -> Stimulus:
    return waiting(name, **{"kind": Kind.WEBHOOK, "state_reason": reason, **changes})


def test_what_waited_for_the_end_of_quiet_hours_opens_one_turn():
    late = parked("b", "quiet-hours", state=State.PARKED, priority=Priority.LATER)
    event, hub = parked("c", kind=Kind.SYSTEM_EVENT), parked("d", kind=Kind.HUB)

    assert chosen(parked("a"), late, event, hub, mode=Mode.QUEUE) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "other",
    [
        {"trust": Trust.EXTERNAL},
        {"route": Route(door="out", address="ann")},
        {"kind": Kind.AUTOMATION},
        {"kind": Kind.SUBAGENT_MESSAGE},
        {"kind": Kind.COMPACTION},
        {"kind": Kind.DIGEST},
        {"due_at": NOW + 1},
        {"reason": "budget"},
        {"place": Place.INTERRUPTED, "priority": Priority.LATER},
    ],
)
def test_what_cannot_share_a_turn_has_one_of_its_own(other: dict[str, object]):
    assert chosen(parked("a"), parked("b", **other)) == ["a"]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", [Kind.AUTOMATION, Kind.ISOLATED_AUTOMATION])
def test_jobs_have_a_turn_each(kind: Kind):
    assert chosen(parked("a", kind=kind), parked("b", kind=kind), parked("c")) == ["a"]


def test_nothing_waiting_opens_nothing():
    assert chosen() == []
    assert chosen(waiting("a", due_at=NOW + 1)) == []


@pytest.mark.parametrize(
    ("mode", "together"),
    [
        (Mode.STEER, True),
        (Mode.STEER_BACKLOG, True),
        (Mode.INTERRUPT, True),
        (Mode.COLLECT, True),
        (Mode.FOLLOWUP, False),
        (Mode.QUEUE, False),
    ],
)
def test_the_mode_says_whether_messages_open_one_turn_together(mode: Mode, together: bool):
    assert chosen(waiting("a"), waiting("b"), mode=mode) == (["a", "b"] if together else ["a"])


@pytest.mark.parametrize(
    "difference",
    [
        {"route": Route(door="hub")},
        {"trust": Trust.EXTERNAL},
        {"priority": Priority.LATER},
        {"kind": Kind.AUTOMATION},
        {"due_at": NOW + 1},
        {"mode": Mode.QUEUE},
        {"place": Place.INTERRUPTED, "turn_id": "t"},
    ],
)
def test_what_differs_opens_a_turn_of_its_own(difference: dict[str, object]):
    assert chosen(waiting("a"), waiting("b", **difference), waiting("c")) == ["a", "c"]


def test_automations_run_alone():
    job = {"kind": Kind.AUTOMATION}

    assert chosen(waiting("a", **job), waiting("b", **job)) == ["a"]


def test_interrupted_work_comes_back_whole():
    work = {"place": Place.INTERRUPTED, "turn_id": "t1"}
    other = waiting("x", place=Place.INTERRUPTED, turn_id="t2")

    found = chosen(waiting("a", **work), other, waiting("b", **work), waiting("c"))

    assert found == ["a", "b"]


def test_the_debounce_window_holds_back_only_what_waits_for_it():
    window = {"is_debounced": True}
    job = waiting("job", kind=Kind.AUTOMATION)

    assert chosen(waiting("a", **window), debounce_until=NOW + 1) == []
    assert chosen(waiting("a", **window), job, debounce_until=NOW + 1) == ["job"]
    assert chosen(waiting("a", **window), waiting("b", **window), debounce_until=NOW) == ["a", "b"]


def test_a_now_takes_along_what_waited_for_the_window():
    urgent = waiting("urgent", priority=Priority.NOW)

    found = chosen(urgent, waiting("calm", is_debounced=True), debounce_until=NOW + 500)

    assert found == ["urgent", "calm"]


def test_one_collected_message_needs_no_heading():
    def form(*stimuli: Stimulus) -> str:
        choice = choose(
            stimuli,
            now=NOW,
            debounce_until=None,
            settings_of=lambda _: QueueSettings(mode=Mode.COLLECT),
        )
        assert isinstance(choice, Choice)
        return choice.form

    assert form(waiting("a")) == "together"
    assert form(waiting("a"), waiting("b")) == "collected"
