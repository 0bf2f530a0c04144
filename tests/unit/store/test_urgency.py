import asyncio
import sys
from collections.abc import Iterator

import pytest

from wakeful.store import urgency
from wakeful.store.urgency import CALM_LOOKS, URGENT_INTERVAL_S, Urgency


class Looks:
    """Stands in for the timers of an event loop: each look is made by hand."""

    def __init__(self) -> None:
        self.watch = Urgency(self)  # pyright: ignore[reportArgumentType]
        self.ordered = 0

    def call_later(self, seconds: float, act: object) -> None:
        self.ordered += 1

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.watch._look()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(autouse=True)
def usual() -> Iterator[float]:
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def interval_is_short() -> bool:
    return sys.getswitchinterval() == pytest.approx(URGENT_INTERVAL_S)


def test_waiting_without_an_answer_is_urgent() -> None:
    looks = Looks()

    looks.watch.asked()
    looks.look()

    assert interval_is_short()


def test_waiting_with_answers_is_not() -> None:
    looks = Looks()

    for _ in range(5):
        looks.watch.asked()
        looks.watch.asked()
        looks.watch.answered()
        looks.look()

    assert not interval_is_short()


def test_urgency_ends_after_some_time_with_answers(usual: float) -> None:
    looks = Looks()
    looks.watch.asked()
    looks.look()
    looks.watch.answered()

    looks.look(CALM_LOOKS - 1)
    was_short = interval_is_short()
    looks.look()

    assert was_short
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_store_that_is_closed_leaves_the_interval_as_it_was(usual: float) -> None:
    looks = Looks()
    looks.watch.asked()
    looks.look()

    looks.watch.end()
    looks.look()

    assert sys.getswitchinterval() == pytest.approx(usual)


def test_nobody_looks_while_nobody_waits() -> None:
    looks = Looks()
    looks.watch.asked()
    looks.watch.answered()
    looks.look()

    assert looks.ordered == 1


async def test_one_timer_serves_any_number_of_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(urgency, "PATIENCE_S", 60.0)
    watch = Urgency(asyncio.get_running_loop())

    for _ in range(100):
        watch.asked()
    watch.answered(100)

    assert watch._is_watching  # pyright: ignore[reportPrivateUsage]
