"""The server takes its port at the start and leaves when it is told to."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.integration.http.serving import House, following, house, take
from tests.waiting import eventually
from wakeful.access.credentials import FILE_NAME
from wakeful.bus.bus import Subscription
from wakeful.doors.http.server import HttpOptions, is_loopback
from wakeful.models.scripted import Pause
from wakeful.settings.settings import Settings
from wakeful.vocabulary.errors import Permanent


async def test_a_port_that_is_taken_stops_the_start_with_its_name():
    async with house() as home:
        with pytest.raises(Permanent, match=f"127.0.0.1:{home.port}"):
            async with house(options=HttpOptions(port=home.port)):
                pass


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.com", False),
    ],
)
def test_only_loopback_is_local(host: str, is_local: bool):
    assert is_loopback(host) is is_local


async def test_another_address_is_opened_once_there_is_a_token(tmp_path: Path):
    settings = Settings(home=tmp_path / "home", drain_s=1)
    async with house(settings=settings) as first:
        secret = first.operator
    async with house(settings=settings, options=HttpOptions(host="0.0.0.0", port=0)) as home:
        async with home.client(secret) as client:
            assert (await client.get("/api/sessions")).status_code == 200
        async with home.client(secret, headers={"Host": "0.0.0.0"}) as client:
            assert (await client.get("/api/sessions")).status_code == 421


@pytest.mark.parametrize("content", ["short", "", "\N{SNOWMAN}" * 40])
async def test_a_token_file_that_holds_no_token_stops_the_start(tmp_path: Path, content: str):
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / FILE_NAME).write_text(content, encoding="utf-8")

    with pytest.raises(Permanent, match=FILE_NAME):
        async with house(settings=Settings(home=folder)):
            pass


async def test_a_wait_for_a_turn_is_answered_when_the_server_stops():
    pause = Pause("slowly")
    async with (
        asyncio.TaskGroup() as group,
        house([pause], settings=Settings(drain_s=0)) as home,
    ):
        client = home.client(home.operator)
        await client.post("/api/sessions/main/messages", json={"text": "a"})
        await pause.reached.wait()
        turn_id = (await client.get("/api/sessions/main")).json()["lane"]["turn_id"]
        waiting = group.create_task(client.get(f"/api/turns/{turn_id}/wait?timeout=60"))
        await held(home)
    await client.aclose()

    assert waiting.result().json()["state"] == "open"


async def held(home: House) -> None:
    registry = home.runtime.metrics.registry
    await eventually(lambda: registry.get_sample_value("wakeful_http_lasting") == 1)


async def test_a_stream_that_breaks_is_cut_and_the_server_goes_on(monkeypatch: pytest.MonkeyPatch):
    async with house() as home, home.client(home.operator) as client:
        batch = Subscription.batch

        async def broken(self: Subscription) -> None:
            raise ValueError("broken")

        async with following(client) as told:
            monkeypatch.setattr(Subscription, "batch", broken)
            await client.post("/api/sessions/main/messages", json={"text": "a"})
            with pytest.raises(httpx2.HTTPError):
                await take(told, 100)
        monkeypatch.setattr(Subscription, "batch", batch)
        async with following(client):
            assert (await client.get("/healthz")).status_code == 200


async def test_a_request_that_is_cut_off_leaves_nothing_behind():
    async with house() as home, home.client(home.operator) as client:
        _, writer = await asyncio.open_connection("127.0.0.1", home.port)
        writer.write(
            "POST /api/sessions/main/messages HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {home.operator}\r\nContent-Type: application/json\r\n"
            'Content-Length: 100\r\n\r\n{"text": '.encode()
        )
        await client.get("/healthz")
        writer.transport.abort()

        assert (await client.get("/api/stimuli")).json()["items"] == []
