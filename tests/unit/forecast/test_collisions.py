"""Two sources that are due in one session within one assumed turn collide."""

from wakeful.forecast.account import colliding

TURN_MS = {"tick": 10, "heartbeat": 100}


def of(*dues: tuple[int, str]) -> list[str]:
    return colliding(dues, TURN_MS.__getitem__)


def test_another_source_within_a_turn_collides_with_it():
    assert of((0, "tick"), (9, "heartbeat")) == ["tick", "heartbeat"]


def test_what_comes_as_the_turn_ends_does_not():
    assert of((0, "tick"), (10, "heartbeat")) == []


def test_the_same_source_never_collides_with_itself():
    assert of((0, "tick"), (5, "tick")) == []


def test_each_due_counts_once_however_many_it_meets():
    assert of((0, "heartbeat"), (10, "tick"), (50, "tick"), (200, "tick")) == [
        "heartbeat",
        "tick",
        "tick",
    ]
