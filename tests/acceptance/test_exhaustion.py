"""Take files and memory away from the real server: it sheds load, and loses nothing."""

import asyncio
import json
import resource
import socket
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.children import die_with_parent
from tests.integration.cli.shell import COMMAND, Home, Server
from tests.patience import patience
from tests.waiting import eventually
from wakeful.vocabulary.clock import SystemClock

FILES = 64
FLOOD = 150
HEADROOM = 24 * 1024 * 1024  # bytes of address space beyond what an idle server has
LARGE = "x" * 900_000
PATIENCE_S = patience(30)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@contextmanager
def up_with_few_files(home: Home) -> Generator[Server, None, None]:
    command = ["/bin/sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *COMMAND]
    with subprocess.Popen(
        [*command, "up", "--port", "0", "--json"],
        env=home.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=die_with_parent,
    ) as process:
        assert process.stdout is not None
        try:
            yield Server(process, json.loads(process.stdout.readline()))
        finally:
            process.kill()


def client(home: Home, server: Server) -> httpx.AsyncClient:
    token = (home.folder / "operator.token").read_text().strip()
    return httpx.AsyncClient(
        base_url=server.told["url"],
        headers={"Authorization": f"Bearer {token}"},
        timeout=PATIENCE_S,
        trust_env=False,
        limits=httpx.Limits(max_connections=None),
    )


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def address_space(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_a_flood_of_connections_leaves_room_for_health_for_stop_and_for_files(home: Home):
    """F34: descriptors run out, health and stop do not."""
    with up_with_few_files(home) as server, ExitStack() as stack:
        pid, port = server.process.pid, int(server.told["url"].rpartition(":")[2])
        async with client(home, server) as old:
            assert (await old.get("/healthz")).status_code == 200
            for _ in range(FLOOD):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            used_s = processor_s(pid)
            await SystemClock().sleep(1)
            used_s = processor_s(pid) - used_s
            files = open_files(pid)
            sent = await old.post("/api/sessions/main/messages", json={"text": "hello"})
            stopped = await old.post("/api/sessions/main/stop", json={})
        async with client(home, server) as new:
            newcomer = await new.get("/healthz")
            stack.close()
            after = await new.post("/api/sessions/main/messages?wait=10", json={"text": "hello"})
        code = server.stop()

    assert (sent.status_code, stopped.status_code) == (202, 200)
    assert (newcomer.status_code, after.status_code, code) == (200, 200, 0)
    assert files < FILES * 0.75
    assert used_s < 0.5


async def test_what_was_accepted_before_memory_ran_out_reaches_its_end(home: Home):
    """F34: memory runs out, and nothing that was accepted is lost."""

    async def send(number: int) -> str | None:
        try:
            answer = await http.post(f"/api/sessions/s{number}/messages", json={"text": LARGE})
        except httpx.HTTPError:
            return None  # refused, or the process is gone
        told[answer.status_code] += 1
        return answer.json()["stimulus_id"] if answer.status_code == 202 else None

    told: Counter[int] = Counter()
    with home.up() as server:
        pid = server.process.pid
        size = address_space(pid)
        async with client(home, server) as http:
            assert (await http.get("/readyz")).status_code == 200
            resource.prlimit(pid, resource.RLIMIT_AS, (size + HEADROOM, size + HEADROOM))
            ids = set(await asyncio.gather(*(send(number) for number in range(60)))) - {None}
        # It may be dying of it, by any error or by a crash of a library: nobody promises how.
        server.stop()

    with home.up():
        states = await settled(home.folder / "wakeful.db")

    assert ids <= states.keys()
    assert set(told) <= {202, 500, 503, 507}  # nobody is told that the request was wrong


async def settled(database: Path) -> dict[str, str]:
    """Return the state of every stimulus once all have reached their end."""

    def states() -> dict[str, str]:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return dict(connection.execute("SELECT id, state FROM stimuli").fetchall())

    await eventually(lambda: not {"pending", "claimed", "parked"} & set(states().values()))
    return states()
