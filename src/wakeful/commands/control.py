"""Commands of the operator: halt and resume."""

from wakeful.commands.command import Caller, Reach, Said


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
