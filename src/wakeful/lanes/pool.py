"""A pool of lanes: how many run, for whom, and which are said to be ready."""

from collections import Counter, OrderedDict

HINT_LIMIT = 10_000  # beyond this the ledger is asked instead
KEPT_PART = 8  # one place in so many, at most, is kept for agents that run nothing


class Pool:
    """The places of one pool.

    The last of them are kept for agents that run nothing, one for each: an agent whose model hangs
    must not take every place from the others.
    """

    def __init__(self, limit: int, agents: int) -> None:
        self.limit = limit
        self.running = 0
        self.hints: OrderedDict[str, None] = OrderedDict()
        self.must_scan = True
        self._agents = agents
        self._of_agent: Counter[str] = Counter()
        self._has_held_back = False

    @property
    def free(self) -> int:
        return self.limit - self.running

    def hint(self, session_key: str) -> None:
        if len(self.hints) >= HINT_LIMIT:
            self.hints.clear()
            self.must_scan = True
        else:
            self.hints[session_key] = None

    def closed_to(self) -> list[str]:
        """Return the agents that get no place now, though there may be free ones."""
        idle = self._agents - len(self._of_agent)
        if self.free > min(idle, self.limit // KEPT_PART):
            return []
        self._has_held_back = True  # their lanes are looked for again when a place is given back
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
