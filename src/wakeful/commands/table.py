"""The table of commands, and how a line is read as one of them."""

import re
from difflib import get_close_matches

from wakeful.access.principal import Principal
from wakeful.commands import (
    approving,
    automations,
    budgeting,
    control,
    conversation,
    heartbeats,
    looking,
    queue_words,
    quiet,
    sleeping,
)
from wakeful.commands.command import Caller, Command, CommandEffect, Deed, Who, saying
from wakeful.services import Services
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.stimulus import Draft

_LINE = re.compile(r"/([A-Za-z][\w-]{0,31})(?:\s+(.*))?", re.DOTALL | re.ASCII)
_BARE_STOP = re.compile(r"stop[.!]?", re.IGNORECASE)


async def help(_services: Services, caller: Caller, rest: str) -> Deed:
    named = rest.removeprefix("/").lower()
    if not named:
        mine = (one for one in TABLE.values() if one.is_for(caller.principal))
        return saying("\n".join(f"{one.usage} — {one.help}" for one in mine))
    command = TABLE.get(named)
    if command is None:
        raise InvalidInput("command", f"there is no /{named[:40]}; /help lists them all")
    who = "" if command.who is Who.SENDER else " Only the operator may use it."
    running = (
        "" if command.effect is CommandEffect.NONE else f" A running turn: {command.effect.value}."
    )
    return saying(f"{command.usage} — {command.help}{running}{who}")


async def _unknown(_services: Services, caller: Caller, name: str) -> Deed:
    """Tell whoever mistyped a command which ones are near; a model never sees it."""
    mine = [one.name for one in TABLE.values() if one.is_for(caller.principal)]
    near = [f"/{one}" for one in get_close_matches(name.lower(), mine, n=3)]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return saying(f"There is no command /{name}.{hint} /help lists them all.")


_COMMANDS = (
    Command(
        name="help",
        arguments="[COMMAND]",
        help="List the commands, or explain one.",
        plan=help,
    ),
    Command(name="status", help="What this session is doing.", plan=looking.status),
    Command(
        name="stop",
        help="End the running turn and cancel the messages that wait; a bare `stop` does it too.",
        effect=CommandEffect.ENDS,
        plan=conversation.stop,
    ),
    Command(
        name="new",
        arguments="[TEXT]",
        help="Begin a new conversation in this session, with a first message if there is one.",
        effect=CommandEffect.AFTER,
        plan=conversation.begin_anew,
    ),
    Command(
        name="reset",
        arguments="[TEXT]",
        help="The same as /new.",
        effect=CommandEffect.AFTER,
        plan=conversation.begin_anew,
    ),
    Command(
        name="steer",
        arguments="TEXT",
        help="Say something that the running turn takes into account at its next step.",
        effect=CommandEffect.JOINS,
        plan=conversation.steer,
    ),
    Command(
        name="queue",
        arguments="[MODE] [debounce:2s] [cap:20] [drop:old] | default",
        help="Show or set what happens to messages while the agent is busy.",
        plan=conversation.queue,
    ),
    Command(
        name="compact",
        arguments="[WHAT MATTERS]",
        help="Compact the older part of the conversation into a summary.",
        effect=CommandEffect.AFTER,
        plan=conversation.compact,
    ),
    Command(
        name="model",
        arguments="[PROVIDER:MODEL | default]",
        help="Show or choose the model of this session.",
        who=Who.OPERATOR,
        plan=control.model,
    ),
    Command(
        name="think",
        arguments="[off | low | medium | high | xhigh | default]",
        help="Show or choose how much the model thinks before it answers.",
        who=Who.OPERATOR,
        plan=control.think,
    ),
    Command(
        name="usage",
        arguments=f"[{control.USAGE_WORDS}]",
        help="Tokens and money of this conversation, or whether replies end with what they took.",
        plan=control.usage,
    ),
    Command(name="sessions", help="The sessions written to last.", plan=looking.sessions),
    Command(
        name="why",
        arguments="[TURN | STIMULUS | last]",
        help="What led to a turn, back to the first cause.",
        plan=looking.why,
    ),
    Command(name="whoami", help="Whom the runtime takes you for.", plan=looking.whoami),
    Command(
        name="halt",
        arguments="[AGENT]",
        help="Stop every model and tool call of an agent, or of all, until /resume.",
        who=Who.OPERATOR,
        effect=CommandEffect.HOLDS,
        plan=control.halt,
    ),
    Command(
        name="sleep",
        arguments="[2h [REASON]]",
        help="Show whether this session sleeps, or let it rest; a message wakes it.",
        who=Who.OPERATOR,
        plan=sleeping.sleep,
    ),
    Command(
        name="wake",
        help="End the sleep of this session.",
        who=Who.OPERATOR,
        plan=sleeping.wake,
    ),
    Command(
        name="heartbeat",
        arguments="[on | off | now]",
        help="Show when this agent looks after things by itself, turn that on or off, or ask now.",
        who=Who.OPERATOR,
        plan=heartbeats.heartbeat,
    ),
    Command(
        name="quiet",
        arguments="[until 07:00 | for 2h | off]",
        help="Show whether only people and what is urgent wake this agent now, begin or end that.",
        who=Who.OPERATOR,
        plan=quiet.quiet,
    ),
    Command(
        name="budget",
        arguments="[raise 2.00]",
        help="Show what is left of the agent's budget today, or raise it until the day ends.",
        who=Who.OPERATOR,
        plan=budgeting.budget,
    ),
    Command(
        name="cron",
        arguments="[show | next | pause | resume | run | rm NAME]",
        help="List this session's automations, show one, or change it; only the operator changes.",
        plan=automations.cron,
    ),
    Command(
        name="approve",
        arguments="[NUMBER [TEXT]]",
        help="Show what waits for you, let a call run, or answer a question with the text.",
        who=Who.OPERATOR,
        plan=approving.approve,
    ),
    Command(
        name="deny",
        arguments="[NUMBER [TEXT]]",
        help="Refuse a call that waits for approval; the text is told to the agent.",
        who=Who.OPERATOR,
        plan=approving.deny,
    ),
    Command(
        name="inbox",
        help="Show what waits in this agent's inbox; that does not read it.",
        who=Who.OPERATOR,
        plan=looking.inbox,
    ),
    Command(
        name="resume",
        arguments="[AGENT]",
        help="Lift a halt.",
        who=Who.OPERATOR,
        plan=control.resume,
    ),
)

TABLE: dict[str, Command] = {command.name: command for command in _COMMANDS}


_UNKNOWN = Command(name="", help="", plan=_unknown)


def read(draft: Draft, principal: Principal) -> tuple[Command, str] | None:
    """Return the command that a message is, with the rest of it; None: it is for the agent.

    A word after a slash is always a command, if only an unknown one; a path is none.
    """
    line = draft.text.strip()
    if principal.is_operator and _BARE_STOP.fullmatch(line):
        return TABLE["stop"], ""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    name, rest = found[1], found[2] or ""
    command = TABLE.get(name.lower())
    if command is None:
        return _UNKNOWN, name
    is_inline = bool(draft.attachments) or not queue_words.is_alone(rest)
    if command.name == "queue" and rest and is_inline:
        return None
    return command, rest
