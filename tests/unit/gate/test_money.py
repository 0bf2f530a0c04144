"""What a question may cost, and how long an answer may be for what is left."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.gate.money import (
    LEAST_OUTPUT,
    NANO,
    USUAL_OUTPUT,
    Grant,
    affordable,
    broken_off,
    cost,
    least_cost,
    nano,
    wanted,
)
from wakeful.models.prices import Price, Rate
from wakeful.models.tariffs import FREE, UNPRICED, Tariff


def tariff(read: float, written: float, most: int | None = None) -> Tariff:
    price = Price(input=Rate(base=read), output=Rate(base=written))
    return Tariff(price=price, max_output=most)


CHEAP, DEAR = tariff(1.0, 4.0), tariff(3.0, 15.0)

rates = st.floats(0.01, 200.0).map(lambda rate: round(rate, 4))
tariffs = st.lists(
    st.builds(tariff, rates, rates, st.none() | st.integers(1, 200_000)), min_size=1, max_size=4
)


def test_a_question_costs_what_the_dearest_of_the_models_would_take():
    assert cost([CHEAP, DEAR], 1_000_000, 0) == 3 * NANO
    assert cost([CHEAP, DEAR], 0, 1_000_000) == 15 * NANO


def test_what_is_kept_in_a_cache_counts_as_what_that_costs():
    cached = Price(input=Rate(base=1.0), cache_write=Rate(base=1.25))

    assert cost([Tariff(price=cached)], 1_000_000, 0) == nano(1.25)


def test_a_free_model_and_one_without_a_price_reserve_nothing():
    assert wanted([FREE], 5_000, NANO, None) == Grant(reserved=0, max_tokens=None)
    assert wanted([UNPRICED], 5_000, NANO, 700) == Grant(reserved=0, max_tokens=700)


def test_an_answer_may_be_as_long_as_a_part_of_the_cap_pays():
    long = tariff(0.0, 10.0, 128_000)

    assert wanted([long], 0, nano(1.0), None).max_tokens == 25_000
    assert wanted([long], 0, nano(0.01), None).max_tokens == USUAL_OUTPUT
    assert wanted([long], 0, None, None).max_tokens == 128_000
    assert wanted([long], 0, nano(1.0), 500).max_tokens == 500


def test_the_last_of_the_money_buys_a_short_answer():
    want = wanted([DEAR], 100, nano(1.0), None)

    cut = affordable([DEAR], 100, want, nano(0.05))

    assert cut is not None
    assert cut.max_tokens == 3_313
    assert cut.reserved <= nano(0.05)


def test_an_answer_too_short_to_be_worth_asking_for_is_not_asked_for():
    want = wanted([DEAR], 0, nano(1.0), None)

    assert affordable([DEAR], 0, want, least_cost([DEAR], 0) - 1) is None
    assert affordable([DEAR], 0, want, least_cost([DEAR], 0)) is not None


def test_a_dear_model_that_says_little_shortens_nobody_elses_answer():
    chain = [tariff(1.0, 1.0), tariff(1.0, 2.0, most=1)]
    want = wanted(chain, 0, nano(1.0), None)

    grant = affordable(chain, 0, want, 2_024_001)

    assert grant == Grant(reserved=2_024_000, max_tokens=2_024)


@given(tariffs, st.integers(0, 500_000), st.integers(0, 10 * NANO))
def test_no_more_is_set_aside_than_there_is(chain: list[Tariff], read: int, left: int):
    want = wanted(chain, read, nano(1.0), None)

    grant = affordable(chain, read, want, left)

    if grant is not None:
        assert grant.reserved <= left
        assert grant.reserved == cost(chain, read, grant.max_tokens or 0)
    else:
        assert cost(chain, read, min(LEAST_OUTPUT, want.max_tokens or 0)) >= left - 1_000_000


@given(tariffs, st.integers(0, 500_000), st.integers(0, 300_000))
def test_an_answer_that_broke_off_costs_no_more_than_was_set_aside(
    chain: list[Tariff], read: int, seen: int
):
    grant = wanted(chain, read, nano(1.0), None)

    assert 0 <= broken_off(chain, grant, seen) <= grant.reserved
