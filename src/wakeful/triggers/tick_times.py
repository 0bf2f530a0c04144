"""When the next tick is due: a pure function of a session and the end of its last turn."""

import hashlib

from wakeful.vocabulary.proactive import ProactiveRules


def next_tick(session_key: str, end_ms: int, rules: ProactiveRules) -> int:
    """Return the instant of the tick after a turn that ended at `end_ms`.

    The jitter comes from session and instant, so that whoever computes it again, after a crash or
    for a forecast, finds the same one, and sessions do not tick in step.
    """
    share = _share(f"{session_key}:{end_ms}")
    factor = 1 + (2 * share - 1) * rules.jitter_pct / 100
    wait_ms = round(1000 * rules.tick_interval_secs * factor)
    return end_ms + min(max(wait_ms, 1), rules.max_idle_secs * 1000)


def _share(text: str) -> float:
    """Return a number from 0 to 1 that looks like chance and is none."""
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
