"""What `GET /api/events` promises its readers: every stored event, once, in order."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.http.serving import Frame, House, following, frames, house, take
from tests.patience import patience
from tests.waiting import eventually
from wakeful.bus import bus as bus_module
from wakeful.doors.http.open_streams import LASTING_EACH
from wakeful.doors.http.server import HttpOptions
from wakeful.doors.http.sse import KEEP_ALIVE_S, SEND_S
from wakeful.models.scripted import Pause
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.event import Event


async def publish(home: House, *kinds: str, data: dict[str, object] | None = None) -> None:
    bus = home.runtime.bus

    def write(tx: Tx) -> None:
        for kind in kinds:
            bus.publish(tx, Event(kind=kind, data=data or {}))

    await home.runtime.store.transact(write)


@contextmanager
def deaf(home: House, query: str = "") -> Generator[socket.socket, None, None]:
    """Open a stream and do not read it; its buffer holds next to nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", home.port))
        connection.setblocking(False)
        connection.sendall(
            f"GET /api/events{query} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {home.operator}\r\n\r\n".encode()
        )
        yield connection


async def read_until(connection: socket.socket, mark: bytes) -> bytes:
    """Read what a deaf reader left unread, up to a mark."""
    read = bytearray()
    async with asyncio.timeout(patience(15)):
        while mark not in read[-100_000:]:
            read += await asyncio.get_running_loop().sock_recv(connection, 65_536)
    return bytes(read)


async def start_of(home: House) -> str:
    return (await home.runtime.cursor()).rpartition("-")[0] + "-0"


async def test_a_reader_gets_a_comment_then_events_with_id_kind_and_data():
    async with (
        house() as home,
        home.client(home.operator) as client,
        client.stream("GET", "/api/events") as response,
    ):
        told = frames(response)
        assert await anext(told) == ": wakeful"
        receipt = (await client.post("/api/sessions/main/messages", json={"text": "a"})).json()
        (created, accepted) = await take(told, 2)

    assert response.headers["content-type"].startswith("text/event-stream")
    assert created.kind == "session.created"
    assert accepted.kind == "stimulus.accepted"
    assert accepted.data["stimulus_id"] == receipt["stimulus_id"]
    assert accepted.data["session_key"] == "agent:main:main"
    assert accepted.data["outcome"] == "started"
    assert accepted.id is not None


async def test_replay_meets_live_events_over_many_reconnects_without_gap_or_repeat():
    async with house() as home, home.client(home.operator) as client:
        cursor = await start_of(home)
        seen: list[int] = []
        for count in range(1, 12):
            await publish(home, *["a.b"] * count)
            headers = {"Last-Event-ID": cursor}
            async with client.stream("GET", "/api/events", headers=headers) as response:
                told = frames(response)
                for frame in await take(told, count):
                    seen.append(int((frame.id or "").rpartition("-")[2]))
                await publish(home, "c.d")
                (live,) = await take(told, 1)
                seen.append(int((live.id or "").rpartition("-")[2]))
                cursor = live.id or ""

        assert seen == list(range(1, len(seen) + 1))


async def test_a_reader_resumes_across_a_restart_of_the_server(tmp_path: Path):
    settings = Settings(home=tmp_path / "home", drain_s=1)
    async with (
        house(settings=settings) as home,
        home.client(home.operator) as client,
        following(client, f"?since={await start_of(home)}") as told,
    ):
        await publish(home, "x.a", "x.b", "x.c")
        first = [frame for frame in await take(told, 3) if frame.kind != "session.created"]
    async with house(settings=settings) as home, home.client(home.operator) as client:
        await publish(home, "x.d")
        async with following(client, "?topics=x.*", Last_Event_ID=first[-1].id or "") as told:
            rest = await take(told, 2)

    assert [frame.kind for frame in first + rest] == ["x.a", "x.b", "x.c", "x.d"]


async def test_an_unknown_position_gets_one_reset_from_which_it_goes_on():
    async with house() as home, home.client(home.operator) as client:
        await publish(home, "a.b")
        async with client.stream("GET", "/api/events?since=other-5") as response:
            told = frames(response)
            (reset,) = await take(told, 1)
            await publish(home, "c.d")
            (live,) = await take(told, 1)
        async with client.stream("GET", f"/api/events?since={reset.id}") as response:
            (again,) = await take(frames(response), 1)

    assert reset.kind == "reset"
    assert live.kind == again.kind == "c.d"
    assert live.id == again.id


async def test_topics_choose_the_kinds():
    async with house() as home, home.client(home.operator) as client:
        query = f"topics=turn.*,halt.set&since={await start_of(home)}"
        async with client.stream("GET", f"/api/events?{query}") as response:
            await publish(home, "stimulus.x", "turn.x", "halt.lifted", "halt.set")
            chosen = await take(frames(response), 2)
        bad = await client.get("/api/events?topics=A B")

        assert [frame.kind for frame in chosen] == ["turn.x", "halt.set"]
        assert bad.status_code == 422


