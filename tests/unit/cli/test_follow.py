"""A conversation at a server that goes: what is said of a message that got no answer."""

import asyncio
import io
import socket
from pathlib import Path

import pytest

from wakeful.cli.context import CliContext
from wakeful.cli.exits import Unreachable
from wakeful.cli.follow import SessionLink
from wakeful.cli.output import CommandOutput


def link(folder: Path, port: int) -> SessionLink:
    environ = {
        "WAKEFUL_HOME": str(folder),
        "WAKEFUL_URL": f"http://127.0.0.1:{port}",
        "WAKEFUL_TOKEN": "token",
    }
    output = CommandOutput(is_json=False, environ={}, out=io.StringIO(), error=io.StringIO())
    return SessionLink(CliContext(environ, output), "main")


async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_a_message_that_reached_nobody_was_not_sent(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="it was not sent"):
            await link(tmp_path, free.getsockname()[1]).post("/api/messages", {"text": "hello"})


async def test_a_message_to_a_server_that_dies_may_have_arrived(tmp_path: Path):
    async with await asyncio.start_server(die, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="it may have arrived"):
            await link(tmp_path, port).post("/api/messages", {"text": "hello"})
