"""I6 steps, I7 tools, I8 pairs."""

from wakeful.testing.checker import approvals
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import History, grouped, key_of
from wakeful.testing.checker.marks import digest_of_reply
from wakeful.testing.ledger import Line
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState, RecordedCall
from wakeful.turns.turns import Turn, TurnState
from wakeful.vocabulary.entry import AssistantBody, EntryKind, ToolBody
from wakeful.vocabulary.message import AssistantMessage, ToolMessage

# Words of the runtime itself, or cut off: no whole reply of a model.
_NO_REPLY = ("aborted", "error", "limit", "closure")
_SHOWN_WHOLE = 10_000  # characters that no result of a test tool reaches


def one_answer_per_step(history: History, finding: InvariantFinding) -> None:
    """I6: a step has one committed answer; the model is asked again only where that is recorded."""
    for turn in history.db.turns.values():
        story = history.story
        asks = grouped(history.asks_of_turn[turn.id], lambda ask: ask.step)
        seen = grouped(history.asked_of_turn[turn.id], lambda line: int(line["step"]))
        resumes = history.resumes(turn.id)
        for step in sorted({*asks, *seen}):
            rows, answered = asks[step], [ask for ask in asks[step] if ask.state == "answered"]
            failed = sum(ask.state in ("failed", "garbled") for ask in rows)
            finding.expect(
                len(answered) <= 1,
                f"{turn.id} step {step} was answered {len(answered)} times",
                story(turn.id),
            )
            finding.expect(
                len(seen[step]) <= len(rows),
                f"{turn.id} step {step}: the model was asked {len(seen[step])} times, "
                f"{len(rows)} are on record",
                story(turn.id),
            )
            finding.expect(
                len(rows) <= 1 + resumes + failed,
                f"{turn.id} step {step} was asked {len(rows)} times without a reason",
                story(turn.id),
            )
        if turn.id not in history.discarded:
            _check_replies(history, turn, finding)
        _check_progress(history, turn, seen, finding)


def _check_replies(history: History, turn: Turn, finding: InvariantFinding) -> None:
    """Every reply in the transcript is one that the model really gave, and none is there twice."""
    given = {
        line["digest"]
        for line in history.ledgers.model
        if line["what"] == "answered" and line["turn"] == turn.id
    }
    replies = [
        message for message in _assistant(history, turn) if message.stop_reason not in _NO_REPLY
    ]
    answered = [ask for ask in history.asks_of_turn[turn.id] if ask.state == "answered"]
    wanted = sum(ask.purpose is Purpose.REPLY for ask in answered)
    finding.expect(
        len(replies) == wanted,
        f"{turn.id} has {len(replies)} replies for {wanted} answered asks",
        history.story(turn.id),
    )
    compactions = sum(e.kind is EntryKind.COMPACTION for e in history.entries_of_turn[turn.id])
    finding.expect(
        compactions == len(answered) - wanted,
        f"{turn.id} has {compactions} compactions for {len(answered) - wanted} summaries",
        history.story(turn.id),
    )
    for reply in replies:
        finding.expect(
            digest_of_reply(reply) in given,
            f"{turn.id} has a reply that no model gave: {reply.text[:80]!r}",
            history.story(turn.id),
        )


def _assistant(history: History, turn: Turn) -> list[AssistantMessage]:
    bodies = [e.content() for e in history.entries_of_turn[turn.id] if e.kind is EntryKind.MESSAGE]
    return [body.message for body in bodies if isinstance(body, AssistantBody)]


def _check_progress(
    history: History, turn: Turn, seen: dict[int, list[Line]], finding: InvariantFinding
) -> None:
    """Nobody asks again for a step whose answer was already acted upon."""
    acts = [(int(line["key"].split(":")[1]), line["t"]) for line in history.begun_of_turn[turn.id]]
    acts += [(step - 1, line["t"]) for step, lines in seen.items() for line in lines]
    for step, lines in seen.items():
        acted = min((t for act_step, t in acts if act_step >= step), default=None)
        for line in lines:
            finding.expect(
                acted is None or line["t"] <= acted,
                f"{turn.id} step {step} was asked again after its answer was acted upon",
                history.story(turn.id),
            )


