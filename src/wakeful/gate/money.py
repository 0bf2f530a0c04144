"""Money: what a question may cost, and how long an answer may be for what is left.

Money is counted in whole billionths of a dollar, so that what is set aside and given back adds up.
"""

from collections.abc import Sequence

from wakeful.models.prices import MILLION, Price
from wakeful.models.tariffs import Tariff
from wakeful.vocabulary.record import Record

NANO = 1_000_000_000
LEAST_OUTPUT = 1_024  # tokens; for an answer that must be shorter nobody is asked
USUAL_OUTPUT = 8_192  # tokens that one answer may have, whatever part of the money that is
SHARE = 4  # beyond that, no question takes more than this part of what is left


class Grant(Record):
    """What is set aside for a question."""

    reserved: int = 0  # billionths of a dollar
    max_tokens: int | None = None  # of the answer; None: as many as the model likes


def nano(dollars: float) -> int:
    return round(dollars * NANO)


def dollars(nano: int) -> float:
    return nano / NANO


def least_cost(tariffs: Sequence[Tariff], read: int) -> int:
    """Return what the shortest answer worth asking for costs, from the dearest of the models."""
    return cost(tariffs, read, LEAST_OUTPUT)


def cost(tariffs: Sequence[Tariff], read: int, written: int) -> int:
    """Return what a question costs at most, whoever of the models answers it."""
    return max((_cost(tariff, read, written) for tariff in tariffs), default=0)


def wanted(tariffs: Sequence[Tariff], read: int, cap: int | None, most: int | None) -> Grant:
    """Return what to set aside for a question while there is enough money.

    `most` is how long the answer may be for other reasons. An answer beyond the usual length may
    take no more than a part of the cap, so that others need not wait for its end.
    """
    largest = _largest(tariffs)
    bounds = [bound for bound in (most, largest) if bound is not None]
    if not _is_paid_by_length(tariffs, read):
        return Grant(reserved=cost(tariffs, read, 0), max_tokens=min(bounds, default=None))
    if cap is not None:
        # Not from what was read: a limit that changed with each question would break its cache.
        share = _tokens(tariffs, 0, cap // SHARE)
        bounds += [] if share is None else [max(share, USUAL_OUTPUT)]
    length = min(bounds, default=USUAL_OUTPUT)
    return Grant(reserved=cost(tariffs, read, length), max_tokens=length)


def affordable(tariffs: Sequence[Tariff], read: int, want: Grant, left: int) -> Grant | None:
    """Return what to set aside of the last of the money: a short answer is cut, not refused.

    None if not even the shortest answer worth asking for can be paid.
    """
    if want.reserved <= left:
        return want
    if want.max_tokens is None or not _is_paid_by_length(tariffs, read):
        return None
    paid = _tokens(tariffs, read, left)
    length = want.max_tokens if paid is None else min(want.max_tokens, paid)
    if length < min(LEAST_OUTPUT, want.max_tokens):
        return None
    return Grant(reserved=cost(tariffs, read, length), max_tokens=length)


def broken_off(tariffs: Sequence[Tariff], grant: Grant, seen: int) -> int:
    """Return what an answer is taken to cost that broke off after so many tokens were seen.

    It is never taken for more than what was set aside.
    """
    if grant.max_tokens is None:
        return grant.reserved
    written = min(grant.max_tokens, seen + LEAST_OUTPUT)
    unwritten = cost(tariffs, 0, grant.max_tokens) - cost(tariffs, 0, written)
    return max(0, grant.reserved - unwritten)


def _largest(tariffs: Sequence[Tariff]) -> int | None:
    """Return how long an answer can be at most; None if one of the models may say any amount."""
    known = [tariff.max_output for tariff in tariffs]
    return None if None in known else max((most for most in known if most), default=None)


def _is_paid_by_length(tariffs: Sequence[Tariff], read: int) -> bool:
    return any(_rate(tariff, read) for tariff in tariffs)


def _tokens(tariffs: Sequence[Tariff], read: int, money: int) -> int | None:
    """Return how many tokens an answer may have for an amount, whoever gives it; None: any."""
    found = [
        (money - _cost(tariff, read, 0)) * MILLION // (rate * NANO)
        for tariff in tariffs
        if (rate := _rate(tariff, read)) and not _is_whole_paid(tariff, read, money)
    ]
    if not found:
        return None
    length = max(0, int(min(found)))
    return length - 1 if length and cost(tariffs, read, length) > money else length


def _is_whole_paid(tariff: Tariff, read: int, money: int) -> bool:
    """Tell whether the longest answer that a model gives costs no more than an amount."""
    return tariff.max_output is not None and _cost(tariff, read, tariff.max_output) <= money


def _cost(tariff: Tariff, read: int, written: int) -> int:
    price = tariff.price
    if price is None:
        return 0
    heard = read * _dearest_input(price, read)
    said = min(written, tariff.max_output or written) * price.output.at(read)
    # Rounded up: what is set aside is never less than what it costs.
    return -int(-(heard + said) * NANO // MILLION)


def _dearest_input(price: Price, read: int) -> float:
    """Return what a token costs that is read, also where it is kept for the next time."""
    kept = price.cache_write
    return max(price.input.at(read), 0.0 if kept is None else kept.at(read))


def _rate(tariff: Tariff, read: int) -> float:
    return 0.0 if tariff.price is None else tariff.price.output.at(read)
