import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.lanes.pool import CROWD, KEPT_PART, Pool

AGENTS = ["a", "b", "c", "d"]


def filled(pool: Pool, agent_id: str) -> int:
    """Let an agent take every place that it gets; return how many those are."""
    count = 0
    while pool.free > 0 and agent_id not in pool.closed_to():
        pool.take(agent_id)
        count += 1
    return count


def test_an_agent_alone_has_every_place():
    assert filled(Pool(64, 1), "a") == 64


def test_the_last_places_are_kept_for_agents_that_run_nothing():
    pool = Pool(64, 3)

    assert [filled(pool, agent) for agent in ("a", "b", "c")] == [62, 1, 1]


def test_however_many_agents_there_are_most_places_are_for_whoever_comes():
    assert filled(Pool(64, 1000), "a") == 64 - 64 // KEPT_PART


def test_a_small_pool_keeps_nothing():
    assert filled(Pool(KEPT_PART - 1, 5), "a") == KEPT_PART - 1


def started(pool: Pool) -> list[str]:
    """Give places to lanes for as long as there are both."""
    found: list[str] = []
    while (hint := pool.next_hint()) is not None:
        pool.take("a")
        found.append(hint.session_key)
    return found


def test_lanes_in_no_hurry_leave_some_places_to_people():
    pool = Pool(16, 1, is_for_people=True)
    for number in range(20):
        pool.hint(f"later {number}", is_later=True)
    woken = started(pool)
    pool.hint("urgent")
    urgent = started(pool)
    pool.give_back("a")
    pool.give_back("a")

    assert woken == [f"later {number}" for number in range(16 - 16 // KEPT_PART)]
    assert urgent == ["urgent"]
    assert started(pool) == ["later 14"]
    assert pool.has_hints


@pytest.mark.parametrize(("places", "taken"), [(1, 1), (2, 1), (7, 6), (8, 7)])
def test_a_small_pool_keeps_one_place_for_people(places: int, taken: int):
    pool = Pool(places, 1, is_for_people=True)
    for number in range(20):
        pool.hint(f"later {number}", is_later=True)

    assert len(started(pool)) == taken


def test_a_lane_that_is_in_a_hurry_by_now_goes_first_and_once():
    pool = Pool(16, 1, is_for_people=True)
    for name in ("first", "second", "third"):
        pool.hint(name, is_later=True)
    pool.hint("second")

    assert started(pool) == ["second", "first", "third"]


def test_where_nobody_talks_lanes_in_no_hurry_have_every_place():
    pool = Pool(16, 1)
    for number in range(20):
        pool.hint(f"later {number}", is_later=True)

    assert len(started(pool)) == 16


def test_a_place_that_is_given_back_is_looked_for_by_whoever_was_held_back():
    pool = Pool(8, 2)
    filled(pool, "a")
    pool.must_scan = False
    pool.give_back("a")

    assert pool.must_scan
    assert "a" not in pool.closed_to()


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(AGENTS)), max_size=200))
def test_an_agent_that_runs_nothing_finds_a_place(steps: list[tuple[bool, str]]):
    pool = Pool(KEPT_PART * len(AGENTS), len(AGENTS))
    running = dict.fromkeys(AGENTS, 0)
    for is_taken, agent in steps:
        if is_taken and pool.free > 0 and agent not in pool.closed_to():
            pool.take(agent)
            running[agent] += 1
        elif not is_taken and running[agent]:
            pool.give_back(agent)
            running[agent] -= 1
        idle = [agent for agent in AGENTS if not running[agent]]
        assert pool.running == sum(running.values())
        assert all(pool.free > 0 and agent not in pool.closed_to() for agent in idle)


def test_one_of_many_in_no_hurry_lets_others_write_first():
    pool = Pool(100, 1)
    pool.hint("urgent")
    for number in range(CROWD + 1):
        pool.hint(f"later {number}", is_later=True)

    found = [pool.next_hint() for _ in range(CROWD + 2)]

    assert [hint.yields for hint in found if hint] == [False, True, *[False] * CROWD]
