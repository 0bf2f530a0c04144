"""Voices: models that could be asked here, for an agent that has only `demo`."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from wakeful.cli.output import safe
from wakeful.models.choosing import refuse_unusable
from wakeful.net.addresses import allow
from wakeful.net.target import parse
from wakeful.settings.load import Loaded
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import InvalidInput, WakefulError

DEMO = "demo"
LOCAL_URL = "http://127.0.0.1:11434/v1"  # where Ollama listens, and others that speak like it
LOCAL_S = 2.0

# Which variable opens which provider, with a model of theirs that is there for everybody.
MODELS = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "GEMINI_API_KEY": "google:gemini-2.5-flash",
    "OPENROUTER_API_KEY": "openrouter:anthropic/claude-sonnet-4.5",
}


def found_models(loaded: Loaded, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what to do with each key of the environment; never the key itself."""
    agent = demo_agent(loaded)
    if agent is None:
        return ()
    return tuple(
        f"{variable} is set: {_how_to(agent, model, loaded, environ)}"
        for variable, model in MODELS.items()
        if environ.get(variable)
    )


async def local_model(
    loaded: Loaded, environ: Mapping[str, str], clock: Clock, url: str = LOCAL_URL
) -> str | None:
    """Return what to do with a model that runs on this machine, None if none answers in time."""
    agent = demo_agent(loaded)
    if agent is None:
        return None
    try:
        async with time_limit(clock, LOCAL_S):
            name = safe(_first_model(await _list_models(url, clock)), 120)
    except (OSError, WakefulError, msgspec.DecodeError, LookupError, TypeError):
        return None
    return f"{url} answers: {_how_to(agent, f'ollama:{name}', loaded, environ)}"


def demo_agent(loaded: Loaded) -> str | None:
    """Return the first agent whose voice is the built-in one."""
    return next((agent.id for agent in loaded.agents if agent.model == DEMO), None)


def _how_to(agent: str, model: str, loaded: Loaded, environ: Mapping[str, str]) -> str:
    advice = f"`wakeful config set agents.{agent}.model {model}` uses it"
    try:
        refuse_unusable(model, environ)
    except InvalidInput as error:
        advice += f"; {error.rule}"
    return advice


async def _list_models(url: str, clock: Clock) -> bytes:
    target = parse(url)
    _, writer = await asyncio.open_connection(target.host, target.port)
    writer.close()
    # Loaded only where somebody listens: HTTP and TLS take time and memory.
    from wakeful.net.client import Client, HttpRequest

    asked = HttpRequest(method="GET", url=f"{url}/models", allowed=allow([target.host]))
    return (await Client(clock).send(asked)).body


def _first_model(body: bytes) -> str:
    listed: Any = msgspec.json.decode(body)
    return str(listed["data"][0]["id"])
