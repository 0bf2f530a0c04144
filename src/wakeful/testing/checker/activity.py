"""The part of I10 that is about Activity: the feed and its marks tell what happened, once."""

from collections import Counter

from wakeful.sleeps.marks import SleepEdge
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History
from wakeful.turns.turns import TurnState
from wakeful.vocabulary import session_key as keys


def feed_is_whole(history: History, finding: InvariantFinding) -> None:
    """One row per turn that ended, one mark per end of a sleep, and no mark moves back."""
    rows = Counter(history.db.feed)
    for turn in history.db.turns.values():
        ends = int(turn.state is not TurnState.OPEN)
        finding.expect(
            rows.pop(turn.id, 0) == ends,
            f"{turn.id} is {turn.state.value}, and is in the feed in another number of rows",
            history.story(turn.id),
        )
        events = history.events_of_turn[turn.id]
        messages = sum(event.kind == "activity.message" for event in events)
        is_activity = turn.session_key == keys.activity(turn.agent_id)
        finding.expect(
            messages == (ends if is_activity else 0),
            f"{turn.id} in {turn.session_key} was told in {messages} messages of Activity",
            history.story(turn.id),
        )
    finding.expect(not rows, f"the feed tells of turns that are not there: {sorted(rows)[:5]}")
    _check_sleeps(history, finding)
    _check_seen(history, finding)


def _check_sleeps(history: History, finding: InvariantFinding) -> None:
    marks = {(mark.sleep_id, mark.edge) for mark in history.db.sleep_marks}
    finding.expect(len(marks) == len(history.db.sleep_marks), "a sleep is marked twice")
    for kind, edge in (("sleep.entered", SleepEdge.ENTERED), ("sleep.woken", SleepEdge.ENDED)):
        events = (event for event in history.db.events if event.kind == kind)
        missing = {event.data["id"] for event in events} - {one for one, at in marks if at is edge}
        finding.expect(not missing, f"{kind} without a mark: {sorted(missing)[:5]}")
    asleep = {sleep.id for sleep in history.db.sleeps.values()}
    begun = {one for one, edge in marks if edge is SleepEdge.ENTERED}
    ended = {one for one, edge in marks if edge is SleepEdge.ENDED}
    finding.expect(
        begun - ended == asleep,
        f"marked as asleep and not, or the other way: {sorted((begun - ended) ^ asleep)[:5]}",
    )


def _check_seen(history: History, finding: InvariantFinding) -> None:
    """Whatever a client was told is read stays so."""
    for line in history.ledgers.client:
        if line["what"] == "answer" and line["do"] == "see" and "ok" in line:
            for agent_id, seen_at in line["ok"].items():
                finding.expect(
                    history.db.seen.get(agent_id, -1) >= seen_at,
                    f"{agent_id!r} was read up to {seen_at}, and no longer is",
                    [str(line)],
                )
