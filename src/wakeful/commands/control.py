"""Commands that choose: halt and resume, another model or depth of thought, a line of usage."""

from functools import partial
from typing import cast, get_args

from wakeful.commands.command import Caller, Deed, Said, saying
from wakeful.commands.looking import session_of, used
from wakeful.gate import halts
from wakeful.intake.sessions import Changes
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.transcript.sessions import ResponseUsage
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import InvalidInput

DEFAULT = "default"
USAGE_WORDS = "off | tokens | full"
_ENDINGS = {
    "off": "Replies end without a line of usage",
    "tokens": "Replies end with the tokens they took",
    "full": "Replies end with tokens, money, time and model",
}


async def halt(services: Services, caller: Caller, rest: str) -> Deed:
    scope, who = services.intake.scope_of(rest or None), rest or "everything"

    def act(tx: Tx) -> Said:
        is_new = services.intake.halt_in(tx, scope, caller.principal.name)
        return Said(text=f"Halted {who}." if is_new else f"{who.capitalize()} was halted already.")

    return Deed(act=act, locks=(halts.CHANGING,))


async def resume(services: Services, caller: Caller, rest: str) -> Deed:
    scope, who = services.intake.scope_of(rest or None), rest or "everything"

    def act(tx: Tx) -> Said:
        was_halted = services.intake.lift_in(tx, scope, caller.principal.name)
        return Said(text=f"Resumed {who}." if was_halted else f"{who.capitalize()} was not halted.")

    go_on = partial(services.intake.release_all, rest or None)
    return Deed(act=act, locks=(halts.CHANGING,), afterwards=go_on)


async def model(services: Services, caller: Caller, rest: str) -> Deed:
    card = services.views.agents.card(keys.agent_of(caller.session_key))
    if rest:
        wanted = None if rest == DEFAULT else rest
        text = f"From the next turn on: {wanted or card.model}."
        return _choosing(services, caller, Changes(model=wanted), text)
    session = await session_of(services, caller)
    chosen = None if session is None else session.overrides.model
    return saying(f"{chosen}, chosen for this session." if chosen else f"{card.model}.")


async def think(services: Services, caller: Caller, rest: str) -> Deed:
    if rest:
        wanted = None if rest == DEFAULT else rest.lower()
        text = f"From the next turn on: {wanted or DEFAULT}."
        return _choosing(services, caller, Changes(thinking=wanted), text)
    session = await session_of(services, caller)
    level = None if session is None else session.overrides.thinking
    return saying(f"{level or DEFAULT} (levels: {', '.join(ThinkingLevel)}, {DEFAULT}).")


async def usage(services: Services, caller: Caller, rest: str) -> Deed:
    if rest:
        wanted = "tokens" if rest.lower() == "on" else rest.lower()
        if wanted not in get_args(ResponseUsage):
            known = ", ".join(get_args(ResponseUsage))
            raise InvalidInput("usage", f"must be one of {known}, not {rest[:40]!r}")
        changes = Changes(response_usage=cast("ResponseUsage", wanted))
        return _choosing(services, caller, changes, f"{_ENDINGS[wanted]}.")
    session = await session_of(services, caller)
    if session is None:
        return saying("Nothing was used yet.")
    ending = _ENDINGS[session.overrides.response_usage or "off"]
    return saying(f"{await used(services, session)}\n{ending} (/usage {USAGE_WORDS})")


def _choosing(services: Services, caller: Caller, changes: Changes, text: str) -> Deed:
    checked = services.acts.checked(changes)

    def act(tx: Tx) -> Said:
        services.intake.open_in(tx, caller.draft)
        services.acts.choose_in(tx, caller.session_key, checked)
        return Said(text=text)

    return Deed(act=act)
