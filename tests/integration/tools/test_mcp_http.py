"""An honest server over HTTP, which may die and come back, and the guard before it."""

import asyncio
import gzip
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.children import die_with_parent
from tests.integration.tools.mcp_serving import (
    HONEST,
    call,
    is_up,
    serving,
)
from tests.ports import reserved_port
from tests.waiting import eventually

# Real processes, which load a large library, on a machine that may be busy.
pytestmark = pytest.mark.timeout(90)


@contextmanager
def listening(port: int) -> Generator[subprocess.Popen[bytes], None, None]:
    with subprocess.Popen(
        [*HONEST, str(port)], stderr=subprocess.DEVNULL, preexec_fn=die_with_parent
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_a_server_that_dies_in_a_call_and_comes_back(tmp_path: Path):
    port = reserved_port()
    url = f"http://127.0.0.1:{port}/mcp"
    with listening(port) as process:
        async with serving(url=url, allow_private=True) as server:
            await eventually(lambda: is_up(server))
            assert (await call(server, "add", a=1, b=2)).text == "3"
            before = server.tools
            async with asyncio.TaskGroup() as group:
                task = group.create_task(call(server, "hang", mark=str(tmp_path / "mark")))
                await eventually(lambda: bool(list(tmp_path.iterdir())))
                os.kill(process.pid, signal.SIGKILL)
            cut_off = task.result()
            await eventually(lambda: not is_up(server))
            away = await call(server, "add", a=1, b=2)
            with listening(port):
                await eventually(lambda: is_up(server))
                assert (await call(server, "add", a=1, b=2)).text == "3"
                assert server.tools is before

    assert cut_off.is_in_doubt
    assert cut_off.text.startswith("interrupted, outcome unknown: ")
    assert not away.is_in_doubt
    assert "'notes' is not reachable: " in away.text
    assert len(os.listdir(tmp_path)) == 1


async def test_a_name_that_leads_to_this_machine_is_not_followed_unless_it_may():
    async with serving(url=f"http://localhost:{reserved_port()}/mcp") as server:
        status = server.status()

    assert status.state == "down"
    assert status.problems == ("'localhost' leads to an address that is not public",)


async def test_headers_and_the_token_are_sent_and_an_endless_answer_is_cut():
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        try:
            while True:
                writer.write(b"[" * 65536)
                await writer.drain()
        except ConnectionError:
            writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        async with serving(
            url=f"http://127.0.0.1:{port}/mcp",
            allow_private=True,
            bearer="t0ken",
            headers={"X-Team": "red"},
        ) as server:
            status = server.status()

    assert b"authorization: bearer t0ken\r\n" in heard[0].lower()
    assert b"x-team: red\r\n" in heard[0].lower()
    assert status.problems == ("the answer has more than 4194304 bytes",)


async def test_an_answer_that_was_packed_is_not_unpacked():
    heard: list[bytes] = []
    packed = gzip.compress(bytes(1024))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
        writer.write(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(packed), packed))
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        async with serving(url=f"http://127.0.0.1:{port}/mcp", allow_private=True) as server:
            status = server.status()

    assert b"accept-encoding: identity\r\n" in heard[0].lower()
    assert status.problems == ("the answer is packed ('gzip'), which nobody asked for",)
