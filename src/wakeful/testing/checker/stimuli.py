"""I1 one end, I2 durable ack, I23 order."""

from collections import Counter

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History, grouped
from wakeful.testing.checker.marks import marks_in
from wakeful.testing.ledger import Line
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.stimulus import TERMINAL, Place, State, Stimulus

READ = '"name":"check_inbox"'  # in the entry of a result
LATE_MS = 60_000  # by which what has a latest time may outlive it

# How a stimulus may have ended when the turn that had it ended so.
_ENDS: dict[TurnState, frozenset[State]] = {
    TurnState.DONE: frozenset({State.DONE, State.MERGED}),
    TurnState.FAILED: frozenset({State.FAILED}),
    TurnState.TIMED_OUT: frozenset({State.FAILED}),
    TurnState.STOPPED: frozenset({State.CANCELLED}),
    TurnState.SUPERSEDED: frozenset({State.CANCELLED}),
}


def one_end(history: History, finding: InvariantFinding) -> None:
    """I1: every accepted stimulus has exactly one end, and what ended well was really read."""
    shown = _turns_that_showed(history)
    given = _times_given(history)
    for stimulus in history.db.stimuli.values():
        events = history.events_of_stimulus[stimulus.id]
        ends = [event.kind for event in events if event.kind.removeprefix("stimulus.") in TERMINAL]
        problem = (
            _end_problem(history, stimulus, ends)
            or _unread(history, stimulus, shown)
            or _given_twice(stimulus, given)
        )
        finding.saw()
        if problem is not None:
            finding.report(f"{stimulus.id}: {problem}", history.story(stimulus.id))


def _end_problem(history: History, stimulus: Stimulus, ends: list[str]) -> str | None:
    if stimulus.state not in TERMINAL:
        return _unrest_problem(history, stimulus, ends)
    if ends != [f"stimulus.{stimulus.state.value}"]:
        return f"is {stimulus.state.value}, but its ends were {ends!r}"
    if stimulus.settled_at is None:
        return f"is {stimulus.state.value} without a time"
    if stimulus.state in (State.CANCELLED, State.SUPPRESSED, State.EXPIRED, State.FAILED):
        if stimulus.state_reason is None:
            return f"is {stimulus.state.value} without a reason"
        if stimulus.turn_id is None:
            return None
    turn = history.db.turns.get(stimulus.turn_id or "")
    if turn is None:
        return f"is {stimulus.state.value} in a turn that is not there"
    return _end_in_turn_problem(history, stimulus, turn)


def _end_in_turn_problem(history: History, stimulus: Stimulus, turn: Turn) -> str | None:
    if stimulus.state is State.MERGED and _was_held(history, stimulus):
        return None  # given to the turn for good, whatever became of that
    # What was given back by a preempted turn may have been cancelled while it waited.
    if turn.state is TurnState.PREEMPTED and stimulus.state not in (State.DONE, State.MERGED):
        return None
    if stimulus.state not in _ENDS.get(turn.state, frozenset()):
        return f"is {stimulus.state.value}, but its turn is {turn.state.value}"
    return None


def _unrest_problem(history: History, stimulus: Stimulus, ends: list[str]) -> str | None:
    """At rest only what policy holds back may wait."""
    if ends:
        return f"is {stimulus.state.value} after it had ended: {ends!r}"
    if stimulus.state is State.HELD:
        return _overdue(history, stimulus)
    if stimulus.state is State.PARKED and stimulus.state_reason == "no-agent":
        agent_id = stimulus.session_key.split(":")[1]
        is_there = agent_id in history.agents
        return "is parked for want of an agent that is there" if is_there else None
    if stimulus.state is State.PARKED and (stimulus.state_reason != "halted" or history.db.halts):
        return None
    return f"is {stimulus.state.value} at rest"


def _overdue(history: History, stimulus: Stimulus) -> str | None:
    """Say what is wrong if something is held whose time is over."""
    now = history.db.events[-1].at
    if stimulus.expires_at is None or stimulus.expires_at > now - LATE_MS:
        return None
    return f"is held at {now}, though its time was over at {stimulus.expires_at}"


