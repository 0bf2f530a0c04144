"""The line with which a reply ends, where its session wants one: what the turn used.

It belongs to what is delivered, never to the reply: no model reads it, and no text is compared
with it.
"""

from wakeful.prompts.silence import spoken
from wakeful.transcript.sessions import ResponseUsage
from wakeful.turn.commit import TurnCommit
from wakeful.turn.sizing import is_unheard
from wakeful.turns import asks
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.spans import format_span


class TurnUsage(Record):
    """What a turn used."""

    read: int  # tokens
    written: int
    cost: float | None  # dollars; None: nobody knows
    took_ms: int
    model: str


def usage_line(commit: TurnCommit, reply: str) -> str | None:
    """Return the line for a reply; None if nobody wants one, or nobody hears the reply."""
    wanted, turn = commit.session.overrides.response_usage, commit.turn
    if wanted in (None, "off") or spoken(reply).is_silent or is_unheard(turn):
        return None
    used = TurnUsage(
        read=turn.input_tokens,
        written=turn.output_tokens,
        cost=None if asks.is_unpriced(commit.tx, turn.id) else turn.cost,
        took_ms=commit.tx.now - turn.opened_at,
        model=commit.answered_by or commit.agent.model.name,
    )
    return line_of(used, wanted)


def line_of(used: TurnUsage, wanted: ResponseUsage) -> str:
    """Return what a turn used, in the words that were wanted."""
    read, written = _tokens(used.read), _tokens(used.written)
    line = f"tokens {_tokens(used.read + used.written)} (in {read} / out {written})"
    if wanted != "full":
        return line
    cost = "unpriced" if used.cost is None else f"est {_dollars(used.cost)}"
    return f"{line} • {cost} • {_time(used.took_ms)} • {used.model}"


def _tokens(count: int) -> str:
    """Return a count with at most one decimal: 800, 1.2k, 3m."""
    for unit, size in (("m", 1_000_000), ("k", 1_000)):
        if count >= size - size // 2_000:  # what would be rounded up to 1000k is 1m
            return f"{count / size:.1f}".removesuffix(".0") + unit
    return str(count)


def _dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost == 0 or cost >= 0.01 else f"${cost:.4f}"


def _time(took_ms: int) -> str:
    seconds = max(0, round(took_ms / 1000))
    return f"{seconds} s" if seconds < 60 else format_span(seconds * 1000)
