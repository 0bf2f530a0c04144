"""The way to providers over HTTP: a client whose answers come in lines of bounded length."""

from collections.abc import AsyncIterator
from inspect import signature
from typing import Any

import httpx2
from pydantic_ai.models import create_async_httpx2_client
from pydantic_ai.providers import Provider, infer_provider_class

from wakeful.models.choosing import Chosen
from wakeful.models.providers import PROVIDERS
from wakeful.vocabulary.errors import Garbled

LONGEST_LINE = 8 * 1024 * 1024  # bytes; the vendors' readers grow slow on what has no line break

_SDKS = ("anthropic", "openai")  # whose clients take the client of this library
_WALKING = ("groq", "openai")  # whose clients walk through a body before they send it


def provider_of(name: str, chosen: Chosen | None = None) -> Provider[Any]:
    """Return a provider by its name, with a client, a key and an address of ours if it takes them.

    What the environment says the library reads by itself.
    """
    make: Any = infer_provider_class(name)
    taken = signature(make).parameters
    options: dict[str, Any] = {}
    if chosen is not None:
        chosen_options = {"api_key": chosen.key, "base_url": chosen.base_url}
        options = {key: value for key, value in chosen_options.items() if value and key in taken}
    if takes_client(name):
        options["http_client"] = client = create_async_httpx2_client()
        client.event_hooks["response"].append(_bound)
    provider: Provider[Any] = make(**options)
    if chosen is not None and chosen.base_url and "base_url" not in taken and takes_client(name):
        provider.client.base_url = chosen.base_url  # it has an address of its own in mind
    _hand_over_unchanged(provider.client)
    return provider


def _hand_over_unchanged(client: Any) -> None:
    """Keep a vendor's client from walking through all that is said, message by message.

    What the library hands over is ready to be sent; the client would compare it with its own types
    and copy it, on the loop, for longer than all the rest takes. What comes as an extra part of the
    body it sends as it is.
    """
    if any(kind.__module__.partition(".")[0] in _WALKING for kind in type(client).__mro__):
        _spare(client.chat.completions, "messages")
        if hasattr(client, "responses"):
            _spare(client.responses, "input")


def _spare(resource: Any, said: str) -> None:
    create = resource.create

    async def spared(**given: Any) -> Any:
        large = {name: given[name] for name in (said, "tools") if isinstance(given.get(name), list)}
        extra: dict[str, Any] = {**large, **(given.get("extra_body") or {})}
        return await create(**{**given, **dict.fromkeys(large, ()), "extra_body": extra})

    resource.create = spared


def takes_client(name: str) -> bool:
    """Tell whether a provider's own client takes one of ours underneath."""
    known = PROVIDERS.get(name)
    is_known = known is not None and known.package in _SDKS
    return is_known and "http_client" in signature(infer_provider_class(name)).parameters


async def _bound(response: httpx2.Response) -> None:
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = _BoundedLines(stream)


class _BoundedLines(httpx2.AsyncByteStream):
    """A body whose lines may not grow without end."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            at = chunk.rfind(b"\n")
            length = length + len(chunk) if at < 0 else len(chunk) - at - 1
            if length > LONGEST_LINE:
                raise Garbled(f"the answer has a line of more than {LONGEST_LINE} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