def _times_given(history: History) -> Counter[str]:
    """Return how often each mark stands in what a turn was given of the inbox."""
    results = (entry.body for entry in history.db.entries if READ in entry.body)
    return Counter(mark for body in results for mark in set(marks_in(body)))


def _given_twice(stimulus: Stimulus, given: Counter[str]) -> str | None:
    if not stimulus.in_inbox:
        return None
    for mark in marks_in(stimulus.text):
        if given[mark] > 1:
            return f"stands in {given[mark]} results of check_inbox"
    return None


def _turns_that_showed(history: History) -> dict[str, set[str]]:
    """Return, per mark, the turns in which the model was shown it."""
    shown: dict[str, set[str]] = {}
    for line in history.asked:
        for mark in line["shown"]:
            shown.setdefault(mark, set()).add(line["turn"])
    return shown


def _unread(history: History, stimulus: Stimulus, shown: dict[str, set[str]]) -> str | None:
    if stimulus.state not in (State.DONE, State.MERGED):
        return None
    if _was_held(history, stimulus) and not _ended_well(history, stimulus):
        return _lost(history, stimulus)
    if _was_held(history, stimulus) and stimulus.turn_id in history.compacted:
        return _lost(history, stimulus)  # it may have been read only for a summary
    for mark in marks_in(stimulus.text):
        turns = shown.get(mark, set[str]())
        if not turns:
            return f"is {stimulus.state.value}, but no model was ever shown {mark!r}"
        if stimulus.turn_id not in turns and not stimulus.preemptions:
            return f"is {stimulus.state.value} in {stimulus.turn_id}, which never showed {mark!r}"
    return None


def _was_held(history: History, stimulus: Stimulus) -> bool:
    """Tell whether something lay in the inbox until a turn was given it."""
    return any(
        event.kind == "stimulus.claimed" and event.data.get("how") in ("shown", "read")
        for event in history.events_of_stimulus[stimulus.id]
    )


def _ended_well(history: History, stimulus: Stimulus) -> bool:
    turn = history.db.turns.get(stimulus.turn_id or "")
    return turn is not None and turn.state is TurnState.DONE


def _lost(history: History, stimulus: Stimulus) -> str | None:
    """Say what is wrong if words that a broken-off turn was given are not there for the next."""
    if stimulus.turn_id in history.discarded:
        return None
    kept = history.entries_of_turn[stimulus.turn_id]
    if any(entry.stimulus_id == stimulus.id for entry in kept):
        return None
    read = [set(marks_in(entry.body)) for entry in kept if READ in entry.body]
    if any(read_marks.issuperset(marks_in(stimulus.text)) for read_marks in read):
        return None
    return f"was given to {stimulus.turn_id}, which broke off and kept no word of it"


def durable_ack(history: History, finding: InvariantFinding) -> None:
    """I2: what was acknowledged is there, once per key; what was refused is not."""
    rows = {mark: row for row in history.db.stimuli.values() for mark in marks_in(row.text)}
    # What an automation says, it says as often as it runs; its runs are counted apart.
    of_runs = {run.stimulus_id for run in history.db.runs.values()}
    sent = [row for row in history.db.stimuli.values() if row.id not in of_runs]
    copies = grouped((mark for row in sent for mark in marks_in(row.text)), str)
    for mark, found in copies.items():
        finding.expect(len(found) == 1, f"the message {mark!r} was accepted {len(found)} times")
    _expect_one_of_a_delivery(history, finding)
    accepted: dict[str, str] = {}
    for line in history.accepted:
        receipt, draft = line["ok"], line["draft"]
        row = history.db.stimuli.get(receipt["stimulus_id"])
        finding.expect(
            row is not None and row.text == draft["text"],
            f"{receipt['stimulus_id']} was acknowledged and is not there",
            [str(line)],
        )
        key = draft.get("dedup_key")
        if key is not None:
            first = accepted.setdefault(key, receipt["stimulus_id"])
            finding.expect(
                first == receipt["stimulus_id"],
                f"the key {key!r} was answered with {first} and {receipt['stimulus_id']}",
                [str(answer) for answer in _answers_about(history, key)],
            )
    maybe: set[str] = set()  # what was asked for once and never answered may be there
    for line in history.ledgers.client:
        if line["what"] == "answer" and line["do"] == "send" and "ok" not in line:
            (mark,) = marks_in(line["draft"]["text"])
            if "unknown" in line:
                maybe.add(mark)
            finding.expect(
                mark not in rows or mark in accepted or mark in maybe,
                f"{mark!r} was refused and is there",
                [str(line)],
            )


