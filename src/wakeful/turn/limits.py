"""Limits: what a turn may use, each with a sentence the user can read."""

from wakeful.turns.turns import Turn
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.kinds import Limit


def before_ask(turn: Turn, limits: Limits) -> str | None:
    """Return why the model may not be asked again, or None."""
    if turn.step >= limits.steps:
        return f"I stopped after {limits.steps} steps, the limit for one turn."
    return _spent(turn, limits)


def before_calls(turn: Turn, limits: Limits, count: int) -> str | None:
    """Return why no more tools may be called, or None."""
    if turn.tool_calls + count > limits.tool_calls:
        return (
            f"I stopped after {turn.tool_calls} tool calls; one turn may make {limits.tool_calls}."
        )
    return _spent(turn, limits)


def wall_s(turn: Turn, limits: Limits) -> float:
    """Return how many seconds this attempt may still take."""
    return max(0.001, _whole_s(turn, limits) - turn.used_ms / 1000)


def out_of_time(turn: Turn, limits: Limits) -> str:
    return f"I ran out of time: one turn may take {_whole_s(turn, limits)} seconds."


def _whole_s(turn: Turn, limits: Limits) -> int:
    if turn.wall_s is not None:
        return turn.wall_s
    is_job = turn.kind.rule.limit is Limit.JOB
    return limits.automation_wall_s if is_job else limits.wall_s


def _spent(turn: Turn, limits: Limits) -> str | None:
    tokens = turn.input_tokens + turn.output_tokens
    if tokens >= limits.tokens:
        return f"I stopped after {tokens} tokens; one turn may use {limits.tokens}."
    return out_of_money(turn, limits) if turn.cost >= limits.money else None


def out_of_money(turn: Turn, limits: Limits) -> str:
    return f"I stopped after spending {turn.cost:.2f}; one turn may spend {limits.money:.2f}."
