"""The next tick is a pure function of session and instant, within its jitter."""

from hypothesis import given
from hypothesis import strategies as st

from wakeful.triggers.tick_times import next_tick
from wakeful.vocabulary.proactive import ProactiveRules

KEYS = st.text("abc:", min_size=1, max_size=20)
ENDS = st.integers(0, 2**41)


@given(KEYS, ENDS, st.integers(0, 100))
def test_a_tick_stays_within_its_jitter(key: str, end_ms: int, jitter: int) -> None:
    rules = ProactiveRules(tick_interval_secs=600, jitter_pct=jitter)

    wait = next_tick(key, end_ms, rules) - end_ms

    assert 600_000 * (1 - jitter / 100) - 1 <= wait <= 600_000 * (1 + jitter / 100) + 1
    assert next_tick(key, end_ms, rules) - end_ms == wait


@given(KEYS, ENDS)
def test_nobody_idles_longer_than_allowed(key: str, end_ms: int) -> None:
    rules = ProactiveRules(tick_interval_secs=600, jitter_pct=100, max_idle_secs=660)

    assert next_tick(key, end_ms, rules) - end_ms <= 660_000


def test_the_jitter_is_the_one_that_is_promised() -> None:
    rules = ProactiveRules(tick_interval_secs=600, jitter_pct=25)

    # The first 8 bytes of SHA-256("agent:main:main:0") as a share of 2^64.
    assert next_tick("agent:main:main", 0, rules) == 467_117
