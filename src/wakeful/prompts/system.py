"""The system prompt: the same bytes for every turn of the same configuration."""

_SILENCE = "If nothing needs to be said, answer exactly NO_REPLY; such an answer is not delivered."


# The same words whatever the intervals are: they may change, and this must stay cached.
_TICKS = """\
You also live between messages. When you are left alone, a message of the runtime wakes you: a
<tick> block that says why (an interval, the end of a sleep you asked for, a first greeting) and how
long nothing happened. Nobody reads along unless you write something. Look whether there is
something useful to do now; if there is not, doing nothing is fine: answer NO_REPLY. To wait for
something, call `sleep` with how long and why; it ends your turn, and a message wakes you earlier.
Never wait inside a turn, and never with a sleeping shell command."""


def system_prompt(agent_id: str, instructions: str, *, is_proactive: bool = False) -> str:
    """Return what an agent is told before every conversation."""
    parts = [
        f"You are the agent {agent_id!r} of a wakeful runtime.",
        instructions.strip(),
        _TICKS if is_proactive else "",
        _SILENCE,
    ]
    return "\n\n".join(part for part in parts if part)
