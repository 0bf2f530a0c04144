"""A sleep is as long as it was asked for, within bounds, and off the edges of prompt caches."""

import pytest

from wakeful.triggers.durations import duration
from wakeful.vocabulary.proactive import ProactiveRules

RULES = ProactiveRules()


@pytest.mark.parametrize(
    ("requested", "final"),
    [
        (1, 60_000),
        (60_000, 60_000),
        (270_000, 270_000),
        (270_001, 270_000),
        (734_999, 270_000),
        (735_000, 270_000),
        (735_001, 1_200_000),
        (1_199_999, 1_200_000),
        (1_200_000, 1_200_000),
        (7_000_000, 7_000_000),
        (86_400_001, 86_400_000),
        (2**62, 86_400_000),
    ],
)
def test_sleeps_end_before_a_cache_does_or_long_after(requested: int, final: int) -> None:
    assert duration(requested, RULES).final_ms == final


def test_a_sleep_is_never_longer_than_the_longest_idle_time() -> None:
    short = ProactiveRules(tick_interval_secs=60, max_idle_secs=900)

    assert duration(1_000_000, short).final_ms == 270_000
    assert duration(1_000_000, short).clamped_ms == 900_000


def test_without_regard_for_caches_a_sleep_is_only_clamped() -> None:
    plain = ProactiveRules(cache_aware_schedule=False)

    assert duration(700_000, plain).final_ms == 700_000
    assert not duration(700_000, plain).is_snapped
