"""Which level of thinking a model is asked for."""

from collections.abc import Collection, Mapping
from typing import Any

from wakeful.vocabulary.agent import ThinkingLevel

LEVELS = tuple(ThinkingLevel)


def levels(profile: Mapping[str, Any]) -> frozenset[ThinkingLevel]:
    """Return the levels that a model tells apart, as far as the library's profile of it says."""
    if not (profile.get("supports_thinking") or profile.get("thinking_always_enabled")):
        return frozenset()
    efforts = profile.get("openai_reasoning_efforts")
    if efforts is not None:
        named = {level for level in LEVELS if level.value in efforts}
        return frozenset(named | ({ThinkingLevel.OFF} if "none" in efforts else set()))
    had = set(LEVELS)
    if profile.get("thinking_always_enabled"):
        had.discard(ThinkingLevel.OFF)
    if not (
        profile.get("anthropic_supports_xhigh_effort") or profile.get("openai_supports_reasoning")
    ):
        had.discard(ThinkingLevel.XHIGH)
    return frozenset(had)


def nearest(wanted: ThinkingLevel, had: Collection[ThinkingLevel]) -> ThinkingLevel | None:
    """Return the wanted level, the nearest lower one, or else the lowest that a model has.

    None means that the model has no levels at all.
    """
    below = [level for level in LEVELS[: LEVELS.index(wanted) + 1] if level in had]
    above = [level for level in LEVELS if level in had]
    return below[-1] if below else above[0] if above else None
