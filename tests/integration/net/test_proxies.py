"""The way through a proxy: a real one on loopback, to places whose names only it knows."""

import asyncio
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from tests.integration.net.proxy import LoopbackProxy, proxying
from tests.integration.net.receiver import Receiver, answers, certificate, receiving
from wakeful.net.addresses import allow
from wakeful.net.dialing import CONNECT_S, system_authorities
from wakeful.net.exchange import AddressRefused, OutOfReach
from wakeful.net.proxies import proxy_to
from wakeful.net.streamed import StreamingClient
from wakeful.net.target import parse
from wakeful.vocabulary.clock import ManualClock, SystemClock

NAME = "provider.test"
with_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed"
)


def client_of(
    url: str,
    proxy: str,
    *,
    trusted: ssl.SSLContext | None = None,
    clock: ManualClock | None = None,
) -> StreamingClient:
    target = parse(url)
    led = proxy_to(target, {"ALL_PROXY": proxy})
    assert led is not None
    return StreamingClient(
        target,
        clock or SystemClock(),
        allowed=allow([target.host]),
        proxy=led,
        authorities=system_authorities if trusted is None else lambda: trusted,
    )


async def asked(client: StreamingClient) -> bytes:
    found = b""
    try:
        async with client.post("/v1/x", {"x-key": "k"}, b"{}") as answer:
            while piece := await answer.read():
                found += piece
    finally:
        await client.aclose()
    return found


async def test_a_place_without_tls_is_asked_for_by_its_whole_address():
    async with (
        receiving(answers(200, body="ok")) as receiver,
        proxying(LoopbackProxy(receiver.port)) as proxy,
    ):
        client = client_of(f"http://{NAME}:81", f"http://me:pass%40word@127.0.0.1:{proxy.port}")
        found = await asked(client)

    assert found == b"ok"
    assert proxy.heads[0].startswith(b"POST http://provider.test:81/v1/x HTTP/1.1\r\n")
    assert b"Host: provider.test:81\r\n" in proxy.heads[0]
    assert b"Proxy-Authorization: Basic bWU6cGFzc0B3b3Jk\r\n" in proxy.heads[0]


Loop = Callable[[], asyncio.AbstractEventLoop]


@with_openssl
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("is_secret", [False, True], ids=["http proxy", "https proxy"])
def test_a_place_with_tls_is_reached_through_a_tunnel(tmp_path: Path, loop: Loop, is_secret: bool):
    with asyncio.Runner(loop_factory=loop) as runner:
        proxy, receiver = runner.run(_through_a_tunnel(tmp_path, is_secret))

    assert proxy.heads[0].startswith(b"CONNECT provider.test:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in proxy.heads[0]
    assert b"x-key" not in proxy.heads[0]
    (request,) = receiver.requests
    assert request.line == "POST /v1/x HTTP/1.1"
    assert request.headers["x-key"] == "k"
    assert "proxy-authorization" not in request.headers


async def _through_a_tunnel(folder: Path, is_secret: bool) -> tuple[LoopbackProxy, Receiver]:
    served, trusted = certificate(folder, NAME)
    own, _ = certificate(folder, "localhost")
    trusted.load_verify_locations(folder / "cert.pem")
    async with (
        receiving(answers(200, body="ok"), tls=served) as receiver,
        proxying(LoopbackProxy(receiver.port), own if is_secret else None) as proxy,
    ):
        scheme = "https" if is_secret else "http"
        led = f"{scheme}://me:secret@localhost:{proxy.port}"
        assert await asked(client_of(f"https://{NAME}", led, trusted=trusted)) == b"ok"
    return proxy, receiver


@with_openssl
async def test_the_certificate_behind_a_proxy_must_be_for_the_name(tmp_path: Path):
    served, trusted = certificate(tmp_path, "other.test")
    async with (
        receiving(tls=served) as receiver,
        proxying(LoopbackProxy(receiver.port)) as proxy,
    ):
        client = client_of(f"https://{NAME}", f"127.0.0.1:{proxy.port}", trusted=trusted)
        with pytest.raises(OutOfReach, match="certificate that cannot be trusted") as told:
            await asked(client)

    assert told.value.is_early
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("status", "error"), [(407, AddressRefused), (403, AddressRefused), (502, OutOfReach)]
)
async def test_a_proxy_that_does_not_lead_on_is_told(status: int, error: type[Exception]):
    async with proxying(LoopbackProxy(9, status=status)) as proxy:
        client = client_of(f"https://{NAME}", f"http://me:secret@127.0.0.1:{proxy.port}")
        with pytest.raises(error, match=f"status {status}") as told:
            await asked(client)

    assert "secret" not in str(told.value)


async def test_a_proxy_that_says_nothing_is_given_up_by_the_clock():
    clock = ManualClock()

    async def pass_time(proxy: LoopbackProxy) -> None:
        await proxy.was_asked.wait()
        clock.advance(CONNECT_S)

    async with (
        proxying(LoopbackProxy(9, is_mute=True)) as proxy,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(pass_time(proxy))
        client = client_of(f"https://{NAME}", f"http://127.0.0.1:{proxy.port}", clock=clock)
        with pytest.raises(OutOfReach, match="took too long"):
            await asked(client)


async def test_a_proxy_that_is_not_there_is_told():
    with pytest.raises(OutOfReach, match="cannot be connected to"):
        await asked(client_of(f"https://{NAME}", "http://127.0.0.1:9"))


async def test_an_address_that_is_odd_anywhere_is_asked_of_no_proxy():
    async with proxying(LoopbackProxy(9)) as proxy:
        target = parse("http://169.254.169.254")
        led = proxy_to(target, {"HTTP_PROXY": f"127.0.0.1:{proxy.port}"})
        client = StreamingClient(target, SystemClock(), allowed=allow(["other"]), proxy=led)
        with pytest.raises(AddressRefused, match="not public"):
            await asked(client)

    assert proxy.heads == []


async def test_a_proxy_may_not_lead_to_metadata_itself():
    async def resolver(host: str, port: int) -> list[str]:
        return ["169.254.169.254"]

    target = parse(f"https://{NAME}")
    led = proxy_to(target, {"HTTPS_PROXY": "http://proxy.test:3128"})
    client = StreamingClient(
        target, SystemClock(), allowed=allow([NAME]), proxy=led, resolver=resolver
    )
    with pytest.raises(AddressRefused, match="not public"):
        await asked(client)