async def test_words_come_live_and_are_marked():
    pause = Pause("slowly")
    async with (
        house([pause]) as home,
        home.client(home.operator) as client,
        following(client, "?topics=turn.delta") as told,
    ):
        await client.post("/api/sessions/main/messages", json={"text": "a"})
        (delta,) = await take(told, 1)
        pause.go_on.set()

    assert delta.id is None
    assert delta.data["live"] is True
    assert delta.data["text"] == "slowly"


async def test_a_quiet_stream_is_kept_alive_for_hours():
    clock = ManualClock()
    async with (
        house(clock=clock) as home,
        home.client(home.operator) as client,
        following(client) as told,
    ):
        for _ in range(500):
            clock.advance(KEEP_ALIVE_S)
            assert await anext(told) == ": keep-alive"
        await publish(home, "a.b")
        (frame,) = await take(told, 1)

    assert frame.kind == "a.b"


async def test_revoking_a_token_closes_its_streams_at_once():
    """T8: a credential is worth nothing from the moment it is taken back."""
    async with house() as home:
        secret = await home.token("read", name="t")
        async with home.client(secret) as client, home.client(home.operator) as operator:
            async with client.stream("GET", "/api/events") as response:
                told = frames(response)
                assert await anext(told) == ": wakeful"
                await operator.delete("/api/tokens/t")
                async with asyncio.timeout(patience(2)):
                    rest = [frame async for frame in told]

            assert rest == []
            assert (await client.get("/api/events")).status_code == 401


async def test_a_stream_ends_when_its_token_expires():
    clock = ManualClock()
    async with house(clock=clock) as home:
        secret = await home.token("read", name="t", expires_at=clock.now() + 60_000)
        async with home.client(secret) as client, following(client) as told:
            clock.advance(61)
            async with asyncio.timeout(patience(2)):
                rest = [frame async for frame in told if isinstance(frame, Frame)]

    assert rest == []


async def test_a_credential_has_only_so_many_streams():
    async with house() as home, home.client(home.operator) as operator:
        async with asyncio.TaskGroup() as group, asyncio.timeout(patience(10)):
            secret = await home.token("read", name="t")
            head = f"Host: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
            opened: list[asyncio.StreamWriter] = []

            async def stream() -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", home.port)
                opened.append(writer)
                writer.write(f"GET /api/events HTTP/1.1\r\n{head}".encode())
                await reader.readuntil(b": wakeful")

            for _ in range(LASTING_EACH):
                group.create_task(stream())
        async with home.client(secret) as client:
            refused = await client.get("/api/events")
        async with home.client(await home.token("send", name="s")) as client:
            path = "/api/sessions/api:x/messages?wait=10"
            waited = await client.post(path, json={"text": "a"})
        others = await operator.get("/api/sessions")
        for writer in opened:
            writer.transport.abort()

    assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
    assert others.status_code == waited.status_code == 200


async def test_a_reader_that_stops_reading_is_cut_off_and_may_resume():
    clock = ManualClock()
    async with house(clock=clock) as home, home.client(home.operator) as client:
        cursor = await start_of(home)
        gauge = home.runtime.metrics.registry
        with deaf(home, f"?since={cursor}"):
            await eventually(lambda: gauge.get_sample_value("wakeful_http_lasting") == 1)
            for _ in range(64):
                await publish(home, *["a.b"] * 10, data={"padding": "x" * 20_000})
            other = await client.get("/api/sessions")
            clock.advance(KEEP_ALIVE_S)
            clock.advance(SEND_S)
            clock.advance(SEND_S)
            await eventually(lambda: gauge.get_sample_value("wakeful_http_lasting") == 0)
            async with client.stream("GET", f"/api/events?since={cursor}") as response:
                again = await take(frames(response), 640)

    assert other.status_code == 200
    assert len({frame.id for frame in again}) == 640


async def test_a_slow_reader_is_told_of_the_gap_and_misses_nothing_stored():
    async with house() as home:
        gauge = home.runtime.metrics.registry
        with deaf(home) as slow:
            await eventually(lambda: gauge.get_sample_value("wakeful_http_lasting") == 1)
            total = bus_module.QUEUE_LIMIT * 3
            for _ in range(total // 256):
                await publish(home, *["a.b"] * 256, data={"padding": "x" * 8000})
            await publish(home, "z.end")
            told = await read_until(slow, b"event: z.end")

    assert told.count(b"event: gap") >= 1
    assert told.count(b"event: a.b") == total


async def test_streams_end_when_the_server_stops():
    async with asyncio.timeout(patience(8)):
        async with house(options=HttpOptions(port=0)) as home:
            client = home.client(home.operator)
            context = client.stream("GET", "/api/events")
            response = await context.__aenter__()
            told = frames(response)
            assert await anext(told) == ": wakeful"
        rest = [frame async for frame in told]
        await context.__aexit__(None, None, None)
        await client.aclose()

    assert rest == []


async def test_a_waiting_request_is_answered_when_the_server_stops():
    pause = Pause("slowly")
    async with (
        asyncio.TaskGroup() as group,
        house([pause], settings=Settings(drain_s=0)) as home,
    ):
        client = home.client(home.operator)
        message = client.post("/api/sessions/main/messages?wait=60", json={"text": "a"})
        waiting = group.create_task(message)
        await pause.reached.wait()
    await client.aclose()

    assert waiting.result().status_code == 202
