"""I13 usage, I14 loops and storms, I15 budget."""

from collections.abc import Iterator
from typing import Any

from wakeful.approvals.answering import BY_TIME
from wakeful.gate.money import NANO, nano
from wakeful.gate.storms import StormLimits
from wakeful.intake.decide import opens_turn
from wakeful.intake.facts import arrival_of
from wakeful.testing.checker.finding import InvariantFinding
from wakeful.testing.checker.history import AskedRow, History, grouped
from wakeful.testing.ledger import Line
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import Held
from wakeful.vocabulary.stimulus import State, Stimulus

AGENT = "agent"
DAY_MS = 86_400_000
DEEPEST = 16  # causes in a row, unless the settings say otherwise


def usage_is_whole(history: History, finding: InvariantFinding) -> None:
    """I13: what is on record is what the models counted; what nobody reported is an estimate."""
    reported = grouped(
        (line for line in history.ledgers.model if line["what"] == "answered" and "usage" in line),
        lambda line: (str(line["turn"]), int(line["step"])),
    )
    broken = grouped(
        (line for line in history.ledgers.model if line["what"] == "charged"),
        lambda line: (str(line["turn"]), int(line["step"])),
    )
    for turn_id, asks in history.asks_of_turn.items():
        for ask in asks:
            if ask.state == "answered" and (lines := reported.get((turn_id, ask.step))):
                finding.expect(
                    any(_is_counted(ask, line) for line in lines),
                    f"{turn_id} step {ask.step}: {ask.input_tokens} tokens were read, "
                    f"{ask.output_tokens} written, {ask.cost} paid; the model says {lines}",
                )
        for step in {ask.step for ask in asks}:
            estimates = sum(ask.step == step and bool(ask.is_estimate and ask.cost) for ask in asks)
            finding.expect(
                estimates >= len(broken.get((turn_id, step), ())),
                f"{turn_id} step {step}: an answer that broke off costs nothing",
                history.story(turn_id),
            )
        turn = history.db.turns.get(turn_id)
        if turn is not None and reported:
            paid = sum(ask.cost or 0 for ask in asks)
            finding.expect(
                abs(nano(turn.cost) - paid) <= 1_000,
                f"{turn_id} has cost {turn.cost}, its questions {paid} billionths",
            )


def _is_counted(ask: AskedRow, line: Line) -> bool:
    usage: dict[str, int] = line["usage"]
    if (ask.input_tokens, ask.output_tokens) != (usage["input"], usage["output"]):
        return False
    # Beside the answer it may have cost what broke off before: that is an estimate.
    return (ask.cost or 0) > usage["cost"] if ask.is_estimate else ask.cost == usage["cost"]


def chains_are_bounded(history: History, finding: InvariantFinding) -> None:
    """I14: no chain of causes goes on for ever, and nobody's own work counts as a person's."""
    limits = [float(rules["money_per_chain"] or "inf") for rules in _rules(history)]
    limit = max(limits, default=float("inf"))
    spent = _chain_costs(history)
    for stimulus in history.db.stimuli.values():
        if stimulus.depth == 0 or stimulus.state is State.SUPPRESSED:
            continue
        finding.expect(stimulus.depth <= DEEPEST, f"{stimulus.id} is {stimulus.depth} causes deep")
        before = sum(
            cost for at, cost in spent.get(stimulus.root_id, ()) if at < stimulus.accepted_at
        )
        finding.expect(
            before < limit * NANO,
            f"{stimulus.id} came of {stimulus.root_id}, which had cost {before} billionths",
            history.story(stimulus.id),
        )
    _check_depths(history, finding)
    _check_storms(history, finding)
    heard = grouped(
        (row for row in history.db.stimuli.values() if row.kind.rule.is_person),
        lambda row: row.session_key,
    )
    for session in history.db.sessions.values():
        at = session.last_human_at
        if at is not None and limits:
            finding.expect(
                any(row.accepted_at == at for row in heard[session.key]),
                f"{session.key} takes something at {at} for a person's word",
            )


def _check_depths(history: History, finding: InvariantFinding) -> None:
    """Whatever goes on without a person is one cause further from the first one."""
    for approval in history.db.approvals.values():
        answer = history.db.stimuli.get(approval.stimulus_id or "")
        asking = history.db.turns.get(approval.turn_id)
        if answer is None or asking is None or approval.decided_by != BY_TIME:
            continue
        finding.expect(
            answer.depth > asking.depth,
            f"{answer.id} is {answer.depth} causes deep, {asking.id} that asked {asking.depth}",
            history.story(answer.id, asking.id),
        )


def _check_storms(history: History, finding: InvariantFinding) -> None:
    """Whoever is guarded against opens only so many turns in a session within a window."""
    limits = StormLimits()
    opening = grouped(
        (row for row in history.db.stimuli.values() if _opens(history, row)),
        lambda row: (row.kind, row.source, _counted_in(row)),
    )
    for (_, source, key), rows in opening.items():
        times = [row.accepted_at for row in sorted(rows, key=lambda row: row.id)]
        if times != sorted(times):
            continue  # the clock was moved back: nobody can tell how much time has passed
        closest = zip(times, times[limits.turns :], strict=False)
        finding.expect(
            all(last - first >= limits.window_s * 1000 for first, last in closest),
            f"{source} opened more than {limits.turns} turns of {key} within {limits.window_s} s",
        )