def tools_run_once(history: History, finding: InvariantFinding) -> None:
    """I7: no effect without an intent or its grant, none twice, and no finished call runs again."""
    calls = {key_of(call): call for call in history.db.calls}
    lines_of = grouped(history.ledgers.tools, lambda line: str(line["key"]))
    for key, lines in lines_of.items():
        turn_id = key.split(":")[0]
        call = calls.get(key)
        if call is None:
            finding.expect(False, f"{key} ran without an intent", history.story(turn_id))
        else:
            _check_runs(history, call, lines, finding)
    for call in history.db.calls:
        _check_result(history, call, lines_of.get(key_of(call), []), finding)
    approvals.grants_are_used_once(history, finding)


def _check_runs(
    history: History, call: RecordedCall, lines: list[Line], finding: InvariantFinding
) -> None:
    story = history.story(call.turn_id)
    begun = [line["t"] for line in lines if line["what"] == "begun"]
    acted = sum(line["what"] == "acted" for line in lines)
    if call.effect == "effect":
        finding.expect(
            len(begun) <= 1 and acted <= 1,
            f"{key_of(call)} ({call.name}) ran {len(begun)} times and acted {acted} times",
            story,
        )
    else:
        finding.expect(
            len(begun) <= 1 + history.resumes(call.turn_id),
            f"{key_of(call)} ({call.name}) ran {len(begun)} times without a reason",
            story,
        )
        finding.expect(
            call.effect != "idempotent" or acted <= 1, f"{key_of(call)} acted twice", story
        )
    later = [line["t"] for line in history.asked_of_turn[call.turn_id] if line["step"] > call.step]
    finding.expect(
        not later or max(begun, default=0.0) <= min(later),
        f"{key_of(call)} ({call.name}) ran again after the model had been shown its result",
        story,
    )


def _check_result(
    history: History, call: RecordedCall, lines: list[Line], finding: InvariantFinding
) -> None:
    story = history.story(call.turn_id)
    results = _results(history, call)
    finding.expect(
        call.state is not CallState.INTENDED and call.settled_at is not None,
        f"{key_of(call)} is {call.state.value} at rest",
        story,
    )
    finding.expect(
        len(results) == 1 or (not results and _may_lack_a_result(history, call)),
        f"{key_of(call)} has {len(results)} results",
        story,
    )
    next_asks = [a.asked_at for a in history.asks_of_turn[call.turn_id] if a.step > call.step]
    finding.expect(
        call.settled_at is None or not next_asks or call.settled_at <= min(next_asks),
        f"{key_of(call)} had no result when the model was asked again",
        story,
    )
    ended = [line["result"] for line in lines if line["what"] == "ended"]
    if call.state is CallState.DONE and call.effect != "ledger" and results:
        finding.expect(
            len(results[0].text) > _SHOWN_WHOLE or results[0].text in ended,
            f"{key_of(call)} has a result that the tool did not give",
            story,
        )
    if call.state in (CallState.SKIPPED, CallState.ASKED):
        finding.expect(not lines, f"{key_of(call)} was {call.state.value}, and ran", story)


def _may_lack_a_result(history: History, call: RecordedCall) -> bool:
    """Tell whether nobody was there to write it: models are told of such calls all the same."""
    turn = history.db.turns.get(call.turn_id)
    has_nobody = turn is not None and turn.state is not TurnState.DONE
    is_lost = call.state is CallState.UNKNOWN and has_nobody
    return is_lost or call.turn_id in history.discarded


def _results(history: History, call: RecordedCall) -> list[ToolMessage]:
    if call.call_id in history.db.approvals:
        return approvals.results(history, call)
    return [
        body.message
        for entry in history.entries_of_turn[call.turn_id]
        if entry.kind is EntryKind.MESSAGE
        and isinstance(body := entry.content(), ToolBody)
        and body.message.call_id == call.call_id
    ]


def calls_are_paired(history: History, finding: InvariantFinding) -> None:
    """I8: no request that a provider would refuse for a call without its result."""
    finding.saw(len(history.asked))
    for line in history.ledgers.model:
        if line["what"] == "refused":
            finding.report(
                f"{line['turn']} step {line['step']}: {line['why']}",
                history.story(line["turn"]),
            )
