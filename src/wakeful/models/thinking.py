"""Which level of thinking a model is asked for."""

from collections.abc import Collection

from wakeful.vocabulary.agent import ThinkingLevel

LEVELS = tuple(ThinkingLevel)


def nearest(wanted: ThinkingLevel, had: Collection[ThinkingLevel]) -> ThinkingLevel | None:
    """Return the wanted level, the nearest lower one, or else the lowest that a model has.

    None means that the model has no levels at all.
    """
    below = [level for level in LEVELS[: LEVELS.index(wanted) + 1] if level in had]
    above = [level for level in LEVELS if level in had]
    return below[-1] if below else above[0] if above else None