def _opens(history: History, row: Stimulus) -> bool:
    """Tell whether a stimulus of a guarded kind was let in to open a turn, or to join one."""
    return (
        row.kind.rule.is_guarded
        and opens_turn(arrival_of(row, row.accepted_at))
        and not any(
            event.kind == "stimulus.held" and event.data.get("reason") == "storm"
            for event in history.events_of_stimulus[row.id]
        )
    )


def _counted_in(row: Stimulus) -> str:
    """Return the session in which a source's turns are counted; those of the inbox, in one."""
    if row.kind.rule.held is Held.ALWAYS:
        return keys.activity(row.agent_id)
    return row.session_key


def _chain_costs(history: History) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for turn in history.db.turns.values():
        for ask in history.asks_of_turn[turn.id]:
            if ask.settled_at is not None and ask.cost:
                found.setdefault(turn.root_id, []).append((ask.settled_at, ask.cost))
    return found


def budgets_hold(history: History, finding: InvariantFinding) -> None:
    """I15: what is spent and set aside never exceeds the cap, an overrun on record apart."""
    turns = history.db.turns
    asks = [ask for ask in history.db.asks if ask.scopes and ask.turn_id in turns]
    caps = _caps(history)
    for (agent_id, day), rows in grouped(
        asks, lambda ask: (turns[ask.turn_id].agent_id, ask.day)
    ).items():
        # After one overrun nothing more is granted, so only the largest can be above the cap.
        overrun = max(max(0, (ask.cost or 0) - ask.reserved) for ask in rows)
        cap = caps.get(agent_id)
        finding.expect(
            cap is None or max(_levels(rows)) <= cap + overrun,
            f"{agent_id} had set aside and spent {max(_levels(rows))} of {cap} on day {day}",
        )
        row = history.db.budgets.get((agent_id, AGENT))
        if row is not None and row.day == day:
            spent = sum(ask.cost or 0 for ask in rows if ask.state != "asked")
            reserved = sum(ask.reserved for ask in rows if ask.state == "asked")
            finding.expect(
                (row.spent, row.reserved) == (spent, reserved),
                f"{agent_id} has spent {row.spent} and set aside {row.reserved}; its questions "
                f"say {spent} and {reserved}",
            )
            charged = _charged(history, agent_id, day)
            finding.expect(
                cap is None or charged <= cap + overrun,
                f"the models of {agent_id} were paid {charged} of {cap} on day {day}",
            )
    for (turn_id, step), attempts in grouped(asks, lambda ask: (ask.turn_id, ask.step)).items():
        paid = [ask.max_tokens for ask in attempts]
        asked = [
            line.get("max_tokens")
            for line in history.asked_of_turn[turn_id]
            if int(line["step"]) == step and "max_tokens" in line
        ]
        # A kill may come between the commit that pays for a question and the question.
        answered = [ask.max_tokens for ask in attempts if ask.state == "answered"]
        finding.expect(
            set(answered) <= set(asked) <= set(paid) or None in paid or not asked,
            f"{turn_id} step {step} paid for {paid} tokens and asked for {asked}",
        )


def _levels(asks: list[AskedRow]) -> Iterator[int]:
    """Yield what was spent and set aside after each change; what ends comes before what begins."""
    changes = [(ask.asked_at, 1, ask.reserved) for ask in asks]
    changes += [
        (ask.settled_at, 0, (ask.cost or 0) - ask.reserved)
        for ask in asks
        if ask.settled_at is not None
    ]
    level = 0
    yield level
    for _, is_new, amount in sorted(changes):
        level += amount
        if is_new:
            yield level


def _charged(history: History, agent_id: str, day: int) -> int:
    """Return what the models say that they were paid for an agent on a day."""
    turns, total = history.db.turns, 0
    for line in history.ledgers.model:
        turn = turns.get(str(line.get("turn")))
        if turn is None or turn.agent_id != agent_id or "cost" not in line:
            continue
        if {ask.day for ask in history.asks_of_turn[turn.id]} == {day}:
            total += int(line["cost"])
    return total


def _rules(history: History) -> list[dict[str, Any]]:
    lives = (line for line in history.ledgers.lives if line["what"] == "start")
    return [line["budget"] for line in lives if "budget" in line]


def _caps(history: History) -> dict[str, int]:
    """Return the most that each agent might spend in a day of any of its lives."""
    caps = [rules["money_per_day"] for rules in _rules(history)]
    if not caps or None in caps:
        return {}
    raised: dict[str, int] = {}
    for event in history.db.events:
        if event.kind == "budget.raised":
            raised[event.data["agent_id"]] = nano(event.data["cap"])
    return {
        agent_id: max(nano(max(caps)), raised.get(agent_id, 0))
        for agent_id in {turn.agent_id for turn in history.db.turns.values()}
    }
