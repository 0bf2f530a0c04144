"""Identifiers are unique, sort by time, and cannot be guessed from one another."""

import random

from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.ids import Ids


def test_ids_are_unique_and_sort_in_the_order_they_were_made():
    ids = Ids(ManualClock())

    made = [ids.new("x") for _ in range(70_000)]

    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_keep_their_order_when_the_clock_goes_back():
    clock = ManualClock()
    ids = Ids(clock)
    first = ids.stimulus()
    clock.jump_to(clock.now() - 10_000)

    assert ids.stimulus() > first


def test_a_given_source_of_chance_makes_the_same_ids():
    made = [Ids(ManualClock(), random.Random(7)).turn() for _ in range(2)]

    assert made[0] == made[1]


def test_ids_of_two_processes_differ_in_the_same_millisecond():
    clock = ManualClock()

    assert Ids(clock).entry() != Ids(clock).entry()


def test_ids_follow_those_of_an_earlier_process_though_the_clock_went_back():
    clock = ManualClock()
    earlier = Ids(clock).new("dl")
    clock.jump_to(clock.now() - 10_000)
    ids = Ids(clock)
    ids.follow(earlier)
    made = [ids.new("dl") for _ in range(3)]

    assert [earlier, *made] == sorted([earlier, *made])
