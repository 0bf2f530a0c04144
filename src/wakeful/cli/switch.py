"""`halt`, `resume`: the big switch."""

from typing import Annotated

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.output import safe

Agent = Annotated[str, typer.Argument(help="An agent; without it, all of them.")]


def halt(context: CliContext, agent: Agent = "") -> None:
    """Stop every model and tool call of an agent, or of all, until `resume`."""
    answer = context.needed_server().post("/api/halt", {"agent": agent} if agent else {})
    context.out.data(answer, [f"{_who(agent)} halted; `wakeful resume` goes on"])


def resume(context: CliContext, agent: Agent = "") -> None:
    """Lift a halt; everything goes on where it was."""
    answer = context.needed_server().post("/api/resume", {"agent": agent} if agent else {})
    context.out.data(answer, [f"{_who(agent)} resumed"])


def _who(agent: str) -> str:
    return f"{safe(agent)} is" if agent else "all agents are"
