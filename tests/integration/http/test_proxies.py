"""Behind a trusted proxy each client counts for itself; forged headers change nothing."""

import pytest

from tests.integration.http.serving import House, house
from wakeful.access.gatekeeper import FAILURES
from wakeful.doors.http import connection
from wakeful.doors.http.server import HttpOptions

BEHIND = HttpOptions(port=0, trusted_proxies=("127.0.0.1",))


async def guess(home: House, *tries: dict[str, str]) -> int:
    """Show a wrong token with each of these headers, and return the last status."""
    async with home.client("wrong") as client:
        answers = [await client.get("/api/sessions", headers=headers) for headers in tries]
    return answers[-1].status_code


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Forwarded"])
@pytest.mark.parametrize("options", [HttpOptions(port=0), BEHIND])
async def test_a_forged_address_does_not_get_another_try(name: str, options: HttpOptions):
    async with house(options=options) as home:
        before = "for=" if name == "Forwarded" else ""
        after = ", 203.0.113.9" if options is BEHIND else ""  # what the proxy itself adds
        forged = [f"{before}198.51.100.{number}{after}" for number in range(FAILURES + 1)]

        assert await guess(home, *({name: one} for one in forged)) == 429


async def test_each_client_of_a_trusted_proxy_has_a_budget_of_its_own():
    async with house(options=BEHIND) as home:
        assert await guess(home, *[{"X-Forwarded-For": "203.0.113.9"}] * (FAILURES + 1)) == 429
        assert await guess(home, {"X-Forwarded-For": "203.0.113.10"}) == 401
        assert await guess(home, {"X-Forwarded-For": "::ffff:203.0.113.9"}) == 429


@pytest.mark.parametrize("client", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
async def test_a_client_that_seems_to_be_local_needs_a_token_all_the_same(client: str):
    headers = {"X-Forwarded-For": client, "X-Forwarded-Host": "localhost", "X-Real-IP": client}
    async with house(options=BEHIND) as home, home.client(headers=headers) as stranger:
        assert (await stranger.get("/api/sessions")).status_code == 401


async def test_the_scheme_that_a_trusted_proxy_tells_is_the_only_origin():
    async with house(options=BEHIND) as home:
        host = home.url.removeprefix("http://")
        for told, origin, status in (
            ("https", f"https://{host}", 200),
            ("https", f"http://{host}", 403),
            ("http", f"http://{host}", 200),
            ("http", f"https://{host}", 403),
        ):
            headers = {"X-Forwarded-Proto": told, "Origin": origin}
            async with home.client(home.operator, headers=headers) as client:
                assert (await client.get("/api/sessions")).status_code == status


async def test_a_trusted_proxy_may_hold_more_connections_than_a_client(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection, "CONNECTIONS_EACH", 1)
    async with house(options=BEHIND) as home, home.client() as one, home.client() as two:
        answers = [await client.get("/healthz") for client in (one, two)]

    assert [answer.status_code for answer in answers] == [200, 200]
