"""An agent's configuration, as far as the ledgers and lanes must know it."""

from collections.abc import Mapping
from enum import StrEnum

from wakeful.vocabulary.approving import Permissions
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route


class ThinkingLevel(StrEnum):
    """How much a model thinks before it answers, from the least to the most."""

    OFF = "off"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class Limits(Record):
    """What one turn may use; each limit ends it with a sentence the user can read."""

    steps: int = 50
    tool_calls: int = 200
    tokens: int = 2_000_000
    money: float = 5.0
    wall_s: int = 600
    automation_wall_s: int = 1800
    attempts: int = 3  # crashes before a turn is poison
    retries: int = 5  # failed asks before a turn fails
    first_token_s: int = 300  # before a model begins to answer; some think in silence
    idle_s: int = 180  # between two signs of life of a model
    answer_s: int = 600  # for one whole answer


class ThrottleRules(Record):
    """How often an agent may speak to somebody who did not ask; None: as often as it likes."""

    per_hour: int | None = 6  # messages per route; more leave together, as one digest


# A provider keeps a prompt for five minutes: whoever wakes just after that pays for all of it, and
# might as well have slept for much longer.
CACHE_EDGES_MS = (270_000, 1_200_000)


class AgentConfig(Record):
    """What an agent is, apart from its voice and its hands."""

    id: str
    queue: QueueOverrides = NO_OVERRIDES
    limits: Limits = Limits()
    routes: tuple[Route, ...] = ()  # where it may send, beside the routes of its sessions
    thinking: ThinkingLevel | None = None  # None: as the model itself likes
    compaction: CompactionRules = CompactionRules()
    proactive: ProactiveRules = ProactiveRules()
    budget: BudgetRules = BudgetRules()
    quiet_hours: DailyHours | None = None  # only people, and what is urgent, wake it then
    throttle: ThrottleRules = ThrottleRules()
    cache_edges_ms: tuple[int, int] = CACHE_EDGES_MS  # of its model: no pause ends between them
    heartbeat: HeartbeatRules = HeartbeatRules()
    approvals: Permissions = {}  # which calls of tools people must approve; others are allowed


def checked_throttle(rules: ThrottleRules, field: str = "throttle") -> ThrottleRules:
    """Return the rules, or refuse a number with which nothing would ever leave."""
    if rules.per_hour is not None and rules.per_hour < 1:
        rule = f"must be at least 1, or null for any number, not {rules.per_hour}"
        raise InvalidInput(f"{field}.per_hour", rule)
    return rules


def parse_thinking(word: str, field: str = "thinking") -> ThinkingLevel:
    """Return the level that a word means."""
    try:
        return ThinkingLevel(word)
    except ValueError:
        known = ", ".join(ThinkingLevel)
        raise InvalidInput(field, f"must be one of {known}, not {word[:40]!r}") from None


class Agents:
    """The agents this runtime knows."""

    def __init__(self, configs: Mapping[str, AgentConfig]) -> None:
        self._configs = configs

    def follow(self, configs: Mapping[str, AgentConfig]) -> None:
        """Know these agents from now on."""
        self._configs = configs

    def find(self, agent_id: str) -> AgentConfig | None:
        return self._configs.get(agent_id)

    def get(self, agent_id: str, field: str = "session_key") -> AgentConfig:
        config = self._configs.get(agent_id)
        if config is None:
            known = ", ".join(sorted(self._configs))
            raise NotFound(field, f"no agent {agent_id[:64]!r} is configured (known: {known})")
        return config

    def queue_of(self, agent_id: str) -> QueueOverrides:
        """Return an agent's queue settings; none for one that is absent: its stimuli wait."""
        config = self._configs.get(agent_id)
        return NO_OVERRIDES if config is None else config.queue

    def ids(self) -> list[str]:
        return sorted(self._configs)

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._configs
