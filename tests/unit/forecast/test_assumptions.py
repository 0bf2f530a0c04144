"""What turns are taken to be."""

from wakeful.forecast.assumptions import ESTIMATE, Assumptions, high, learnt
from wakeful.vocabulary.forecast import Basis


def rows(count: int, kind: str = "tick", source: str = "proactive") -> list[tuple[object, ...]]:
    return [
        ("main", kind, source, 1_000 * number, 10 * number, number)
        for number in range(1, count + 1)
    ]


def test_five_turns_are_enough_to_learn_from_and_four_are_not():
    assert learnt(rows(4)) == {}
    assert learnt(rows(5)).keys() == {("main", "tick")}


def test_the_middle_one_is_usual_and_one_of_ten_is_dearer():
    (usual,) = learnt(rows(11)).values()

    assert (usual.turn_ms, usual.input, usual.output) == (6_000, 60, 6)
    assert (usual.input_p90, usual.output_p90) == (100, 10)
    assert usual.basis is Basis.HISTORY


def test_sources_are_learnt_apart():
    found = learnt([*rows(5), *rows(5, "automation.bound", "cron:mail"), *rows(4, "heartbeat")])

    assert found.keys() == {("main", "tick"), ("main", "cron:mail")}


def test_of_whom_nothing_is_known_is_estimated():
    assumptions = Assumptions(learnt(rows(5)))

    assert assumptions.of("main", "tick") != ESTIMATE
    assert assumptions.of("main", "wake") == assumptions.of("other", "tick") == ESTIMATE


def test_nine_of_ten_do_not_exceed_the_higher_one():
    assert [high([5]), high([1, 2]), high(range(1, 11)), high(range(1, 21))] == [5, 2, 10, 19]
