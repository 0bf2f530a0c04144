"""The command about an agent's quiet hours."""

from datetime import tzinfo

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.gate.quiet import QuietStatus
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary import wall
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.hours import next_time
from wakeful.vocabulary.spans import is_span, parse_span

_USAGE = (
    "must be nothing, 'until' with a time such as 07:00, 'for' with a span such as 2h, or 'off'"
)


async def quiet(services: Services, caller: Caller, rest: str) -> Deed:
    agent_id, acts = keys.agent_of(caller.session_key), services.quiet_acts
    if not rest:
        return saying(sentence(await services.views.quiet.of(agent_id), acts.zone))
    until = _until(rest.lower().split(), services.views.clock.now(), acts.zone)
    acts.check(agent_id, until)

    def act(tx: Tx) -> Said:
        found = acts.set_in(tx, agent_id, until, caller.principal.name)
        return Said(text=sentence(found, acts.zone))

    return Deed(act=act, locks=acts.locks(agent_id))


def sentence(found: QuietStatus, zone: tzinfo | None) -> str:
    """Tell whether an agent is quiet, until when, and by whose word."""
    if found.until is None:
        return "Not quiet. /quiet until 07:00 leaves you in peace until then."
    at = wall.local(found.until, zone)
    by = "by the settings" if found.by == "settings" else "by the operator's word"
    return f"Quiet until {at:%Y-%m-%d %H:%M %Z}, {by}. /quiet off ends it."


def _until(words: list[str], now: int, zone: tzinfo | None) -> int | None:
    match words:
        case ["off"]:
            return None
        case ["until" | "for", *said] if is_span(" ".join(said)):
            return now + parse_span(" ".join(said), "quiet")
        case ["until", time]:
            return next_time(time, now, zone)
        case _:
            raise InvalidInput("quiet", _USAGE)
