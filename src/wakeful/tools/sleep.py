"""`sleep`: rest until a time, or until somebody needs the agent."""

import msgspec

from wakeful.tools.tool import Effect, LedgerContext, ToolResult, tool
from wakeful.triggers.durations import duration
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.proactive import SleepIntent
from wakeful.vocabulary.text import one_line

LONGEST_REASON = 500


@tool(effect=Effect.LEDGER, is_for_external=True)
def sleep(context: LedgerContext, duration_ms: int, reason: str = "") -> ToolResult:
    """Rest for a while: this turn ends, and you are woken when the time is over, or earlier if
    somebody needs you. The reason is shown to you then, so say what you wait for.
    """
    if duration_ms <= 0:
        raise InvalidInput("duration_ms", f"must be a positive number, not {duration_ms}")
    length = duration(duration_ms, context.proactive, context.agent.cache_edges_ms)
    now = context.tx.now
    wish = SleepIntent(
        id=context.ids.new("sl"),
        reason=one_line(reason, LONGEST_REASON),
        requested_ms=duration_ms,
        final_ms=length.final_ms,
        made_at=now,
        wake_at=now + length.final_ms,
        is_snapped=length.is_snapped,
    )
    said = {
        "id": wish.id,
        "requested_ms": length.requested_ms,
        "clamped_ms": length.clamped_ms,
        "final_ms": length.final_ms,
        "wake_at": wish.wake_at,
    }
    return ToolResult(text=msgspec.json.encode(said).decode(), ends_turn=True, sleep=wish)
