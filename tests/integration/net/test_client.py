"""What the one client promises: it goes where it may, once, and comes back in time."""

import asyncio
import shutil
import socket
import struct
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from inline_snapshot import snapshot

from tests.integration.net.receiver import (
    PUBLIC,
    Log,
    Network,
    Received,
    Resolver,
    answers,
    certificate,
    receiving,
    says_nothing,
)
from tests.unit.net.test_addresses import NOT_PUBLIC
from tests.unit.net.test_target import REFUSED
from wakeful.net.addresses import allow
from wakeful.net.client import Client, HttpRequest, HttpResponse
from wakeful.net.wire import Patience
from wakeful.vocabulary.clock import ManualClock, SystemClock
from wakeful.vocabulary.errors import InvalidInput, Permanent, Transient

LOOPBACK = allow(["127.0.0.1"])
AT_PUBLIC = f"at_{PUBLIC.replace('.', '_')}"


def get(url: str, **fields: object) -> HttpRequest:
    return HttpRequest(method="GET", url=url, allowed=LOOPBACK, **fields)  # pyright: ignore[reportArgumentType]


async def test_a_request_arrives_as_it_was_asked_for_and_says_no_more():
    async with receiving(answers(201, headers="content-type: a/b\r\n", body="made")) as receiver:
        answer = await Client(SystemClock()).send(
            HttpRequest(
                method="POST",
                url=f"http://127.0.0.1:{receiver.port}/a/../b?c=d",
                headers={"Content-Type": "text/plain", "Authorization": "Bearer x"},
                body=b"hello",
                allowed=LOOPBACK,
            )
        )

    (received,) = receiver.requests
    assert answer == HttpResponse(
        status=201, headers={"content-type": "a/b"}, body=b"made", is_whole=True
    )
    assert received.line == "POST /a/../b?c=d HTTP/1.1"
    assert received.headers | {"host": ""} == snapshot(
        {
            "host": "",
            "connection": "close",
            "accept-encoding": "identity",
            "content-length": "5",
            "user-agent": "wakeful",
            "content-type": "text/plain",
            "authorization": "Bearer x",
        }
    )
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert received.body == b"hello"


async def test_a_name_is_resolved_once_and_that_very_address_is_dialed():
    resolver, log = Resolver([PUBLIC]), Log()
    async with receiving() as receiver:
        network = Network(**{AT_PUBLIC: receiver.port})
        client = Client(SystemClock(), resolver=resolver, dialer=network, observer=log)
        answer = await client.send(get("http://receiver.test/"))

    assert answer.status == 200
    assert resolver.asked == ["receiver.test"]
    assert network.dialed == log.addresses == [PUBLIC]
    assert receiver.requests[0].headers["host"] == "receiver.test"


async def test_a_name_that_turns_to_loopback_is_never_followed_there():
    """T14: resolved once, judged, and dialed at that very address."""
    resolver, log = Resolver([PUBLIC], ["127.0.0.1"]), Log()
    async with receiving() as receiver:
        network = Network(**{AT_PUBLIC: receiver.port, "at_127_0_0_1": receiver.port})
        client = Client(SystemClock(), resolver=resolver, dialer=network, observer=log)
        request = HttpRequest(method="GET", url="http://rebinding.test/")
        first = await client.send(request)
        with pytest.raises(Permanent, match=r"'rebinding\.test' leads to an address that is not"):
            await client.send(request)

    assert first.status == 200
    assert resolver.asked == ["rebinding.test"] * 2
    assert network.dialed == log.addresses == [PUBLIC]
    assert receiver.connections == 1


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_a_name_that_leads_inside_even_beside_a_public_address_is_not_dialed(address: str):
    network, log = Network(), Log()
    for found in ([address], [PUBLIC, address], [address, PUBLIC]):
        client = Client(SystemClock(), resolver=Resolver(found), dialer=network, observer=log)
        with pytest.raises(Permanent, match="not public"):
            await client.send(HttpRequest(method="GET", url="http://inside.test/"))

    assert network.dialed == log.connects == []


