"""I3 ends, I4 one owner, I5 serial session, I22 stop."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History, grouped, key_of
from wakeful.testing.checker.marks import marks_in
from wakeful.testing.ledger import Line
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.stimulus import State

STOP_S = 5.0  # one on a machine of its own; a busy one may take longer over anything
HALT_GRACE_S = 0.1  # what a commit allowed before the halt may still be seen to begin

_CLAIMS = ("turn.started", "turn.resumed")
_RELEASES = ("turn.finished", "turn.left")


def every_turn_ends(history: History, finding: InvariantFinding) -> None:
    """I3: each turn has one terminal state, and at rest no lane is held."""
    may_raise = any(":raise" in str(line) for line in history.ledgers.faults)
    for turn in history.db.turns.values():
        finding.expect(
            may_raise or turn.error_kind != "internal",
            f"{turn.id} failed inside the runtime: {turn.error}",
            history.story(turn.id),
        )
        ends = [e for e in history.events_of_turn[turn.id] if e.kind == "turn.finished"]
        states = [event.data["state"] for event in ends]
        is_halted = bool(history.db.halts) and not ends and turn.state is TurnState.OPEN
        finding.expect(
            is_halted or (turn.state is not TurnState.OPEN and states == [turn.state.value]),
            f"{turn.id} is {turn.state.value}, its ends were {states!r}",
            history.story(turn.id),
        )
        finding.expect(
            (turn.ended_at is None) is (turn.state is TurnState.OPEN),
            f"{turn.id} is {turn.state.value} with the end {turn.ended_at}",
        )
    for lane in history.db.lanes.values():
        finding.expect(
            lane.owner is None and (lane.turn_id is None or bool(history.db.halts)),
            f"the lane {lane.session_key} is held at rest by {lane.owner} for {lane.turn_id}",
            history.story(lane.turn_id),
        )


def one_owner(history: History, finding: InvariantFinding) -> None:
    """I4: epochs rise by one with every claim, and every write carries the one of its claim."""
    claimed: dict[str, set[int]] = {}
    for session_key, events in history.events_of_session.items():
        if session_key is not None:
            _check_epochs(history, session_key, events, claimed, finding)
    rows = [
        *((entry.turn_id, entry.epoch, f"entry {entry.id}") for entry in history.db.entries),
        *((ask.turn_id, ask.epoch, f"ask {ask.step}") for ask in history.db.asks),
        *((call.turn_id, call.epoch, f"call {key_of(call)}") for call in history.db.calls),
    ]
    for turn_id, epoch, what in rows:
        if turn_id is not None:
            finding.expect(
                epoch in claimed.get(turn_id, ()),
                f"{what} carries epoch {epoch}, which no claim of {turn_id} had",
                history.story(turn_id),
            )
    for branch, entries in grouped(history.db.entries, lambda entry: entry.branch).items():
        epochs = [entry.epoch for entry in entries if entry.turn_id is not None]
        finding.expect(
            epochs == sorted(epochs), f"in {branch} an older epoch wrote after a newer one"
        )


def _check_epochs(
    history: History,
    session_key: str,
    events: list[EventRow],
    claimed: dict[str, set[int]],
    finding: InvariantFinding,
) -> None:
    current = 0
    for event in events:
        epoch: int = event.data.get("epoch", 0)
        if event.kind in _CLAIMS:
            assert event.turn_id is not None
            finding.expect(
                epoch == current + 1,
                f"{session_key}: a claim with epoch {epoch} after {current}",
                history.story(event.turn_id),
            )
            current = epoch
            claimed.setdefault(event.turn_id, set()).add(epoch)
        elif event.kind in _RELEASES:
            finding.expect(
                epoch == current,
                f"{session_key}: {event.kind} by epoch {epoch} while {current} held the lane",
                history.story(event.turn_id),
            )
    lane = history.db.lanes.get(session_key)
    if lane is not None:
        finding.expect(
            lane.epoch == current, f"{session_key} is at epoch {lane.epoch}, not {current}"
        )


def serial_session(history: History, finding: InvariantFinding) -> None:
    """I5: no two turns of a session overlap, in the ledger or in the eyes of model and tools."""
    for session_key, events in history.events_of_session.items():
        running: str | None = None
        for event in events:
            if event.kind == "turn.started":
                finding.expect(
                    running is None,
                    f"{session_key}: {event.turn_id} started while {running} ran",
                    history.story(running, event.turn_id),
                )
                running = event.turn_id
            elif event.kind == "turn.finished" and event.turn_id == running:
                running = None
    _check_from_outside(history, finding)


def _check_from_outside(history: History, finding: InvariantFinding) -> None:
    """Whatever model and tools saw of one turn lies wholly before or after another's."""
    seen = [*history.asked, *history.begun]
    spans: dict[str, list[tuple[float, float, str]]] = {}
    for turn_id, lines in grouped(seen, lambda line: str(line["turn"])).items():
        turn = history.db.turns.get(turn_id)
        if turn is not None:
            times = [line["t"] for line in lines]
            spans.setdefault(turn.session_key, []).append((min(times), max(times), turn_id))
    for session_key, found in spans.items():
        found.sort()
        for (_, last, earlier), (first, _, later) in pairwise(found):
            finding.expect(
                last <= first,
                f"{session_key}: {earlier} still acted after {later} had begun",
                history.story(earlier, later),
            )


