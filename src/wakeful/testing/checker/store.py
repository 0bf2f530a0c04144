"""I20 store, I24 bounds."""

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History
from wakeful.vocabulary.queueing import DEFAULTS

MOST_MEMORY = 512 * 1024 * 1024  # bytes resident
MOST_FILES = 128
MOST_THREADS = 96


def store_is_sound(history: History, finding: InvariantFinding) -> None:
    """I20: the database is whole, and it is the one that every earlier life had."""
    finding.saw()
    for problem in history.db.problems:
        finding.report(problem)
    position = 0
    for line in history.ledgers.lives:
        if line["what"] != "start":
            continue
        finding.expect(
            line["epoch"] == history.db.head.epoch and line["position"] >= position,
            f"{line['life']} found another store: {line['epoch']} at {line['position']}",
            [str(life) for life in history.ledgers.lives],
        )
        position = line["position"]
    for line in history.ledgers.samples:
        position = max(position, line["position"])
    finding.expect(
        history.db.head.seq >= position,
        f"the store ends at {history.db.head.seq}; it had been at {position}",
    )


def bounds_hold(history: History, finding: InvariantFinding) -> None:
    """I24: memory, files, threads and queues stay below their limits at every sample."""
    limits = {"rss": MOST_MEMORY, "files": MOST_FILES, "threads": MOST_THREADS}
    for line in history.ledgers.samples:
        for name, limit in limits.items():
            finding.expect(line[name] <= limit, f"{name} was {line[name]}, above {limit}")
    for session_key, events in history.events_of_session.items():
        if session_key is not None:
            _check_queue(history, session_key, events, finding)


def _check_queue(
    history: History, session_key: str, events: list[EventRow], finding: InvariantFinding
) -> None:
    """At most the cap of messages wait, beside those that a preemption gave back."""
    waiting: set[str] = set()
    given_back: set[str] = set()
    deepest = 0
    for event in events:
        stimulus = history.db.stimuli.get(event.stimulus_id or "")
        if stimulus is None or not stimulus.kind.rule.is_capped:
            continue
        if event.kind == "stimulus.accepted":
            waiting.add(stimulus.id)
        elif event.kind == "stimulus.pending":
            given_back.add(stimulus.id)
        elif event.kind.startswith("stimulus."):
            waiting.discard(stimulus.id)
            given_back.discard(stimulus.id)
        if event.kind == "stimulus.accepted" and event.data.get("outcome") != "suppressed":
            deepest = max(deepest, len(waiting))
    finding.expect(
        deepest <= DEFAULTS.cap + 1,
        f"{session_key}: {deepest} messages waited, the cap is {DEFAULTS.cap}",
    )
