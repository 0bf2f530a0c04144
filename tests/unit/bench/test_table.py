import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.figures import Figure, Sense
from bench.table import number, save, table

FAST = Figure(
    name="turns",
    value=1234.5678,
    unit="/s",
    floor=50_000,
    floor_is="a bare loop",
    sense=Sense.AT_LEAST,
    goal=500,
)
SLOW = Figure(name="latency.p99", value=30.25, unit="ms", floor=1.5, floor_is="a commit", goal=25)
PLAIN = Figure(name="import", value=80, unit="ms", floor=None, floor_is="")


def test_a_missed_goal_is_seen_at_a_glance() -> None:
    verdicts = [line.split()[-3:] for line in table([FAST, SLOW]).splitlines()[1:]]

    assert verdicts == [["a", "bare", "loop"], ["NO", "a", "commit"]]


def test_a_figure_without_a_goal_says_so() -> None:
    assert table([PLAIN]).splitlines()[1].split()[-2:] == ["none", "-"]


def test_a_goal_that_nobody_can_judge_here_says_why() -> None:
    line = table([replace(SLOW, doubt="too busy")]).splitlines()[1]

    assert line.split()[-5:] == ["?", "a", "commit;", "too", "busy"]


def test_the_columns_of_a_table_are_aligned() -> None:
    lines = table([FAST, SLOW, PLAIN]).splitlines()

    assert len({line.index("/s") for line in lines if "/s" in line}) == 1
    assert lines[0].index("unit") == lines[1].index("/s") == lines[2].index("ms")


def test_the_file_has_one_object_per_figure(tmp_path: Path) -> None:
    save([FAST, SLOW, PLAIN], tmp_path / "results.json")

    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert rows[0] == {
        "name": "turns",
        "value": 1234.6,
        "unit": "/s",
        "floor": 50_000,
        "ratio": 0.024691,
        "goal": 500,
        "met": True,
    }
    assert [row["met"] for row in rows] == [True, False, None]
    assert rows[2]["ratio"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (3, "3"),
        (0.01964, "0.0196"),
        (17.34, "17.3"),
        (99.96, "100"),
        (10_491.2, "10,491"),
    ],
)
def test_a_number_keeps_the_digits_that_count(value: float | None, text: str) -> None:
    assert number(value) == text