@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_an_address_inside_is_not_dialed_when_it_is_written_out(address: str):
    network, resolver = Network(), Resolver([PUBLIC])
    host = f"[{address}]" if ":" in address else address
    with pytest.raises((Permanent, InvalidInput)):
        await Client(SystemClock(), resolver=resolver, dialer=network).send(
            HttpRequest(method="GET", url=f"http://{host}/")
        )

    assert network.dialed == resolver.asked == []


async def test_a_url_that_is_refused_is_neither_resolved_nor_dialed():
    network, resolver = Network(), Resolver([PUBLIC])
    client = Client(SystemClock(), resolver=resolver, dialer=network)
    for url in REFUSED:
        with pytest.raises(InvalidInput):
            await client.send(get(url))

    assert network.dialed == resolver.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_the_metadata_of_a_cloud_is_an_answer_and_never_followed(status: int):
    """T14: no redirect is followed."""
    log = Log()
    there = "http://169.254.169.254/latest/meta-data/"
    async with receiving(answers(status, headers=f"location: {there}\r\n")) as receiver:
        answer = await Client(SystemClock(), observer=log).send(get(receiver.url))

    assert (answer.status, answer.headers["location"]) == (status, there)
    assert log.addresses == ["127.0.0.1"]


async def test_a_host_with_a_dead_address_is_reached_at_its_next_one():
    log, resolver = Log(), Resolver(["1.1.1.1", PUBLIC])
    async with receiving() as receiver:
        network = Network(**{AT_PUBLIC: receiver.port})
        client = Client(SystemClock(), resolver=resolver, dialer=network, observer=log)
        answer = await client.send(get("http://two.test/"))

    assert answer.status == 200
    assert log.addresses == ["1.1.1.1", PUBLIC]
    assert len(resolver.asked) == 1


async def test_a_host_with_many_dead_addresses_costs_four_attempts():
    log = Log()
    resolver = Resolver([f"1.1.1.{number}" for number in range(1, 100)])
    client = Client(SystemClock(), resolver=resolver, dialer=Network(), observer=log)
    with pytest.raises(Transient, match=r"'many\.test' cannot be connected to"):
        await client.send(get("http://many.test/"))

    assert len(log.connects) == 4


@pytest.mark.parametrize("found", [[], ["rubbish"], ["1.2.3"]])
async def test_a_name_without_an_address_may_have_one_later(found: list[str]):
    with pytest.raises(Transient, match=r"'none\.test' (has no address|cannot be resolved)"):
        await Client(SystemClock(), resolver=Resolver(found)).send(get("http://none.test/"))


async def test_the_machine_is_asked_for_names_by_default():
    async with receiving() as receiver:
        url = f"http://localhost:{receiver.port}/"
        with pytest.raises(Permanent):
            await Client(SystemClock()).send(HttpRequest(method="GET", url=url))
        request = HttpRequest(method="GET", url=url, allowed=allow(["localhost"]))
        answer = await Client(SystemClock()).send(request)

    assert answer.status == 200
    assert receiver.connections == 1


async def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch):
    log = Log()
    async with receiving() as proxy, receiving() as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await Client(SystemClock(), observer=log).send(get(receiver.url))

    assert (proxy.connections, receiver.connections) == (0, 1)
    assert [connect.port for connect in log.connects] == [receiver.port]


async def test_cookies_are_not_kept():
    async with receiving(answers(200, headers="set-cookie: a=b\r\n")) as receiver:
        client = Client(SystemClock())
        answer = await client.send(get(receiver.url))
        await client.send(get(receiver.url))

    assert "set-cookie" not in answer.headers
    assert all("cookie" not in received.headers for received in receiver.requests)
    assert receiver.connections == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("host", "evil.test"), ("cookie", "a=b"), ("content-length", "0"), ("connection", "x")),
        *(("transfer-encoding", "chunked"), ("proxy-authorization", "x"), ("x\r\ny", "z")),
        *(("accept", "a\r\nx: y"), ("accept", "a\x00"), ("accept", ""), ("accept", " a")),
        ("user-agent", "grüße"),
    ],
)
async def test_a_header_that_is_not_on_the_list_or_breaks_its_line_is_refused(
    name: str, value: str
):
    log = Log()
    with pytest.raises(InvalidInput, match="headers: "):
        await Client(SystemClock(), observer=log).send(
            get("http://127.0.0.1:1/", headers={name: value})
        )

    assert log.connects == []


