"""Slow, stopped and vanished readers of events cost the server little, and the others nothing."""

import asyncio
import re
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.children import die_with_parent
from tests.integration.http.serving import House, following, house, take
from tests.integration.http.test_events import deaf, publish, start_of
from tests.integration.http.test_floods import resident_mb
from tests.patience import patience
from tests.waiting import eventually
from wakeful.doors.http.open_streams import LASTING_EACH
from wakeful.doors.http.sse import KEEP_ALIVE_S, SEND_S
from wakeful.settings.settings import Settings
from wakeful.vocabulary.clock import ManualClock

PADDING: dict[str, object] = {"padding": "x" * 8000}
STOPPED = 40  # readers at once
STREAMS = 1000
EACH_ADDRESS = 250  # of them

pytestmark = pytest.mark.timeout(60)


def open_streams(home: House) -> float:
    return home.runtime.metrics.registry.get_sample_value("wakeful_http_lasting") or 0.0


def numbers(told: str) -> list[int]:
    """Return the numbers of the whole frames of a stream; the last one may be cut."""
    whole = told[: told.rfind("\n\n") + 1]
    return [int(number) for number in re.findall(r"^id: .+-(\d+)$", whole, re.MULTILINE)]


def curl_program() -> str:
    """Return the path of curl, or skip the test."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("no curl here (scripts/install-test-tools installs it on Debian)")
    return program


@asynccontextmanager
async def curl(
    home: House, file: Path, *options: str, since: str
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """Have a real curl follow the events into a file; when this is entered, it has begun."""
    header = f"Authorization: Bearer {home.operator}"
    process = await asyncio.create_subprocess_exec(
        *(curl_program(), "--silent", "--no-buffer", "--output", str(file), "--header", header),
        *(*options, f"{home.url}/api/events?since={since}"),
        preexec_fn=die_with_parent,
    )
    try:
        await eventually(file.exists)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_stopped_reader_delays_nobody_and_loses_nothing(tmp_path: Path):
    """F19: on return everything that was missed comes by its id."""
    clock, file = ManualClock(), tmp_path / "told"
    settings = Settings(home=tmp_path / "home", drain_s=1)
    async with house(clock=clock, settings=settings) as home, home.client(home.operator) as client:
        start = await start_of(home)
        async with curl(home, file, since=start) as stopped, following(client) as told:
            stopped.send_signal(signal.SIGSTOP)
            for _ in range(40):  # far more than the buffers between two sockets hold
                await publish(home, *["a.b"] * 50, data=PADDING)
                await take(told, 50)
            clock.advance(KEEP_ALIVE_S)
            clock.advance(SEND_S)
            clock.advance(SEND_S)
            await eventually(lambda: open_streams(home) == 1)
            stopped.send_signal(signal.SIGCONT)
            await stopped.wait()
        seen = numbers(file.read_text())
        last = f"{start.rpartition('-')[0]}-{len(seen)}"
        async with following(client, Last_Event_ID=last) as told:
            rest = await take(told, 2000 - len(seen))

    assert seen == list(range(1, len(seen) + 1))
    assert [int((frame.id or "").rpartition("-")[2]) for frame in rest] == list(
        range(len(seen) + 1, 2001)
    )


async def test_a_slow_reader_gets_everything_while_others_are_far_ahead(tmp_path: Path):
    file = tmp_path / "told"
    settings = Settings(home=tmp_path / "home", drain_s=1)
    async with house(settings=settings) as home, home.client(home.operator) as client:
        start = await start_of(home)
        async with (
            curl(home, file, "--limit-rate", "8M", since=start),
            following(client) as told,
        ):
            for _ in range(40):
                await publish(home, *["a.b"] * 50, data=PADDING)
                await take(told, 50)
            had = len(numbers(file.read_text()))
            await publish(home, "z.end")
            await eventually(lambda: "event: z.end" in file.read_text()[-1000:])

    # The first event is of the session that every agent has.
    assert numbers(file.read_text()) == list(range(1, 2003))
    assert had < 2000
    assert "event: reset" not in file.read_text()


@pytest.mark.parametrize("is_replay", [True, False], ids=["replay", "live"])
async def test_a_stopped_reader_holds_little_memory(tmp_path: Path, is_replay: bool):
    """T22: what nobody reads is not kept for them."""
    settings = Settings(home=tmp_path / "home", drain_s=1)
    async with house(settings=settings) as home, home.client(home.operator) as client:
        query = f"?since={await start_of(home)}" if is_replay else ""
        if is_replay:
            await publish(home, *["a.b"] * 1000, data=PADDING)
        before = resident_mb()
        with ExitStack() as stack:
            for number in range(STOPPED):
                stack.enter_context(deaf(home, query))
                await eventually(lambda number=number: open_streams(home) == number + 1)
            async with following(client, "?topics=z.end") as told:
                for _ in range(3):
                    await publish(home, *["a.b"] * 1000, data=PADDING)
                await publish(home, "z.end")
                await take(told, 1)
            grown = resident_mb() - before

    assert grown / STOPPED < 1.5


async def test_a_thousand_streams_all_get_an_event():
    """T22: many readers are no reason to fail one."""
    async with house() as home, asyncio.timeout(patience(45)):
        wanted = range(STREAMS // LASTING_EACH + 1)
        secrets = [await home.token("read", name=f"reader {number}") for number in wanted]
        opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for number in range(STREAMS):
            address = f"127.0.0.{2 + number // EACH_ADDRESS}"
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", home.port, local_addr=(address, 0)
            )
            opened.append((reader, writer))
            secret = secrets[number // LASTING_EACH]
            head = f"Host: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
            writer.write(f"GET /api/events HTTP/1.1\r\n{head}".encode())
        for reader, _ in opened:
            await reader.readuntil(b": wakeful\n\n")
        together = open_streams(home)
        await publish(home, "a.b")
        for reader, _ in opened:
            await reader.readuntil(b"event: a.b\n")
        for _, writer in opened:
            writer.transport.abort()
        await eventually(lambda: open_streams(home) == 0)

    assert together == STREAMS
