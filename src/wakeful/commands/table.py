"""The table of commands, and how a line is read as one of them."""

import re

from wakeful.commands import control, conversation, looking
from wakeful.commands.command import Caller, Command, Effect, Reach, Said, Who
from wakeful.vocabulary.errors import InvalidInput

_LINE = re.compile(r"/([A-Za-z]{1,32})(?:\s+(.*))?", re.DOTALL)
_BARE_STOP = re.compile(r"stop[.!]?", re.IGNORECASE)


async def help(_reach: Reach, caller: Caller, rest: str) -> Said:
    named = rest.removeprefix("/").lower()
    if not named:
        lines = [f"{one.usage} — {one.help}" for one in TABLE.values() if may_use(caller, one)]
        return Said(text="\n".join(lines))
    command = TABLE.get(named)
    if command is None:
        raise InvalidInput("command", f"there is no /{named[:40]}; /help lists them all")
    who = "" if command.who is Who.SENDER else " Only the operator may use it."
    running = "" if command.effect is Effect.NONE else f" A running turn: {command.effect.value}."
    return Said(text=f"{command.usage} — {command.help}{running}{who}")


_COMMANDS = (
    Command(
        name="help",
        arguments="[COMMAND]",
        help="List the commands, or explain one.",
        act=help,
    ),
    Command(name="status", help="What this session is doing.", act=looking.status),
    Command(
        name="stop",
        help="End the running turn and cancel the messages that wait; a bare `stop` does it too.",
        effect=Effect.ENDS,
        act=conversation.stop,
    ),
    Command(
        name="new",
        arguments="[TEXT]",
        help="Begin a new conversation in this session, with a first message if there is one.",
        effect=Effect.AFTER,
        act=conversation.begin_anew,
    ),
    Command(
        name="reset",
        arguments="[TEXT]",
        help="The same as /new.",
        effect=Effect.AFTER,
        act=conversation.begin_anew,
    ),
    Command(
        name="steer",
        arguments="TEXT",
        help="Say something that the running turn takes into account at its next step.",
        effect=Effect.JOINS,
        act=conversation.steer,
    ),
    Command(
        name="queue",
        arguments="[MODE] [debounce:2s] [cap:20] [drop:old] | default",
        help="Show or set what happens to messages while the agent is busy.",
        act=conversation.queue,
    ),
    Command(
        name="compact",
        arguments="[WHAT MATTERS]",
        help="Fold the older part of the conversation into a summary.",
        effect=Effect.AFTER,
        act=conversation.compact,
    ),
    Command(
        name="model",
        arguments="[PROVIDER:MODEL | default]",
        help="Show or choose the model of this session.",
        who=Who.OPERATOR,
        act=control.model,
    ),
    Command(
        name="think",
        arguments="[off | low | medium | high | xhigh | default]",
        help="Show or choose how much the model thinks before it answers.",
        who=Who.OPERATOR,
        act=control.think,
    ),
    Command(name="usage", help="Tokens and money of this conversation.", act=looking.usage),
    Command(name="sessions", help="The sessions written to last.", act=looking.sessions),
    Command(
        name="why",
        arguments="[TURN | STIMULUS | last]",
        help="What led to a turn, back to the first cause.",
        act=looking.why,
    ),
    Command(name="whoami", help="Whom the runtime takes you for.", act=looking.whoami),
    Command(
        name="halt",
        arguments="[AGENT]",
        help="Stop every model and tool call of an agent, or of all, until /resume.",
        who=Who.OPERATOR,
        effect=Effect.HOLDS,
        act=control.halt,
    ),
    Command(
        name="resume",
        arguments="[AGENT]",
        help="Lift a halt.",
        who=Who.OPERATOR,
        act=control.resume,
    ),
)

TABLE: dict[str, Command] = {command.name: command for command in _COMMANDS}


def read(text: str, *, is_operator: bool) -> tuple[Command, str] | None:
    """Return the command that a line is, with the rest of it; None: it is for the agent."""
    line = text.strip()
    if is_operator and _BARE_STOP.fullmatch(line):
        return TABLE["stop"], ""
    found = _LINE.fullmatch(line)
    command = None if found is None else TABLE.get(found[1].lower())
    if found is None or command is None:
        return None
    return command, found[2] or ""


def may_use(caller: Caller, command: Command) -> bool:
    return command.who is Who.SENDER or caller.is_operator