async def test_a_method_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="method: must be"):
        await Client(SystemClock()).send(HttpRequest(method="CONNECT", url="http://example.com/"))


async def test_an_endless_body_is_cut_and_its_sender_is_left():
    async def pours(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with receiving(pours) as receiver:
        answer = await Client(SystemClock()).send(get(receiver.url, most_bytes=100_000))
        await receiver.gone()

    assert (len(answer.body), answer.is_whole) == (100_000, False)


async def test_a_body_of_exactly_the_limit_is_whole():
    async with receiving(answers(200, body="12345")) as receiver:
        answer = await Client(SystemClock()).send(get(receiver.url, most_bytes=5))

    assert (answer.body, answer.is_whole) == (b"12345", True)


async def test_a_packed_body_is_not_unpacked():
    packed = "content-encoding: gzip\r\n"
    async with receiving(answers(200, headers=packed, body="bomb")) as receiver:
        answer = await Client(SystemClock()).send(get(receiver.url))

    assert answer.body == b"bomb"


async def test_endless_headers_are_an_error():
    async def pours(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x: y\r\n" * 10_000)
            await writer.drain()

    async with receiving(pours) as receiver:
        with pytest.raises(Transient, match=r"'127\.0\.0\.1' does not speak HTTP/1\.1"):
            await Client(SystemClock()).send(get(receiver.url))


@pytest.mark.parametrize(
    "said", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"]
)
async def test_an_answer_that_is_none_may_be_one_later(said: bytes):
    async def speaks(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    async with receiving(speaks) as receiver:
        with pytest.raises(Transient, match=r"'127\.0\.0\.1' "):
            await Client(SystemClock()).send(get(receiver.url))


async def test_a_connection_that_breaks_may_hold_later():
    async def resets(received: Received, writer: asyncio.StreamWriter) -> None:
        at_once = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.transport.abort()

    async with receiving(resets) as receiver:
        broken = await refusal(Client(SystemClock()), get(receiver.url))

    assert str(broken) == "'127.0.0.1' broke the connection"


async def test_a_receiver_that_is_not_there_may_be_there_later():
    async with receiving() as receiver:
        url = receiver.url
    with pytest.raises(Transient, match=r"'127\.0\.0\.1:\d+' cannot be connected to") as caught:
        await Client(SystemClock()).send(get(url))

    assert "canary" not in str(caught.value)


async def test_a_silent_receiver_is_left_by_the_clock():
    clock = ManualClock()
    async with receiving(says_nothing) as receiver, asyncio.TaskGroup() as group:
        task = group.create_task(refusal(Client(clock), get(receiver.url)))
        await receiver.next()
        clock.advance(14.9)
        await receiver_rests()
        assert not task.done()
        clock.advance(0.2)
        await receiver.gone()

    assert str(task.result()) == "'127.0.0.1' took too long"


async def test_a_receiver_that_drips_is_left_when_the_whole_takes_too_long():
    clock, patience = ManualClock(), Patience(read_s=1000)
    drops: asyncio.Queue[bytes] = asyncio.Queue()

    async def drips(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n")
        while True:
            writer.write(await drops.get())
            await writer.drain()

    async with receiving(drips) as receiver, asyncio.TaskGroup() as group:
        task = group.create_task(refusal(Client(clock, patience=patience), get(receiver.url)))
        await receiver.next()
        for _ in range(25):
            drops.put_nowait(b"x")
            clock.advance(1.0)
            await receiver_rests()
        await receiver.gone()

    assert str(task.result()) == "'127.0.0.1' took too long"


async def test_an_address_that_swallows_the_connection_is_left_for_the_next():
    clock = ManualClock()
    dialing: asyncio.Queue[str] = asyncio.Queue()

    class Swallowing(Network):
        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109
            local_address: str | None = None,
            socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
        ) -> httpcore2.AsyncNetworkStream:
            dialing.put_nowait(host)
            return await asyncio.get_running_loop().create_future()

    client = Client(clock, resolver=Resolver(["1.1.1.1", PUBLIC]), dialer=Swallowing())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(refusal(client, get("http://swallowed.test/")))
        first = await dialing.get()
        clock.advance(5)
        second = await dialing.get()
        clock.advance(5)

    assert (first, second) == ("1.1.1.1", PUBLIC)
    assert str(task.result()) == "'swallowed.test' took too long"


async def test_a_name_server_that_does_not_answer_is_left_by_the_clock():
    clock = ManualClock()
    asked = asyncio.Event()

    async def resolver(host: str, port: int) -> Sequence[str]:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    async with asyncio.TaskGroup() as group:
        client = Client(clock, resolver=resolver)
        task = group.create_task(refusal(client, get("http://slow.test/")))
        await asked.wait()
        clock.advance(5)

    assert str(task.result()) == "'slow.test' took too long"


async def test_a_request_that_is_called_off_leaves_no_connection():
    async with receiving(says_nothing) as receiver:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(Client(SystemClock()).send(get(receiver.url)))
            await receiver.next()
            task.cancel()
        await receiver.gone()

    assert task.cancelled()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_the_certificate_must_be_for_the_name_whatever_the_address(tmp_path: Path):
    served, trusted = certificate(tmp_path, "receiver.test")
    async with receiving(tls=served) as receiver:
        served.sni_callback = lambda _, name, __: receiver.names.append(name)
        network = Network(**{AT_PUBLIC: receiver.port})
        client = Client(SystemClock(), resolver=Resolver([PUBLIC]), dialer=network, tls=trusted)
        answer = await client.send(get("https://receiver.test/"))
        wrong = await refusal(client, get("https://other.test/"))
        strange = Client(SystemClock(), resolver=Resolver([PUBLIC]), dialer=network)
        unknown = await refusal(strange, get("https://receiver.test/"))

    assert answer.status == 200
    assert str(wrong) == "'other.test' has a certificate that cannot be trusted"
    assert str(unknown) == "'receiver.test' has a certificate that cannot be trusted"
    assert receiver.names == ["receiver.test", "other.test", "receiver.test"]
    assert len(receiver.requests) == 1


async def test_a_handshake_that_never_ends_is_left_by_the_clock_and_leaves_no_connection():
    clock = ManualClock()
    greeted, left = asyncio.Event(), asyncio.Event()

    async def keeps_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(keeps_still, "127.0.0.1", 0)
    async with server, asyncio.TaskGroup() as group:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        task = group.create_task(refusal(Client(clock), get(url)))
        await greeted.wait()
        clock.advance(5)
        await left.wait()

    assert str(task.result()) == "'127.0.0.1' took too long"


async def test_a_look_up_that_fails_or_hangs_holds_up_no_other(monkeypatch: pytest.MonkeyPatch):
    clock, release = ManualClock(), threading.Event()
    hanging: asyncio.Queue[str] = asyncio.Queue()
    loop, ask = asyncio.get_running_loop(), socket.getaddrinfo

    def getaddrinfo(host: str, *args: Any, **options: Any) -> Any:
        if host == "hangs.test":
            loop.call_soon_threadsafe(hanging.put_nowait, host)
            release.wait(10)
        if host.endswith(".test"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return ask(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    client = Client(clock)
    async with receiving() as receiver, asyncio.TaskGroup() as group:
        tasks = [group.create_task(refusal(client, get("http://hangs.test/"))) for _ in range(64)]
        for _ in tasks:
            await hanging.get()
        unknown = await refusal(client, get("http://unknown.test/"))
        url = f"http://localhost:{receiver.port}/"
        answer = await client.send(HttpRequest(method="GET", url=url, allowed=allow(["localhost"])))
        clock.advance(5)
    release.set()

    assert answer.status == 200
    assert str(unknown) == "'unknown.test' cannot be resolved"
    assert {str(task.result()) for task in tasks} == {"'hangs.test' took too long"}


async def test_where_no_thread_can_be_started_a_name_may_be_looked_up_later(
    monkeypatch: pytest.MonkeyPatch,
):
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)

    assert str(await refusal(Client(SystemClock()), get("http://a.test/"))) == (
        "'a.test' cannot be resolved"
    )


async def refusal(client: Client, request: HttpRequest) -> Transient:
    with pytest.raises(Transient) as caught:
        await client.send(request)
    return caught.value


async def receiver_rests() -> None:
    """Let both sides do what they can do without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)
