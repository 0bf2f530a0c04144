"""Commands of the operator: halt and resume, another model, another depth of thought."""

from wakeful.commands.command import Caller, Reach, Said
from wakeful.intake.sessions import Changes
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import ThinkingLevel

DEFAULT = "default"


async def halt(reach: Reach, caller: Caller, rest: str) -> Said:
    agent_id = rest or None
    is_new = await reach.intake.halt(agent_id, by=caller.principal.name)
    who = agent_id or "everything"
    return Said(text=f"Halted {who}." if is_new else f"{who.capitalize()} was halted already.")


async def resume(reach: Reach, _caller: Caller, rest: str) -> Said:
    agent_id = rest or None
    was_halted = await reach.intake.resume(agent_id)
    who = agent_id or "everything"
    return Said(text=f"Resumed {who}." if was_halted else f"{who.capitalize()} was not halted.")


async def model(reach: Reach, caller: Caller, rest: str) -> Said:
    card = reach.agents.card(keys.agent_of(caller.session_key))
    if rest:
        wanted = None if rest == DEFAULT else rest
        await reach.acts.choose(caller.session_key, Changes(model=wanted))
        return Said(text=f"From the next turn on: {wanted or card.model}.")
    session = await reach.sessions.get(caller.session_key, caller.principal.owner)
    chosen = session.overrides.model
    return Said(text=f"{chosen}, chosen for this session." if chosen else f"{card.model}.")


async def think(reach: Reach, caller: Caller, rest: str) -> Said:
    if rest:
        wanted = None if rest == DEFAULT else rest.lower()
        await reach.acts.choose(caller.session_key, Changes(thinking=wanted))
        return Said(text=f"From the next turn on: {wanted or DEFAULT}.")
    session = await reach.sessions.get(caller.session_key, caller.principal.owner)
    levels = ", ".join(ThinkingLevel)
    return Said(text=f"{session.overrides.thinking or DEFAULT} (levels: {levels}, {DEFAULT}).")
