"""A model that runs on this machine is found, if it answers at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from wakeful.cli.local_models import found_models, local_model
from wakeful.settings.load import load_text
from wakeful.vocabulary.clock import ManualClock, SystemClock

LISTED = b'{"data": [{"id": "small:1b"}, {"id": "large"}]}'


@asynccontextmanager
async def answering(body: bytes | None) -> AsyncGenerator[str, None]:
    """Serve one body to everybody, or keep everybody waiting; yields the address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if body is None:
            await reader.read()
        else:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_a_local_model_is_told_with_the_line_that_uses_it(tmp_path: Path):
    loaded = load_text(None, tmp_path / "wakeful.yaml", {"WAKEFUL_HOME": str(tmp_path)})
    async with answering(LISTED) as url:
        told = await local_model(loaded, {}, SystemClock(), url)

    assert told is not None
    assert told.startswith(f"{url} answers: ")
    assert told.endswith("`wakeful config set agents.main.model ollama:small:1b` uses it")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": []}', b"{}", b'{"data": 1}'])
async def test_whatever_else_answers_there_is_no_model(tmp_path: Path, body: bytes):
    loaded = load_text(None, tmp_path / "wakeful.yaml", {"WAKEFUL_HOME": str(tmp_path)})
    async with answering(body) as url:
        assert await local_model(loaded, {}, SystemClock(), url) is None


async def test_nobody_there_is_no_model(tmp_path: Path):
    loaded = load_text(None, tmp_path / "wakeful.yaml", {"WAKEFUL_HOME": str(tmp_path)})
    async with answering(b"") as url:
        pass

    assert await local_model(loaded, {}, SystemClock(), url) is None


async def test_who_does_not_answer_is_given_up(tmp_path: Path):
    clock = ManualClock()
    loaded = load_text(None, tmp_path / "wakeful.yaml", {"WAKEFUL_HOME": str(tmp_path)})
    async with answering(None) as url, asyncio.TaskGroup() as group:
        looking = group.create_task(local_model(loaded, {}, clock, url))
        while not looking.done():
            clock.advance(1)
            await asyncio.sleep(0)

    assert looking.result() is None


def test_nothing_is_told_to_whoever_has_a_model_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    environ = {"OPENAI_API_KEY": "key", "WAKEFUL_HOME": str(tmp_path)}
    file = tmp_path / "wakeful.yaml"
    demo = load_text("agents: {main: {model: demo}}", file, environ)
    own = load_text('agents: {main: {model: "openai:gpt-5-mini"}}', file, environ)

    assert len(found_models(demo, environ)) == 1
    assert found_models(own, environ) == ()