def stop_is_obeyed(history: History, finding: InvariantFinding) -> None:
    """I22: a stop is acknowledged soon, and then nothing of what it or a halt covers begins."""
    asked_at: dict[str, float] = {}
    for line in history.ledgers.client:
        if line["do"] == "stop" and line["what"] == "request":
            asked_at[line["session"]] = line["t"]
        elif line["do"] == "stop" and line.get("ok"):
            took_s = line["t"] - asked_at[line["session"]]
            finding.expect(
                took_s <= STOP_S or history.is_stormy(asked_at[line["session"]], line["t"]),
                f"a stop was acknowledged after {took_s:.1f} s",
            )
            _check_stop(history, line, finding)
    _check_halts(history, finding)
    _check_halted_intents(history, finding)


def _check_stop(history: History, line: Line, finding: InvariantFinding) -> None:
    stopped, acknowledged = line["ok"], line["t"]
    turn_id = stopped["turn_id"]
    if turn_id is not None:
        later = [
            act
            for act in (*history.asked_of_turn[turn_id], *history.begun_of_turn[turn_id])
            if act["t"] > acknowledged
        ]
        finding.expect(
            not later,
            f"{turn_id} went on after its stop was acknowledged: {later[:1]!r}",
            history.story(turn_id),
        )
        turn = history.db.turns.get(turn_id)
        ends = Counter(e.kind for e in history.events_of_turn[turn_id])
        finding.expect(
            turn is not None and ends["turn.finished"] == 1, f"{turn_id} was stopped and has no end"
        )
    shown = {mark for asked in history.asked for mark in asked["marks"]}
    for stimulus_id in stopped["cancelled"]:
        stimulus = history.db.stimuli.get(stimulus_id)
        finding.expect(
            stimulus is not None
            and stimulus.state is State.CANCELLED
            and (stimulus.preemptions > 0 or not shown.intersection(marks_in(stimulus.text))),
            f"{stimulus_id} was cancelled by a stop and is not, or ran",
            history.story(stimulus_id),
        )


def _check_halts(history: History, finding: InvariantFinding) -> None:
    for since, until in halted_spans(history.ledgers.client):
        later = [
            act
            for act in (*history.asked, *history.begun)
            if since + HALT_GRACE_S < act["t"] < until
        ]
        finding.expect(not later, f"something began while all was halted: {later[:1]!r}")


def halted_spans(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return when the client knew that all was halted: from the answer until it asked to resume.

    Where somebody asked to resume before the answer came, nobody knows which of the two was last.
    """
    spans: list[tuple[float, float]] = []
    under_way: Counter[str] = Counter()
    halted_at: float | None = None
    is_contested = False
    for line in lines:
        do, is_request = line["do"], line["what"] == "request"
        if do not in ("halt", "resume"):
            continue
        under_way[do] += 1 if is_request else -1
        if do == "resume" and is_request and halted_at is not None:
            spans.append((halted_at, line["t"]))
            halted_at = None
        elif do == "halt" and not is_request and line.get("ok") is True and not is_contested:
            halted_at = line["t"]
        is_contested = under_way["halt"] > 0 and (is_contested or under_way["resume"] > 0)
    return spans


def _check_halted_intents(history: History, finding: InvariantFinding) -> None:
    is_halted = False
    for event in history.db.events:
        if event.kind in ("halt.set", "halt.lifted"):
            is_halted = event.kind == "halt.set"
        elif event.kind == "turn.tool" and event.data["phase"] == "started":
            finding.expect(not is_halted, f"a tool was intended while all was halted: {event!r}")
