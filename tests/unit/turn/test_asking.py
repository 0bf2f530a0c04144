"""When a model is asked again."""

from random import Random

import pytest

from wakeful.turn.asking import next_try
from wakeful.vocabulary.errors import Transient


class Unlucky(Random):
    """Always draws the longest wait."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_waiting_for_a_model_grows_and_ends():
    waits = [next_try(Transient("busy"), tries, 5, 0, Unlucky()) for tries in range(6)]

    assert waits == [1000, 2000, 4000, 8000, 16000, None]


def test_those_who_failed_together_do_not_come_back_together():
    random = Random(7)

    waits = {next_try(Transient("busy"), 3, 5, 0, random) for _ in range(100)}

    assert len(waits) > 50
    assert all(wait is not None and 4000 <= wait <= 8000 for wait in waits)


def test_nobody_is_asked_sooner_than_he_said():
    assert next_try(Transient("busy", retry_after_s=90), 0, 5, 0, Random(1)) == 90_000


@pytest.mark.parametrize("absurd", [1e9, float("inf")])
def test_an_absurd_wait_ends_after_a_day(absurd: float):
    later = next_try(Transient("busy", retry_after_s=absurd), 0, 5, 0, Random(1))

    assert later == 86_400_000
