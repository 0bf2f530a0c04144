"""A reader whose machine or network is gone: no packet comes back, not even a goodbye."""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.children import die_with_parent
from tests.integration.http.serving import House, house
from tests.integration.http.test_events import publish
from tests.integration.http.test_slow_readers import PADDING, curl_program, open_streams
from tests.patience import patience
from tests.waiting import eventually
from wakeful.doors.http import server
from wakeful.doors.http.server import HttpOptions
from wakeful.doors.http.sse import KEEP_ALIVE_S, SEND_S
from wakeful.settings.settings import Settings
from wakeful.vocabulary.clock import ManualClock

TOKEN = "3f9c1b7a5e2d4860a1b2c3d4e5f607183f9c1b7a5e2d4860"
NETWORK = "198.18.{}.{}"  # kept for tests of networks (RFC 2544)


@dataclass
class Elsewhere:
    """Another machine, as far as the network knows; a cable leads there."""

    name: str
    our_address: str

    def cut(self) -> None:
        """Lose every packet from now on, in both directions."""
        ip("netns", "exec", self.name, "ip", "link", "set", "there", "down")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    number = os.getpid() % 250
    ours, theirs = NETWORK.format(number, 1), NETWORK.format(number, 2)
    name, here = f"wakeful-{os.getpid()}", f"wk{os.getpid()}"
    with ExitStack() as stack:
        try:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("link", "add", here, "type", "veth", "peer", "name", "there", "netns", name)
            stack.callback(ip, "link", "del", here)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network of our own can be made here: {error}")
        ip("address", "add", f"{ours}/30", "dev", here)
        ip("link", "set", here, "up")
        ip("netns", "exec", name, "ip", "address", "add", f"{theirs}/30", "dev", "there")
        ip("netns", "exec", name, "ip", "link", "set", "there", "up")
        yield Elsewhere(name, ours)


@asynccontextmanager
async def open_house(
    elsewhere: Elsewhere, folder: Path, clock: ManualClock
) -> AsyncGenerator[House, None]:
    """Run a server that listens at our end of the cable."""
    options = HttpOptions(host=elsewhere.our_address, port=0, operator_token=TOKEN)
    settings = Settings(home=folder, drain_s=1)
    async with house(clock=clock, settings=settings, options=options) as home:
        yield home


async def follow_from(elsewhere: Elsewhere, home: House) -> asyncio.subprocess.Process:
    """Have a reader follow the events from over there; when this returns, it does."""
    process = await asyncio.create_subprocess_exec(
        *("ip", "netns", "exec", elsewhere.name, curl_program(), "--silent", "--no-buffer"),
        *("--header", f"Authorization: Bearer {home.operator}"),
        f"http://{elsewhere.our_address}:{home.port}/api/events",
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=die_with_parent,
    )
    assert process.stdout is not None
    async with asyncio.timeout(patience(10)):
        assert await process.stdout.readline() == b": wakeful\n"
    return process


async def end(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.communicate()


async def test_a_quiet_stream_to_nobody_ends(
    elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """F19: a half-open connection is noticed."""
    monkeypatch.setattr(server, "UNHEARD_S", 1)
    clock = ManualClock()
    async with open_house(elsewhere, tmp_path / "home", clock) as home:
        reader = await follow_from(elsewhere, home)
        elsewhere.cut()
        clock.advance(KEEP_ALIVE_S)
        await eventually(lambda: open_streams(home) == 0)
        await end(reader)


async def test_a_busy_stream_to_nobody_ends_by_the_send_timeout(
    elsewhere: Elsewhere, tmp_path: Path
):
    clock = ManualClock()
    async with open_house(elsewhere, tmp_path / "home", clock) as home:
        reader = await follow_from(elsewhere, home)
        elsewhere.cut()
        for _ in range(40):
            await publish(home, *["a.b"] * 50, data=PADDING)
        assert open_streams(home) == 1
        clock.advance(KEEP_ALIVE_S)
        clock.advance(SEND_S)
        clock.advance(SEND_S)
        await eventually(lambda: open_streams(home) == 0)
        await end(reader)
