"""How an agent looks after things by itself: how often, where, and what it may leave unsaid."""

from typing import Literal

from wakeful.vocabulary import hours, spans
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey

SHORTEST_MS = 60_000
LONGEST_MS = 366 * 86_400_000


class HeartbeatRules(Record):
    """One block of settings."""

    every: str | int = "30m"  # 0: never
    prompt: str | None = None  # None: the built-in one
    target: Literal["last", "none"] | Route = "last"
    session: str = "main"
    model: str | None = None  # None: the session's
    ack_max_chars: int = 300
    include_reasoning: bool = False
    light_context: bool = True
    active_hours: DailyHours | None = None

    @property
    def every_ms(self) -> int:
        """How often it beats; 0: never."""
        return 0 if self.every in (0, "0") else spans.parse_span(str(self.every), "every")

    def session_of(self, agent_id: str) -> SessionKey:
        """Return the session in which an agent's heart beats."""
        return keys.canonical(self.session, agent_id)


def checked(rules: HeartbeatRules, agent_id: str, field: str = "heartbeat") -> HeartbeatRules:
    """Return the rules, or refuse what cannot be meant."""
    if isinstance(rules.every, int) and rules.every != 0:
        rule = f"must have a unit, such as {rules.every}m or {rules.every}h; 0 turns it off"
        raise InvalidInput(f"{field}.every", rule)
    if rules.every not in (0, "0"):
        every_ms = spans.parse_span(str(rules.every), f"{field}.every")
        if not SHORTEST_MS <= every_ms <= LONGEST_MS:
            rule = f"must be from 1m to 366d, or 0, which turns it off, not {rules.every!r}"
            raise InvalidInput(f"{field}.every", rule)
    if rules.prompt is not None and not rules.prompt.strip():
        raise InvalidInput(f"{field}.prompt", "must not be empty")
    if keys.agent_of(keys.canonical(rules.session, agent_id, f"{field}.session")) != agent_id:
        raise InvalidInput(f"{field}.session", f"must be a session of the agent {agent_id!r}")
    if rules.active_hours is not None:
        hours.checked(rules.active_hours, f"{field}.active_hours")
    return rules
