"""The system prompt: the same bytes for every turn of the same configuration."""

_SILENCE = "If nothing needs to be said, answer exactly NO_REPLY; such an answer is not delivered."


def system_prompt(agent_id: str, instructions: str) -> str:
    """Return what an agent is told before every conversation."""
    parts = [
        f"You are the agent {agent_id!r} of a wakeful runtime.",
        instructions.strip(),
        _SILENCE,
    ]
    return "\n\n".join(part for part in parts if part)
