"""How long a sleep lasts: what was asked for, within bounds, and off the edges of prompt caches."""

from wakeful.vocabulary.agent import CACHE_EDGES_MS
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.record import Record

SHORTEST_MS = 60_000
LONGEST_MS = 86_400_000


class Duration(Record):
    """A length of sleep, and what became of the wish."""

    requested_ms: int
    clamped_ms: int
    final_ms: int

    @property
    def is_snapped(self) -> bool:
        return self.final_ms != self.clamped_ms


def duration(
    requested_ms: int, rules: ProactiveRules, edges: tuple[int, int] = CACHE_EDGES_MS
) -> Duration:
    """Return how long somebody sleeps who asks for so many milliseconds."""
    longest = min(LONGEST_MS, rules.max_idle_secs * 1000)
    clamped = min(max(requested_ms, SHORTEST_MS), longest)
    final = _snapped(clamped, longest, edges) if rules.cache_aware_schedule else clamped
    return Duration(requested_ms=requested_ms, clamped_ms=clamped, final_ms=final)


def _snapped(wanted: int, longest: int, edges: tuple[int, int]) -> int:
    """Move what lies between the edges to the nearer one; in the middle, or if in doubt, down."""
    low, high = edges
    if not low < wanted < high:
        return wanted
    return high if high - wanted < wanted - low and high <= longest else low
