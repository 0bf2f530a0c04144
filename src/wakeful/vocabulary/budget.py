"""What an agent may spend in a day, and by whom it may be spent."""

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record


class DayLimits(Record):
    """What one origin or source may use in a day; None: as much as its agent may."""

    money_per_day: float | None = None  # US dollars
    turns_per_day: int | None = None


class BudgetRules(Record):
    """What an agent may use in a day of the user's zone; None: any amount.

    A source from outside that `sources` does not name has a share of both.
    """

    money_per_day: float | None = 1.0  # US dollars
    turns_per_day: int | None = 300  # what people say themselves does not count
    money_per_chain: float | None = 1.0  # of everything with one first cause
    reserve_for_people: float = 0.2  # the part of the money that only people may spend
    share_of_a_source: float = 0.5  # of turns and money: the most for each one from outside
    origins: dict[str, DayLimits] = {}
    sources: dict[str, DayLimits] = {}


def checked(rules: BudgetRules, field: str = "budget") -> BudgetRules:
    """Return the rules, or refuse an origin that there is not."""
    for name in rules.origins:
        if name not in list(Origin):
            known = ", ".join(Origin)
            raise InvalidInput(f"{field}.origins.{name}", f"must be one of {known}")
    return rules
