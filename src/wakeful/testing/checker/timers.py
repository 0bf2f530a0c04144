"""I12 timers."""

from wakeful.testing.checker.automations import runs_are_filed_once
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History, grouped
from wakeful.testing.checker.marks import marks_in
from wakeful.testing.ledger import Line
from wakeful.vocabulary.stimulus import Stimulus

LATE_MS = 60_000  # the timekeeper looks by itself every minute


def timers_fire_once(history: History, finding: InvariantFinding) -> None:
    """I12: a timer fires once, never early, and its firing is a stimulus; so is each run."""
    fired = grouped(
        (event for event in history.db.events if event.kind == "timer.fired"),
        lambda event: (str(event.data["timer_id"]), int(event.data["due_at"])),
    )
    for (timer_id, due_at), events in fired.items():
        first = events[0]
        finding.expect(len(events) == 1, f"{timer_id} due at {due_at} fired {len(events)} times")
        finding.expect(
            first.at >= due_at and first.data["late_ms"] == first.at - due_at,
            f"{timer_id} due at {due_at} fired at {first.at}, {first.data['late_ms']} ms late",
        )
    by_mark = {mark: row for row in history.db.stimuli.values() for mark in marks_in(row.text)}
    for line in history.ledgers.client:
        if line["do"] == "timer" and line["what"] == "answer" and "ok" in line:
            (mark,) = marks_in(line["draft"]["text"])
            due_at = line["ok"]
            firing = next(iter(fired.get((line["timer"], due_at), ())), None)
            _check_set(history, line, firing, by_mark.get(mark), finding)
            _check_seen(history, mark, due_at, finding)
    runs_are_filed_once(history, finding)


def _check_set(
    history: History,
    line: Line,
    firing: EventRow | None,
    stimulus: Stimulus | None,
    finding: InvariantFinding,
) -> None:
    """What was set has fired, with its stimulus in the same commit, or waits for its time."""
    timer_id, due_at = line["timer"], line["ok"]
    if firing is None:
        finding.expect(
            stimulus is None
            and history.db.timers.get(timer_id) == due_at
            and due_at > _last_wall_clock(history) - LATE_MS,
            f"{timer_id} due at {due_at} neither fired nor waits for its time",
        )
        return
    finding.expect(
        stimulus is not None
        and stimulus.accepted_at == firing.at
        and history.db.timers.get(timer_id) != due_at,
        f"{timer_id} fired without its stimulus, or is still set",
        [str(firing), str(stimulus)],
    )


def _check_seen(history: History, mark: str, due_at: int, finding: InvariantFinding) -> None:
    """Nobody outside heard of a timer before any clock had reached it."""
    latest = 0
    for line in history.asked:
        latest = max(latest, line["at"])
        if mark in line["marks"]:
            finding.expect(latest >= due_at, f"{mark!r} was due at {due_at}, shown at {latest}")
            return


def _last_wall_clock(history: History) -> int:
    return history.ledgers.samples[-1]["at"] if history.ledgers.samples else 0
