"""An agent's configuration, as far as the ledgers and lanes must know it."""

from collections.abc import Mapping

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route


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


class AgentConfig(Record):
    """What an agent is, apart from its voice and its hands."""

    id: str
    queue: QueueOverrides = NO_OVERRIDES
    limits: Limits = Limits()
    routes: tuple[Route, ...] = ()  # where it may send, beside the routes of its sessions


class Agents:
    """The agents this runtime knows."""

    def __init__(self, configs: Mapping[str, AgentConfig]) -> None:
        self._configs = configs

    def get(self, agent_id: str, field: str = "session_key") -> AgentConfig:
        config = self._configs.get(agent_id)
        if config is None:
            known = ", ".join(sorted(self._configs))
            raise InvalidInput(field, f"no agent {agent_id!r} is configured (known: {known})")
        return config

    def ids(self) -> list[str]:
        return sorted(self._configs)

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._configs
