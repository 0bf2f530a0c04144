"""Without a row for it there is no WebSocket to hijack: no upgrade is granted, whoever asks."""

import pytest

from tests.integration.http.raw import exchange
from tests.integration.http.serving import house

UPGRADE = (
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


@pytest.mark.parametrize("path", ["/", "/ws", "/api/events", "/docs"])
@pytest.mark.parametrize("origin", ["", "Origin: http://evil.test", "Origin: http://localhost"])
async def test_no_upgrade_is_granted(path: str, origin: str):
    """T3: as long as nothing here speaks WebSocket, nobody is let in by one."""
    async with house() as home:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: Upgrade, close", *UPGRADE]
        lines += [origin] if origin else []

        answer = await exchange(home.port, "\r\n".join(lines) + "\r\n\r\n")

    status = int(answer.split()[1])
    assert status != 101
    assert b"sec-websocket-accept" not in answer.lower()
    assert origin != "Origin: http://evil.test" or status in (401, 403)
