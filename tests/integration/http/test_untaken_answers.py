"""Whoever asks for much and reads nothing holds little memory, and not for long."""

import asyncio
import base64
import os
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest

from tests.integration.http.serving import House, house
from tests.patience import patience
from tests.waiting import eventually
from wakeful.doors.http.unsent import LOOK_S, MOST_UNSENT, TAKE_S
from wakeful.vocabulary.clock import ManualClock

SIZE = 8 * 1024 * 1024  # far more than the buffers between two sockets hold
ASKING = 2 * MOST_UNSENT // SIZE
ROUTE = "/api/stimuli/{id}/attachments/{hash}"

pytestmark = pytest.mark.timeout(60)


async def attached(home: House, secret: str) -> str:
    """Send something large; return where it is read."""
    data = base64.b64encode(os.urandom(SIZE)).decode()
    file = {"name": "a.bin", "media_type": "application/octet-stream", "data": data}
    async with home.client(secret) as client:
        sent = await client.post(
            "/api/sessions/api:x/messages?wait=10", json={"text": "look", "attachments": [file]}
        )
        stimulus = (await client.get(f"/api/stimuli/{sent.json()['stimulus_id']}")).json()
    return f"/api/stimuli/{stimulus['id']}/attachments/{stimulus['attachments'][0]['hash']}"


def answered(home: House) -> float:
    """Return how many have been answered."""
    labels = {"method": "GET", "route": ROUTE, "status": "200"}
    registry = home.runtime.metrics.registry
    return registry.get_sample_value("wakeful_http_requests_total", labels) or 0.0


@contextmanager
def asking(home: House, secret: str, path: str) -> Generator[socket.socket, None, None]:
    """Ask, and read nothing of the answer."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.connect(("127.0.0.1", home.port))
        connection.setblocking(False)
        head = f"Host: localhost\r\nConnection: close\r\nAuthorization: Bearer {secret}\r\n\r\n"
        connection.sendall(f"GET {path} HTTP/1.1\r\n{head}".encode())
        yield connection


async def read(connection: socket.socket) -> int:
    """Return how many bytes there are to read until the end."""
    size = 0
    async with asyncio.timeout(patience(15)):
        try:
            while got := await asyncio.get_running_loop().sock_recv(connection, 1024 * 1024):
                size += len(got)
        except ConnectionError:
            pass
    return size


async def test_a_reader_that_takes_nothing_of_an_answer_is_cut_off():
    clock = ManualClock()
    async with house(clock=clock) as home:
        secret = await home.token("send")
        path = await attached(home, secret)
        with asking(home, secret, path) as connection:
            await eventually(lambda: answered(home) == 1)
            for _ in range(round(TAKE_S / LOOK_S) + 1):
                clock.advance(LOOK_S)
            got = await read(connection)

    assert got < SIZE


async def test_readers_that_take_nothing_make_room_for_the_next():
    async with house() as home:
        secret = await home.token("send")
        path = await attached(home, secret)
        with ExitStack() as stack:
            connections: list[socket.socket] = []
            for number in range(ASKING):
                connections.append(stack.enter_context(asking(home, secret, path)))
                await eventually(lambda number=number: answered(home) == number + 1)
            first, last = await read(connections[0]), await read(connections[-1])

    assert first < SIZE
    assert last > SIZE
