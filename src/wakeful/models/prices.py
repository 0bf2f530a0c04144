"""What an answer costs: a table that is written from `genai-prices` when a release is made."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from wakeful.models.windows import NOTHING_STATED, ModelSettings
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record

MILLION = 1_000_000


class Rate(Record):
    """Dollars for each million tokens; more of them may have another price, for all."""

    base: float = 0.0
    tiers: Sequence[tuple[int, float]] = ()  # from so many tokens of input on

    def at(self, read: int) -> float:
        """Return the price where so many tokens were read."""
        price = self.base
        for start, dearer in self.tiers:
            if read > start:
                price = dearer
        return price


class Price(Record):
    """What a model's tokens cost."""

    input: Rate = Rate()
    output: Rate = Rate()
    cache_read: Rate | None = None  # None: as much as any other input
    cache_write: Rate | None = None

    def cost(self, usage: Usage) -> float:
        """Return what one answer costs, in dollars."""
        read = usage.input
        plain = max(0, read - usage.cache_read - usage.cache_write)
        total = (
            plain * self.input.at(read)
            + usage.cache_read * (self.cache_read or self.input).at(read)
            + usage.cache_write * (self.cache_write or self.input).at(read)
            + usage.output * self.output.at(read)
        )
        return total / MILLION


_Rate = float | tuple[float, list[tuple[int, float]]] | None
_Row = tuple[list[str], str | None, tuple[_Rate, _Rate, _Rate, _Rate]]


def price_of(provider: str, model: str, stated: ModelSettings = NOTHING_STATED) -> Price | None:
    """Return what a model of a provider costs, None if nobody knows.

    The operator's word counts, and the table's for each price that he leaves out.
    """
    listed = _listed(provider, model)
    if listed is None and (stated.input is None or stated.output is None):
        return None
    known = listed or Price()
    return Price(
        input=_rate(stated.input) or known.input,
        output=_rate(stated.output) or known.output,
        cache_read=_rate(stated.cache_read) or known.cache_read,
        cache_write=_rate(stated.cache_write) or known.cache_write,
    )


def is_priced(stated: ModelSettings) -> bool:
    """Tell whether an operator said anything about a model's prices."""
    prices = (stated.input, stated.output, stated.cache_read, stated.cache_write)
    return any(price is not None for price in prices)


def _listed(provider: str, model: str) -> Price | None:
    name = model.lower()
    for names, pattern, prices in _table().get(provider, ()):
        if name in names or (pattern is not None and re.search(pattern, name)):
            rate, written, cached, into_cache = map(_rate, prices)
            return Price(
                input=rate or Rate(),
                output=written or Rate(),
                cache_read=cached,
                cache_write=into_cache,
            )
    return None


def _rate(price: _Rate) -> Rate | None:
    match price:
        case None:
            return None
        case (base, tiers):
            return Rate(base=base, tiers=tiers)
        case _:
            return Rate(base=price)


@cache
def _table() -> dict[str, list[_Row]]:
    raw = files("wakeful.models").joinpath("prices.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, list[_Row]])
