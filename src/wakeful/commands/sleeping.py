"""Commands about rest: `/sleep` and `/wake`."""

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.gate import halts
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import format_span, leading_span

_OTHER_LENGTH = "a sleep lasts a minute to a day, and ends before a prompt cache does or long after"
_WHY_NOT = {
    "awake": "Nobody is asleep here.",
    "halted": "Not woken: the agent is halted. /resume lifts that.",
}


async def sleep(services: Services, caller: Caller, rest: str) -> Deed:
    key = caller.session_key
    if not rest:
        found = await services.views.sleeps.of_session(key)
        if found is None:
            return saying("Awake. /sleep 2h [REASON] lets this session rest.")
        left = format_span(found.wake_at - services.views.clock.now())
        return saying(f"Asleep for another {left}: {found.reason or 'no reason given'}.")
    requested_ms, reason = leading_span(rest.split(), "duration")

    def act(tx: Tx) -> Said:
        entered = services.sleep_acts.sleep_in(tx, key, requested_ms, " ".join(reason))
        lasts, wish = format_span(entered.final_ms), format_span(requested_ms)
        why = "" if entered.final_ms == requested_ms else f" (not {wish}: {_OTHER_LENGTH})"
        return Said(text=f"Asleep for {lasts}{why}; a message wakes it.")

    return Deed(act=act)


async def wake(services: Services, caller: Caller, rest: str) -> Deed:
    if rest:
        raise InvalidInput("wake", "takes nothing, and wakes at once")

    def act(tx: Tx) -> Said:
        woken = services.sleep_acts.wake_in(tx, caller.session_key)
        if woken.woken:
            return Said(text=f"Woken after {format_span(woken.slept_ms or 0)}.")
        why = woken.reason or ""
        return Said(text=_WHY_NOT.get(why, f"Not woken: {why}."))

    return Deed(act=act, locks=(halts.ASKING,))
