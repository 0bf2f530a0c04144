from dataclasses import replace
from pathlib import Path

import pytest

from bench.neighbours import Reading, reading, taken_by_others, too_busy
from bench.streams import Carried, figures

QUIET = Carried(
    value=200,
    floor=100,
    fits=180,
    floor_fits=110,
    share=66,
    lag_s=0.01,
    floor_lag_s=0.02,
    watched=150,
)


def test_what_we_used_ourselves_is_taken_by_nobody_else() -> None:
    before, after = Reading(at=10, all=100, own=5), Reading(at=20, all=118, own=15)

    assert taken_by_others(before, after) == pytest.approx(0.8)


def test_a_machine_that_tells_nothing_is_not_judged(tmp_path: Path) -> None:
    assert reading(tmp_path / "stat") is None


@pytest.mark.parametrize(
    ("others", "cores", "busy"), [(0.2, 2, False), (0.5, 2, True), (5, 8, False), (6.5, 8, True)]
)
def test_others_may_take_what_nobody_needs(others: float, cores: int, busy: bool) -> None:
    assert too_busy(others, cores, 2) is busy


def test_a_quiet_machine_judges_by_the_bare_streams_that_it_carried() -> None:
    met = [figure.met for figure in figures(replace(QUIET, value=59, lag_s=0.06), 0, 2)]

    assert met == [False, False, True, None]


def test_a_busy_machine_says_that_it_cannot_judge() -> None:
    streams, lag, by_cpu, _ = figures(replace(QUIET, value=59, lag_s=0.06), 1.2, 2)

    assert streams.met is None
    assert lag.met is None
    assert "others took 1.2 of 2 cores" in streams.doubt
    assert by_cpu.met is True


def test_a_busy_machine_takes_nothing_off_the_goal() -> None:
    robbed = replace(QUIET, floor=0)

    enough, too_few = figures(robbed, 0, 2)[0], figures(replace(robbed, value=65), 0, 2)[0]

    assert enough.goal == pytest.approx(66)
    assert enough.met is True
    assert too_few.met is None
