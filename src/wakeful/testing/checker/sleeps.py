"""I19 sleeps."""

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History
from wakeful.triggers.sleeping import TIMED
from wakeful.vocabulary.kinds import Asleep, Kind
from wakeful.vocabulary.stimulus import TERMINAL, Priority, Stimulus

# What a sender was told of something that may run, sooner or later.
_LET_IN = frozenset({"started", "debouncing", "steered", "queued"})
_OF_SLEEP = frozenset({"sleep.entered", "sleep.woken", "session.deleted"})


def nobody_oversleeps(history: History, finding: InvariantFinding) -> None:
    """I19: at most one sleep per owner, ended by whoever may wake it, and its wake is not lost."""
    for key, events in history.events_of_session.items():
        if key is not None and any(event.kind == "sleep.entered" for event in events):
            _check_session(history, key, events, finding)
    _check_wakes(history, finding)
    for owner, sleep in history.db.sleeps.items():
        wake = history.db.stimuli.get(sleep.wake_id or "")
        finding.expect(
            history.db.timers.get(f"sleep {owner}") == sleep.wake_at
            or (wake is not None and wake.state not in TERMINAL),
            f"{owner} sleeps until {sleep.wake_at} and nothing will wake it",
        )


def _check_wakes(history: History, finding: InvariantFinding) -> None:
    """A wake is filed for somebody who sleeps, and by the clock not before the sleep is over."""
    asleep: dict[str | None, EventRow] = {}
    for event in history.db.events:
        stimulus = history.db.stimuli.get(event.stimulus_id or "")
        if event.kind == "sleep.entered":
            asleep[event.session_key] = event
        elif event.kind in _OF_SLEEP:
            asleep.pop(event.session_key, None)
        elif (
            event.kind == "stimulus.accepted"
            and stimulus is not None
            and stimulus.kind is Kind.WAKE
        ):
            entered = asleep.get(event.session_key)
            is_due = entered is not None and event.at >= entered.data["wake_at"]
            finding.expect(
                entered is not None and (is_due or stimulus.source != TIMED),
                f"{stimulus.id} wakes {event.session_key} at {event.at}, which slept as {entered}",
                history.story(stimulus.id),
            )


def _check_session(
    history: History, key: str, events: list[EventRow], finding: InvariantFinding
) -> None:
    """Follow one session: each sleep that begins ends before the next, or lasts."""
    entered: EventRow | None = None
    for event in events:
        if event.kind not in _OF_SLEEP:
            continue
        if event.kind == "sleep.entered":
            finding.expect(entered is None, f"{key} fell asleep twice", [str(entered), str(event)])
            entered = event
        elif entered is not None:
            _check_wakers(history, events, entered, event, finding)
            entered = None
    row = history.db.sleeps.get(key)
    if entered is not None:
        _check_wakers(history, events, entered, None, finding)
    finding.expect(
        (None if row is None else row.id) == (None if entered is None else entered.data["id"]),
        f"{key} is said to sleep as {entered}, and its row is {row}",
    )


def _check_wakers(
    history: History,
    events: list[EventRow],
    entered: EventRow,
    ended: EventRow | None,
    finding: InvariantFinding,
) -> None:
    """Whoever may wake, and came during a sleep or waited at its beginning, has ended it."""
    last = len(history.db.events) + history.db.head.pruned_through if ended is None else ended.seq
    for event in events:
        stimulus = history.db.stimuli.get(event.stimulus_id or "")
        if event.kind != "stimulus.accepted" or stimulus is None or event.seq > last:
            continue
        if not _wakes(stimulus, event) or _is_over(history, stimulus, entered.seq):
            continue
        # What came during the sleep ends it on arrival, what waited before it at its beginning.
        cause = max(event.at, entered.at)
        finding.expect(
            ended is not None and ended.at == cause,
            f"{stimulus.id} did not wake {stimulus.session_key} at {cause}",
            history.story(stimulus.id),
        )


def _wakes(stimulus: Stimulus, accepted: EventRow) -> bool:
    rule, priority = stimulus.kind.rule, stimulus.priority
    is_due = stimulus.not_before <= stimulus.accepted_at
    if not is_due or accepted.data.get("outcome") not in _LET_IN:
        return False
    if rule.asleep is Asleep.WAKES:
        return priority is not Priority.LATER
    return rule.asleep is Asleep.WAKES_NOW and priority is Priority.NOW


def _is_over(history: History, stimulus: Stimulus, seq: int) -> bool:
    """Tell whether a turn had taken something, or it had ended or been put off, by an event."""
    return any(
        event.seq < seq and event.kind not in ("stimulus.accepted", "stimulus.pending")
        for event in history.events_of_stimulus[stimulus.id]
    )