def _expect_one_of_a_delivery(history: History, finding: InvariantFinding) -> None:
    """Expect that a hook's delivery was filed once, and so opens at most one turn."""
    sent = [row for row in history.db.stimuli.values() if row.kind is Kind.WEBHOOK]
    deliveries = grouped(sent, lambda row: (row.source, row.dedup_key or row.id))
    for (source, delivery), rows in deliveries.items():
        found = f"{delivery!r} of {source!r} was filed as {[row.id for row in rows]}"
        finding.expect(len(rows) == 1, found)


def _answers_about(history: History, key: str) -> list[Line]:
    return [
        line
        for line in history.ledgers.client
        if line["do"] == "send" and line["draft"].get("dedup_key") == key
    ]


def in_order(history: History, finding: InvariantFinding) -> None:
    """I23: each turn was opened by the first of those that waited."""
    for session_key, events in history.events_of_session.items():
        if session_key is not None:
            _replay_lane(history, events, finding)


def _replay_lane(history: History, events: list[EventRow], finding: InvariantFinding) -> None:
    waiting: dict[str, Place] = {}
    for event in events:
        stimulus_id = event.stimulus_id
        if event.kind == "turn.started":
            _check_choice(history, event, waiting, finding)
        if stimulus_id is None or not event.kind.startswith("stimulus."):
            continue
        if event.kind == "stimulus.accepted":
            waiting[stimulus_id] = _first_place(history.db.stimuli.get(stimulus_id), event)
        elif event.kind == "stimulus.pending":
            waiting[stimulus_id] = Place.INTERRUPTED
        else:
            waiting.pop(stimulus_id, None)


def _first_place(stimulus: Stimulus | None, event: EventRow) -> Place:
    """Return the place a stimulus was accepted at: ahead if it was to join or replace a turn."""
    if event.data.get("outcome") == "steered":
        return Place.STEER
    if stimulus is not None and stimulus.place is Place.STEER:
        return Place.STEER
    return Place.REST


def _check_choice(
    history: History, event: EventRow, waiting: dict[str, Place], finding: InvariantFinding
) -> None:
    head_id = event.data["stimuli"][0]
    head = history.db.stimuli.get(head_id)
    finding.saw()
    if head is None or head_id not in waiting:
        return
    place = waiting[head_id]
    if head.mode is Mode.INTERRUPT or head.session_key in history.interrupting:
        place = min(place, Place.STEER)  # it may have gone ahead when it came
    rank = (head.priority, place, head.seq)
    for other_id, other_place in waiting.items():
        other = history.db.stimuli.get(other_id)
        if other is None or _may_wait(history, other, other_place, event):
            continue
        if (other.priority, other_place, other.seq) < rank:
            finding.report(
                f"{event.turn_id} was opened by {head_id} {rank!r} "
                f"before {other_id} {(other.priority, other_place, other.seq)!r}",
                history.story(other_id, event.turn_id),
            )


def _may_wait(history: History, stimulus: Stimulus, place: Place, event: EventRow) -> bool:
    """Tell whether a stimulus had a reason to wait: a window, an order for later, a parking."""
    if stimulus.is_debounced or stimulus.not_before > event.at:
        return True
    if stimulus.preemptions and place is not Place.INTERRUPTED:
        return True  # it may have waited for a window then: its row no longer says
    return any(known.kind == "stimulus.parked" for known in history.events_of_stimulus[stimulus.id])
