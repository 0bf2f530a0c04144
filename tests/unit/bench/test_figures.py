import pytest

from bench.figures import Figure, Sense, admission_goal, percentile


def figure(value: float, *, sense: Sense = Sense.UNDER, goal: float | None = 10) -> Figure:
    return Figure(
        name="a", value=value, unit="ms", floor=4, floor_is="nothing", sense=sense, goal=goal
    )


@pytest.mark.parametrize(
    ("sense", "below", "equal", "above"),
    [
        (Sense.AT_LEAST, False, True, True),
        (Sense.UNDER, True, False, False),
        (Sense.AT_MOST, True, True, False),
    ],
)
def test_a_goal_is_met_on_its_own_side(sense: Sense, below: bool, equal: bool, above: bool) -> None:
    verdicts = [figure(value, sense=sense).met for value in (9.9, 10, 10.1)]

    assert verdicts == [below, equal, above]


def test_without_a_goal_there_is_no_verdict() -> None:
    assert figure(5, goal=None).met is None


def test_the_ratio_is_a_multiple_of_the_floor() -> None:
    assert figure(10).ratio == 2.5


@pytest.mark.parametrize("floor", [None, 0.0])
def test_without_a_floor_there_is_no_ratio(floor: float | None) -> None:
    bare = Figure(name="a", value=1, unit="s", floor=floor, floor_is="nothing")

    assert bare.ratio is None


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (1, 1), (50, 50), (50.5, 51), (99, 99), (100, 100)]
)
def test_a_percentile_is_one_of_the_values(percent: float, expected: float) -> None:
    values = [float(value) for value in range(100, 0, -1)]

    assert percentile(values, percent) == expected


def test_a_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


@pytest.mark.parametrize(("rate", "goal"), [(100, 500), (2000, 10_000), (5000, 10_000)])
def test_admissions_are_measured_against_the_disk_up_to_a_limit(rate: float, goal: float) -> None:
    assert admission_goal(rate) == goal
