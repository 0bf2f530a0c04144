"""A reader of events loses and repeats nothing when the server is killed under it."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.children import die_with_parent
from tests.integration.http.serving import PATIENCE_S, Frame, following
from tests.patience import patience
from wakeful.access.credentials import FILE_NAME
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import SystemClock

LIVES = 4
MESSAGES = 12  # sent in each life

SERVER = """
import asyncio, sys
from wakeful import Agent, Runtime
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions

async def main():
    door = HttpDoor(HttpOptions(port=0))
    async with Runtime(agents=[Agent(model="demo")], home=sys.argv[1], http=door) as runtime:
        print(runtime.http.port, flush=True)
        await runtime.serve()

asyncio.run(main())
"""


@dataclass
class Server:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    client: httpx2.AsyncClient

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def serving(home: Path) -> AsyncGenerator[Server, None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, str(home)),
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=die_with_parent,
    )
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    token = (home / FILE_NAME).read_text(encoding="ascii").strip()
    headers = {"Authorization": f"Bearer {token}"}
    client = httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=patience(10)
    )
    try:
        yield Server(process, client)
    finally:
        await client.aclose()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def watch(server: Server, seen: list[str]) -> None:
    """Note every stored event until the server is gone."""
    position = {"Last_Event_ID": seen[-1]} if seen else {}
    try:
        async with following(server.client, **position) as told:
            async for frame in told:
                if isinstance(frame, Frame):
                    assert frame.kind not in ("gap", "reset")
                    seen += [frame.id] if frame.id else []
    except httpx2.HTTPError:
        pass


async def send(server: Server, life: int, accepted: list[str]) -> None:
    """Send messages to several sessions and kill the server in the middle of it."""
    try:
        for number in range(MESSAGES):
            if number == MESSAGES - life - 1:
                await server.kill()
            answer = await server.client.post(
                f"/api/sessions/api:s{number % 3}/messages", json={"text": f"hello {number}"}
            )
            accepted.append(answer.json()["stimulus_id"])
    except httpx2.HTTPError:
        pass


@pytest.mark.timeout(60)
async def test_events_reach_a_reader_once_each_over_several_kills(tmp_path: Path):
    home, seen, accepted = tmp_path / "home", list[str](), list[str]()
    for life in range(LIVES):
        async with serving(home) as server, asyncio.TaskGroup() as group:
            watching = group.create_task(watch(server, seen))
            while not seen and not watching.done() and life == 0:
                await server.client.post("/api/sessions/api:s0/messages?wait=5", json={"text": "a"})
            await send(server, life, accepted)
    async with serving(home) as server, asyncio.TaskGroup() as group:
        watching = group.create_task(watch(server, seen))
        last = await server.client.post("/api/halt", json={})
        assert last.status_code == 200
        async with asyncio.timeout(PATIENCE_S):
            while not await is_all(server, seen):
                pass
        watching.cancel()
    store = await open_sqlite(home / "wakeful.db", clock=SystemClock())
    rows = await store.read("SELECT seq FROM events ORDER BY seq")
    stimuli = {row[0] for row in await store.read("SELECT id FROM stimuli")}
    await store.close()

    numbers = [int(cursor.rpartition("-")[2]) for cursor in seen]
    assert numbers == [row[0] for row in rows if numbers[0] <= row[0] <= numbers[-1]]
    assert set(accepted) <= stimuli
    assert len(accepted) == len(set(accepted)) > LIVES


async def is_all(server: Server, seen: list[str]) -> bool:
    """Tell whether the reader has come to the end of what is stored."""
    metrics = (await server.client.get("/metrics")).text
    (position,) = [
        line for line in metrics.splitlines() if line.startswith("wakeful_bus_position ")
    ]
    return bool(seen) and int(seen[-1].rpartition("-")[2]) >= float(position.split(" ")[1])
