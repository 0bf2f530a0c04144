"""Who is charged with an unclean stop, over any number of lives."""

from dataclasses import dataclass
from itertools import compress

from hypothesis import given
from hypothesis import strategies as st

from wakeful.lanes.poison import is_suspect, stops_after
from wakeful.turns.turns import SUSPECT_STOPS

LIVES = 60  # more than any of these crash loops lasts


@dataclass
class Open:
    """One open turn: what the ledger knows of it, and what it is."""

    is_poison: bool
    limit: int
    stops: int = 0
    is_running: bool = False
    is_done: bool = False
    is_given_up: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.is_done or self.is_given_up)

    @property
    def attempts(self) -> int:
        return self.stops + self.is_running


def begin(turns: list[Open]) -> Open | None:
    """Let everything run that may; return the suspect that runs."""
    running: Open | None = None
    for turn in filter(lambda turn: turn.is_open, turns):
        if turn.stops >= turn.limit:
            turn.is_given_up = True
        elif not is_suspect(turn.stops, turn.limit):
            turn.is_running = True
        elif running is None:
            turn.is_running = True
            running = turn
    return running


def stop(turns: list[Open], suspect: Open | None) -> None:
    """Let the process stop uncleanly and the next one find out."""
    for turn in filter(lambda turn: turn.is_running, turns):
        beside = suspect is not None and turn is not suspect
        turn.stops = stops_after(turn.attempts, turn.limit, beside_suspect=beside)
        turn.is_running = False


def finish(turns: list[Open]) -> None:
    for turn in turns:
        if turn.is_running:
            turn.is_running, turn.is_done = False, True


def live(turns: list[Open]) -> bool:
    """Live once: whatever kills does so while everything else is still thinking."""
    suspect = begin(turns)
    if any(turn.is_poison and turn.is_running for turn in turns):
        stop(turns, suspect)
    else:
        finish(turns)
    return any(turn.is_open for turn in turns)


def opened(*, limits: st.SearchStrategy[int]) -> st.SearchStrategy[list[Open]]:
    return st.lists(st.builds(Open, is_poison=st.booleans(), limit=limits), max_size=12)


@given(opened(limits=st.integers(SUSPECT_STOPS + 1, 6)))
def test_what_kills_is_given_up_and_takes_nobody_with_it(turns: list[Open]):
    lives = 0
    while live(turns):
        lives += 1
        assert lives < LIVES

    assert all(turn.is_given_up == turn.is_poison for turn in turns)


@given(opened(limits=st.integers(SUSPECT_STOPS + 1, 6)), st.integers(1, 12))
def test_a_newcomer_that_kills_takes_two_suspects_with_it_at_most(turns: list[Open], waiting: int):
    suspects = [Open(is_poison=False, limit=3, stops=SUSPECT_STOPS) for _ in range(waiting)]
    newcomers = [Open(is_poison=True, limit=3)]
    everybody = suspects + newcomers + [turn for turn in turns if not turn.is_poison]
    while live(everybody):
        pass

    assert newcomers[0].is_given_up
    assert sum(turn.is_given_up for turn in everybody) <= 1 + SUSPECT_STOPS


@given(opened(limits=st.integers(1, 6)), st.data())
def test_nobody_is_given_up_for_what_happened_beside_a_suspect(
    turns: list[Open], data: st.DataObject
):
    beside: list[Open] = []
    for _ in range(data.draw(st.integers(1, 10))):
        suspect = begin(turns)
        assert not any(turn.is_given_up for turn in beside)

        is_beside = [turn.is_running and turn is not suspect for turn in turns]
        beside = [] if suspect is None else list(compress(turns, is_beside))
        stop(turns, suspect)


@given(st.integers(1, 200), st.integers(1, 100))
def test_without_a_suspect_everybody_is_charged(attempts: int, limit: int):
    assert stops_after(attempts, limit, beside_suspect=False) == attempts


@given(st.integers(1, 200), st.integers(1, 100))
def test_beside_a_suspect_nobody_is_charged_more_than_once_and_none_becomes_poison(
    attempts: int, limit: int
):
    stops = stops_after(attempts, limit, beside_suspect=True)

    assert stops <= attempts
    assert stops < limit
