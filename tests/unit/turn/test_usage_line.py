"""The line that tells what a turn used."""

import pytest
from msgspec.structs import replace

from wakeful.turn.usage_line import TurnUsage, line_of

USED = TurnUsage(read=800, written=400, cost=0.02, took_ms=4_000, model="openai:my-model")


def test_tokens_alone_or_all_of_it():
    assert line_of(USED, "tokens") == "tokens 1.2k (in 800 / out 400)"
    assert line_of(USED, "full") == (
        "tokens 1.2k (in 800 / out 400) • est $0.02 • 4 s • openai:my-model"
    )


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (12_345, "12.3k"),
        (999_400, "999.4k"),
        (999_960, "1m"),
        (2_500_000, "2.5m"),
    ],
)
def test_large_numbers_are_short(read: int, told: str):
    assert (
        line_of(replace(USED, read=read, written=0), "tokens")
        == f"tokens {told} (in {told} / out 0)"
    )


@pytest.mark.parametrize(
    ("cost", "told"),
    [(None, "unpriced"), (0.0, "est $0.00"), (0.0003, "est $0.0003"), (1.234, "est $1.23")],
)
def test_what_nobody_knows_is_not_nothing(cost: float | None, told: str):
    assert f" • {told} • " in line_of(replace(USED, cost=cost), "full")


@pytest.mark.parametrize(
    ("ms", "told"), [(-5, "0 s"), (400, "0 s"), (59_400, "59 s"), (75_000, "1m 15s")]
)
def test_time_is_told_in_seconds_and_then_in_larger_units(ms: int, told: str):
    assert f" • {told} • " in line_of(replace(USED, took_ms=ms), "full")
