"""Who asks, for whom and in which version of an interface: the same whoever speaks."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.model import Request
from wakeful.models.providers import ProviderSettings, Via, WireFormat
from wakeful.models.remote import Remote
from wakeful.vocabulary.errors import WakefulError
from wakeful.vocabulary.message import UserMessage

pytestmark = pytest.mark.timeout(60)  # the first test also waits for the library

COMPARED = (
    *("anthropic-version", "openai-organization", "openai-project", "http-referer", "x-title"),
)
REQUEST = Request(system="be kind", messages=(UserMessage(text="hi"),))


class Gate:
    """A server that writes down who comes, and lets nobody in."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        self.paths.append(first.split(" ")[1])
        self.heads.append({name.lower(): value for name, value in (s.split(": ") for s in lines)})
        writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()


@pytest.fixture
async def gate(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENROUTER_APP_URL", "https://app.example")
    monkeypatch.setenv("OPENROUTER_APP_TITLE", "App")
    gate = Gate()
    server = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
    gate.port = server.sockets[0].getsockname()[1]
    yield gate
    server.close()


async def head_of(gate: Gate, name: str, given: ProviderSettings) -> dict[str, str]:
    """Return the headers that a model sends."""
    model = find(name, providers={name.partition(":")[0]: given})
    assert isinstance(model, DirectModel | Remote)
    with pytest.raises(WakefulError):
        [_ async for _ in model.stream(REQUEST)]
    await model.aclose()
    return gate.heads[-1]


@pytest.mark.parametrize(
    "name",
    ["openai-chat:gpt-4.1", "openai:gpt-5.6", "anthropic:claude-opus-5", "openrouter:a/b"],
)
async def test_the_same_is_told_beside_a_question(name: str, gate: Gate):
    place = f"http://127.0.0.1:{gate.port}"
    by_library = ProviderSettings(base_url=place, key="k", via=Via.LIBRARY)
    theirs = await head_of(gate, name, by_library)
    ours = await head_of(gate, name, ProviderSettings(base_url=place, key="k"))

    told = {key: theirs.get(key) for key in COMPARED}
    if name.startswith("openrouter"):  # what is OpenAI's business is nobody else's
        told |= {"openai-organization": None, "openai-project": None}
    assert {key: ours.get(key) for key in COMPARED} == told
    assert "k" in (ours.get("x-api-key"), ours.get("authorization", "").removeprefix("Bearer "))
    assert ours["user-agent"] == "wakeful"


async def test_a_likeness_of_anthropic_is_spoken_to_in_the_version_that_all_of_them_know(
    gate: Gate,
):
    place = f"http://127.0.0.1:{gate.port}"

    head = await head_of(
        gate, "mine:m", ProviderSettings(kind=WireFormat.ANTHROPIC, base_url=place)
    )

    assert head["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in head


async def test_a_gateway_gets_the_headers_that_the_operator_names(gate: Gate):
    given = ProviderSettings(
        kind=WireFormat.OPENAI_CHAT,
        base_url=f"http://127.0.0.1:{gate.port}/v1",
        key="k",
        headers={"X-Team": "blue", "authorization": "Basic abc", "User-Agent": "corp"},
    )

    head = await head_of(gate, "corp:team/model:latest", given)

    told = [head[name] for name in ("x-team", "authorization", "user-agent")]
    assert told == ["blue", "Basic abc", "corp"]


async def test_an_address_may_name_the_version_that_a_format_adds(gate: Gate):
    given = ProviderSettings(base_url=f"http://127.0.0.1:{gate.port}/v1/", key="k")

    await head_of(gate, "anthropic:claude-opus-5", given)

    assert gate.paths[-1] == "/v1/messages"
