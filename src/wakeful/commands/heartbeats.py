"""The command about an agent's heartbeat."""

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.triggers.heartbeat_skips import AskedBy
from wakeful.views.heartbeats import HeartbeatStatus
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import format_span
from wakeful.vocabulary.stimulus import OPERATOR, Outcome

_WORDS = ("on", "off", "now")


async def heartbeat(services: Services, caller: Caller, rest: str) -> Deed:
    agent_id, word = keys.agent_of(caller.session_key), rest.strip().lower()
    if not word:
        rules = services.views.agents.card(agent_id).config.heartbeat
        found = await services.views.heartbeats.of(agent_id, rules)
        return saying(sentence(found, services.views.clock.now()))
    if word not in _WORDS:
        raise InvalidInput("action", f"must be on, off or now, not {word[:40]!r}")

    def act(tx: Tx) -> Said:
        if word == "now":
            return _asked(services, tx, agent_id)
        services.heartbeats.switch_in(tx, agent_id, is_on=word == "on")
        return Said(text=f"The heartbeat is {word}.")

    return Deed(act=act, locks=services.heartbeats.locks(agent_id))


def sentence(found: HeartbeatStatus, now: int) -> str:
    """Tell how often, when next, and what came of the last time."""
    if not found.enabled:
        return "The heartbeat is off. /heartbeat on starts it."
    parts = [f"A heartbeat every {found.every}"]
    if found.next_due_at is not None:
        parts.append(f"the next in {format_span(found.next_due_at - now)}")
    if found.last_run_at is not None and found.last_outcome is not None:
        ago = format_span(now - found.last_run_at)
        parts.append(f"the last {ago} ago: {found.last_outcome.replace(':', ', ')}")
    return ", ".join(parts) + "."


def _asked(services: Services, tx: Tx, agent_id: str) -> Said:
    receipt = services.heartbeats.ask_in(tx, agent_id, AskedBy.OPERATOR, OPERATOR)
    if receipt.outcome is Outcome.SUPPRESSED:
        return Said(text=f"No heartbeat now: {receipt.reason}.")
    return Said(text="A heartbeat comes at once.")
