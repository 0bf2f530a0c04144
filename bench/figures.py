"""Figures: a measured value, the floor it stands on, and whether it reaches its goal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Sense(StrEnum):
    """Which side of its goal a value should be on."""

    AT_LEAST = "≥"
    UNDER = "<"
    AT_MOST = "≤"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row of the results."""

    name: str
    value: float
    unit: str
    floor: float | None
    floor_is: str  # what the floor measures, in a few words
    sense: Sense = Sense.UNDER
    goal: float | None = None
    doubt: str = ""  # why nobody can tell here whether the goal is met

    @property
    def ratio(self) -> float | None:
        """The value as a multiple of its floor."""
        return self.value / self.floor if self.floor else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none, or nobody can tell."""
        if self.goal is None or self.doubt:
            return None
        match self.sense:
            case Sense.AT_LEAST:
                return self.value >= self.goal
            case Sense.UNDER:
                return self.value < self.goal
            case Sense.AT_MOST:
                return self.value <= self.goal


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all are not above."""
    if not values:
        raise ValueError("no values were measured")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def admission_goal(one_at_a_time: float) -> float:
    """Return the admissions per second that are asked of a disk with this commit rate."""
    return min(5 * one_at_a_time, 10_000.0)
