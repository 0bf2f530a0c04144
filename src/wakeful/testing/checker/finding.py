"""Findings: what an invariant looked at, and where it was broken."""

from collections.abc import Iterable

from wakeful.vocabulary.record import Record

LONGEST_STORY = 40  # lines kept of one violation's history
KEPT_VIOLATIONS = 20  # of one invariant; the rest is counted


class Violation(Record):
    """One broken promise, with the shortest history that shows it."""

    invariant: str
    message: str
    story: tuple[str, ...] = ()


class InvariantFinding:
    """What became of one invariant."""

    def __init__(self, invariant: str) -> None:
        self.invariant = invariant
        self.facts = 0
        self.broken = 0
        self.violations: list[Violation] = []

    def saw(self, count: int = 1) -> None:
        """Count facts that were looked at."""
        self.facts += count

    def expect(self, holds: bool, message: str, story: Iterable[str] = ()) -> None:
        """Count one fact, and report it if it breaks the invariant."""
        self.facts += 1
        if not holds:
            self.report(message, story)

    def report(self, message: str, story: Iterable[str] = ()) -> None:
        self.broken += 1
        if len(self.violations) < KEPT_VIOLATIONS:
            lines = tuple(story)[-LONGEST_STORY:]
            self.violations.append(
                Violation(invariant=self.invariant, message=message, story=lines)
            )
