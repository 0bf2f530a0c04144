"""I9 events, I10 atomic events, I25 honest counters."""

from collections import Counter

from wakeful.outbox.outbox import DeliveryState
from wakeful.testing.checker.activity import feed_is_whole
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import EventRow, History, grouped, key_of
from wakeful.testing.ledger import Line
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.stimulus import TERMINAL, State

_KEPT = ("held", "parked")  # states beside the terminal ones that are announced


def seen_without_gap(history: History, finding: InvariantFinding) -> None:
    """I9: numbers rise without a hole, and every watcher saw each event once, as it is stored."""
    events, head = history.db.events, history.db.head
    numbers = [event.seq for event in events]
    finding.expect(
        numbers == list(range(head.pruned_through + 1, head.seq + 1)),
        f"the ledger of events has holes below {head.seq}",
    )
    stored = {event.seq: event for event in events}
    for name, lines in history.ledgers.watchers.items():
        _check_watcher(name, lines, stored, finding)


def _check_watcher(
    name: str, lines: list[Line], stored: dict[int, EventRow], finding: InvariantFinding
) -> None:
    last = 0
    for line in lines:
        if line["what"] == "reset":
            finding.report(f"{name} was told to start anew after {last}", [str(line)])
        if line["what"] != "saw":
            continue
        event = stored.get(line["seq"])
        finding.expect(
            line["seq"] == last + 1,
            f"{name} saw {line['seq']} after {last}",
            [str(line)],
        )
        finding.expect(
            event is not None
            and (event.kind, event.turn_id, event.stimulus_id)
            == (line["kind"], line["turn"], line["stimulus"]),
            f"{name} saw an event {line['seq']} that is not in the ledger",
            [str(line), f"stored: {event!r}"],
        )
        last = line["seq"]


def events_match_state(history: History, finding: InvariantFinding) -> None:
    """I10: an event row is there if, and only if, the change it tells of is."""
    _check_stimuli(history, finding)
    _check_turns(history, finding)
    _check_calls(history, finding)
    _check_deliveries(history, finding)
    feed_is_whole(history, finding)


def _check_stimuli(history: History, finding: InvariantFinding) -> None:
    for stimulus_id, events in history.events_of_stimulus.items():
        if stimulus_id is not None:
            finding.expect(
                stimulus_id in history.db.stimuli,
                f"{events[0].kind} tells of {stimulus_id}, which is not there",
                history.story(stimulus_id),
            )
    for stimulus in history.db.stimuli.values():
        kinds = Counter(event.kind for event in history.events_of_stimulus[stimulus.id])
        state = stimulus.state.value
        announced = stimulus.state in TERMINAL or state in _KEPT
        finding.expect(
            kinds["stimulus.accepted"] == 1
            and (not announced or kinds[f"stimulus.{state}"] >= 1)
            and (stimulus.state not in TERMINAL or kinds[f"stimulus.{state}"] == 1),
            f"{stimulus.id} is {state}, its events were {dict(kinds)!r}",
            history.story(stimulus.id),
        )
        if stimulus.state in (State.DONE, State.MERGED):
            finding.expect(
                kinds["stimulus.claimed"] >= 1, f"{stimulus.id} was never claimed, and is {state}"
            )


def _check_turns(history: History, finding: InvariantFinding) -> None:
    for turn_id, events in history.events_of_turn.items():
        if turn_id is not None:
            finding.expect(
                turn_id in history.db.turns, f"{events[0].kind} tells of {turn_id}: not there"
            )
    for turn in history.db.turns.values():
        kinds = Counter(event.kind for event in history.events_of_turn[turn.id])
        ends = int(turn.state is not TurnState.OPEN)
        finding.expect(
            kinds["turn.started"] == 1 and kinds["turn.finished"] == ends,
            f"{turn.id} is {turn.state.value}, its events were {dict(kinds)!r}",
            history.story(turn.id),
        )


def _check_calls(history: History, finding: InvariantFinding) -> None:
    seen = grouped(
        (event for event in history.db.events if event.kind == "turn.tool"),
        lambda event: (event.turn_id, event.data["call_id"]),
    )
    for call in history.db.calls:
        phases = Counter(e.data["phase"] for e in seen.pop((call.turn_id, call.call_id), []))
        ended = call.state is not CallState.INTENDED
        acts = call.effect != "ledger" and call.state in (CallState.DONE, CallState.UNKNOWN)
        finding.expect(
            (not ended or phases[call.state.value] == 1) and (not acts or phases["started"] >= 1),
            f"{key_of(call)} is {call.state.value}, its events were {dict(phases)!r}",
            history.story(call.turn_id),
        )
    finding.expect(not seen, f"events tell of calls that are not there: {list(seen)[:3]!r}")


def _check_deliveries(history: History, finding: InvariantFinding) -> None:
    seen = grouped(
        (event for event in history.db.events if event.kind.startswith("delivery.")),
        lambda event: event.data["delivery_id"],
    )
    for delivery in history.db.deliveries.values():
        kinds = Counter(event.kind for event in seen.pop(delivery.id, []))
        state = delivery.state
        is_open = state in (DeliveryState.QUEUED, DeliveryState.SENT)
        finding.expect(
            kinds["delivery.queued"] == int(state is not DeliveryState.HELD)
            and kinds["delivery.sent"] == delivery.attempts
            and (is_open or kinds[f"delivery.{state.value}"] == 1),
            f"{delivery.id} is {state.value}, its events were {dict(kinds)!r}",
        )
    finding.expect(not seen, f"events tell of deliveries that are not there: {list(seen)[:3]!r}")


def _check_inbox_counts(history: History, finding: InvariantFinding) -> None:
    real: Counter[str] = Counter()
    for stimulus in history.db.stimuli.values():
        if stimulus.in_inbox and stimulus.state not in TERMINAL:
            real.update(("", f"{stimulus.kind.value}:{stimulus.source}"))
    finding.expect(
        dict(real) == history.db.inbox_counts,
        f"the inbox has {dict(real)!r}, counted were {history.db.inbox_counts!r}",
    )


def counters_are_honest(history: History, finding: InvariantFinding) -> None:
    """I25: at every sample, what a life had counted is what it had committed.

    What waits in the inbox is what was counted there.
    """
    _check_inbox_counts(history, finding)
    starts = {
        line["life"]: line["position"] for line in history.ledgers.lives if line["what"] == "start"
    }
    kinds = [event.kind for event in history.db.events]
    for line in history.ledgers.samples:
        # Recovery may have written before the life noted its start: count from what it counted.
        counted = sum(line["events"].values())
        first = line["position"] - counted
        real = Counter(kinds[first : line["position"]])
        finding.expect(
            line["life"] not in starts
            or (0 <= first <= starts[line["life"]] and dict(real) == line["events"]),
            f"{line['life']} had counted {line['events']!r}, committed {dict(real)!r}",
            [str(line)],
        )
