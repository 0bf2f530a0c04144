"""A pool of lanes: how many run, for whom, and which are said to be ready."""

from collections import Counter, OrderedDict
from typing import NamedTuple

HINT_LIMIT = 10_000  # beyond this the ledger is asked instead
CROWD = 4  # lanes in no hurry that wait for places: then each lets others write first
KEPT_PART = 8  # one place in so many, at most, is kept: for agents that run nothing, for people


class Hint(NamedTuple):
    """A lane that is said to be ready."""

    session_key: str
    yields: bool = False  # it is one of many in no hurry: whoever writes meanwhile goes first


class Pool:
    """The places of one pool.

    The last of them are kept for agents that run nothing, one for each: an agent whose model hangs
    must not take every place from the others. Where people talk, as many, and one at least, are
    kept from lanes that are in no hurry: when thousands of sessions wake by themselves, or
    strangers have slow turns in as many, the operator finds a place at once.
    """

    def __init__(self, limit: int, agents: int, *, is_for_people: bool = False) -> None:
        self.limit = limit
        self.running = 0
        self._hints: OrderedDict[str, None] = OrderedDict()
        self._later: OrderedDict[str, None] = OrderedDict()  # those in no hurry
        self.must_scan = True
        self._agents = agents
        self._is_for_people = is_for_people
        self._of_agent: Counter[str] = Counter()
        self._has_held_back = False

    @property
    def free(self) -> int:
        return self.limit - self.running

    @property
    def takes_later(self) -> bool:
        """Whether lanes that are in no hurry get a place now."""
        if not self._is_for_people or self.limit == 1:
            return self.free > 0
        return self.free > max(1, self.limit // KEPT_PART)

    @property
    def has_hints(self) -> bool:
        return bool(self._hints or self._later)

    def hint(self, session_key: str, *, is_later: bool = False) -> None:
        hints = self._later if is_later else self._hints
        self._later.pop(session_key, None)  # it may be in a hurry by now
        if len(hints) >= HINT_LIMIT:
            hints.clear()
            self.must_scan = True
        else:
            hints[session_key] = None

    def next_hint(self) -> Hint | None:
        """Take the lane that should have the next place, or None: there is no lane or no place."""
        if self._hints and self.free > 0:
            return Hint(self._hints.popitem(last=False)[0])
        if self._later and not self._hints and self.takes_later:
            session_key, _ = self._later.popitem(last=False)
            return Hint(session_key, yields=len(self._later) >= CROWD)
        return None

    def hold_back(self) -> None:
        """Have lanes looked for again when a place is given back."""
        self._has_held_back = True

    def closed_to(self) -> list[str]:
        """Return the agents that get no place now, though there may be free ones."""
        idle = self._agents - len(self._of_agent)
        if self.free > min(idle, self.limit // KEPT_PART):
            return []
        self.hold_back()
        return list(self._of_agent)

    def take(self, agent_id: str) -> None:
        self.running += 1
        self._of_agent[agent_id] += 1

    def give_back(self, agent_id: str) -> None:
        self.running -= 1
        self._of_agent[agent_id] -= 1
        if not self._of_agent[agent_id]:
            del self._of_agent[agent_id]
        if self._has_held_back:
            self._has_held_back = False
            self.must_scan = True
