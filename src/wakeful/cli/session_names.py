"""Sessions as people name them: any words, and an agent's if one is named."""

from wakeful.cli.client import ServerClient, segment
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Missing, Misused
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput

MAIN = "main"


def session_named(words: str, agent: str | None = None) -> str:
    """Return the name of a session as the server knows it; capitals and spaces are escaped."""
    if words.startswith("agent:"):
        if agent is not None and not words.startswith(f"agent:{agent}:"):
            raise Misused(f"{words} is not a session of {agent}; name one of them")
        return words
    name = words if _is_key(words) else ":".join(map(keys.escape, words.split(":")))
    return name if agent is None else f"agent:{agent}:{name}"


def session_path(words: str, agent: str | None = None) -> str:
    """Return where the API has a session."""
    return f"/api/sessions/{segment(session_named(words, agent))}"


def warn_of_namesake(context: CliContext, server: ServerClient, words: str) -> None:
    """Tell whoever makes a session with the name of an agent that it is not that agent's."""
    if words == MAIN or ":" in words:
        return
    agents = [one["id"] for one in server.get("/api/agents")["items"]]
    if words not in agents[1:]:
        return
    try:
        server.get(session_path(words))
    except Missing:
        context.out.note(
            f"{words} is an agent, but this is a session of {agents[0]} with that name; "
            f"`--agent {words}` talks to the agent"
        )


def _is_key(words: str) -> bool:
    try:
        keys.canonical(words)
    except InvalidInput:
        return "~" in words  # escaped by hand, or meant so: the server says what is wrong
    return True
