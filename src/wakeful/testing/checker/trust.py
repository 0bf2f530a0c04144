"""I21 access: what strangers may do, what owners may hear, and what nobody may."""

from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, grouped
from wakeful.testing.ledger import Line
from wakeful.tools.builtin import default_tools
from wakeful.tools.tool import Effect
from wakeful.turn.calls import APPROVED
from wakeful.turns.tool_calls import RecordedCall
from wakeful.turns.turns import Turn
from wakeful.vocabulary.entry import AssistantBody, NoteBody, ToolBody, UserBody, is_external
from wakeful.vocabulary.stimulus import Trust

# Where a call stands in its turn: the step, and the place in the reply of that step.
Position = tuple[int, int]

BEFORE_ALL: Position = (-1, -1)
APPROVED_CALL: Position = (0, 0)  # which a turn begins with
_FOR_ALL = frozenset(tool.name for tool in default_tools() if tool.is_for_external)
_HARMLESS = frozenset({"none", Effect.READ.value})  # there was no such tool, or it only looked


def access_holds(history: History, finding: InvariantFinding) -> None:
    """I21: strangers change nothing, nobody hears what is another's, and no secret is told."""
    strangers_change_nothing(history, finding)
    _owners_hear_of_nobody_else(history, finding)
    _no_secret_is_repeated(history, finding)


def strangers_change_nothing(history: History, finding: InvariantFinding) -> None:
    """Once a turn was shown text from outside, it has only the tools that strangers have."""
    for turn in history.db.turns.values():
        sunk_at = _sunk_at(history, turn)
        if sunk_at is None:
            continue
        finding.expect(
            turn.trust is Trust.EXTERNAL,
            f"{turn.id} was shown text from outside and is trusted as before",
            history.story(turn.id),
        )
        for call in history.calls_of_turn[turn.id]:
            finding.expect(
                (call.step, call.position) <= sunk_at
                or _may_run(call, turn)
                or _was_approved(history, call),
                f"{turn.id} ran {call.name} after it was shown text from outside",
                history.story(turn.id),
            )


def _owners_hear_of_nobody_else(history: History, finding: InvariantFinding) -> None:
    """No answer names what another owner made, but for what its reader has asked for by name."""
    made = grouped(
        (line for line in history.ledgers.neighbours if line["what"] == "made"),
        lambda line: str(line["who"]),
    )
    for line in _answers(history):
        others = [name for who in made.keys() - {line["who"]} for name in _names(made[who])]
        leaked = [name for name in others if name in line["said"] and name not in line["asked"]]
        finding.expect(
            not leaked, f"{line['who']} asked for {line['asked'][:200]} and heard of {leaked!r}"
        )


def _no_secret_is_repeated(history: History, finding: InvariantFinding) -> None:
    """Neither an answer, nor an event, nor the log repeats what proves who somebody is."""
    lines = history.ledgers.neighbours
    secrets = [str(line["secret"]) for line in lines if line["what"] == "secret"]
    for line in _answers(history):
        is_repeated = any(secret in line["said"] for secret in secrets)
        finding.expect(not is_repeated, f"the answer to {line['asked'][:200]} repeats a secret")
    for name, text in (
        ("the log", history.ledgers.log),
        ("an event", str([event.data for event in history.db.events] if secrets else "")),
    ):
        finding.expect(not any(secret in text for secret in secrets), f"{name} repeats a secret")


def _answers(history: History) -> list[Line]:
    return [line for line in history.ledgers.neighbours if line["what"] == "answer"]


def _names(lines: list[Line]) -> list[str]:
    return [str(name) for line in lines for name in line["names"]]


def _may_run(call: RecordedCall, turn: Turn) -> bool:
    return call.effect in _HARMLESS or call.name in _FOR_ALL or call.name in turn.granted


def _was_approved(history: History, call: RecordedCall) -> bool:
    """Tell whether a call is the one that somebody approved, and no other of its turn."""
    approval = history.db.approvals.get(call.call_id)
    return approval is not None and approval.used_by == call.turn_id


def _sunk_at(history: History, turn: Turn) -> Position | None:
    """Return the call whose result was the first text from outside, or None if there was none.

    What opened the turn, or joined it, comes before all calls: nobody less trusted joins it later.
    """
    calls = history.calls_of_turn[turn.id]
    # No reply has what was approved; a turn that waited for the budget has its first in step 0.
    steps = sorted({call.step for call in calls if not _was_approved(history, call)})
    replies = 0  # those with calls, each a step
    for entry in sorted(history.entries_of_turn[turn.id], key=lambda entry: entry.depth):
        body = entry.content()
        if isinstance(body, AssistantBody) and body.message.tool_calls:
            replies += 1
        elif is_external(body) and isinstance(body, UserBody):
            return BEFORE_ALL
        elif is_external(body) and isinstance(body, NoteBody) and body.topic == APPROVED:
            return APPROVED_CALL
        elif is_external(body) and isinstance(body, ToolBody):
            return next(
                (call.step, call.position)
                for call in calls
                if call.step == steps[replies - 1] and call.call_id == body.message.call_id
            )
    return None
