"""Webhooks at a real server that is killed: a retry gets the first receipt, a turn its grants."""

import asyncio
import hashlib
import hmac
from pathlib import Path

import httpx2
import pytest

from tests.server_process import ServerProcess, serving
from wakeful.vocabulary.failpoints import VARIABLE

SECRET = "the-secret-of-a-sender-0123456789"
BODY = b'{"do": "remember that it was deployed"}'


def settings(tools: str) -> str:
    return f"""
agents: {{main: {{shared_files: [memory]}}}}
hooks:
  github:
    verify: github
    secret: {SECRET}
    session: builds
    text: "{{payload.do}}"
    tools: {tools}
"""


def headers(delivery: str, body: bytes = BODY) -> dict[str, str]:
    mac = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-Hub-Signature-256": f"sha256={mac}",
        "X-GitHub-Delivery": delivery,
    }


async def post(server: ServerProcess, delivery: str, body: bytes = BODY) -> httpx2.Response:
    async with server.client(headers={}) as client:
        return await client.post("/hooks/github", content=body, headers=headers(delivery, body))


@pytest.mark.parametrize(("point", "status"), [("accept", 202), ("accepted", 200)])
async def test_a_retry_after_a_kill_gets_the_one_receipt_there_is(
    point: str, status: int, tmp_path: Path
):
    """Killed before its commit nothing is there; killed after it, the sender is told what is."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.yaml").write_text(settings("[memory_write]"))
    async with serving(home, **{VARIABLE: f"{point}:kill"}) as server:
        with pytest.raises(httpx2.HTTPError):
            await post(server, "d-1")
        await server.kill()
        del server.environ[VARIABLE]
        await server.start()
        retry = await post(server, "d-1")
        again = await post(server, "d-1")
        other = await post(server, "d-1", BODY + b" ")
        await _ended(server)
        await server.stop()
        rows = server.rows("SELECT id, state FROM stimuli WHERE kind = 'webhook'")
        [(turns,)] = server.rows("SELECT COUNT(*) FROM turns WHERE kind = 'webhook'")

    assert (retry.status_code, again.status_code, other.status_code) == (status, 200, 409)
    assert retry.content == again.content
    assert rows == [(retry.json()["stimulus_id"], "done")]
    assert turns == 1


async def test_a_turn_keeps_its_granted_tools_over_a_kill_and_new_settings(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "wakeful.yaml").write_text(settings("[memory_write]"))
    async with serving(home, **{VARIABLE: "ask:kill"}) as server:
        await post(server, "d-1")
        await server.gone()
        (home / "wakeful.yaml").write_text(settings("[]"))
        del server.environ[VARIABLE]
        await server.start()
        await _ended(server)
        await post(server, "d-2")
        await _ended(server, 2)
        await server.stop()
        turns = server.rows(
            "SELECT granted, trust, reply FROM turns WHERE kind = 'webhook' ORDER BY id"
        )

    assert [turn[:2] for turn in turns] == [('["memory_write"]', "external"), ("[]", "external")]
    assert "I will remember" in turns[0][2]
    assert "this turn does not have it" in turns[1][2]


async def _ended(server: ServerProcess, count: int = 1) -> None:
    """Return when so many turns of webhooks have ended."""
    async with asyncio.timeout(20), server.client() as client:
        while True:
            page = (await client.get("/api/stimuli", params={"origin": "webhook"})).json()
            ids = [one["turn_id"] for one in page["items"] if one["turn_id"]]
            for turn_id in ids:
                await client.get(f"/api/turns/{turn_id}/wait", params={"timeout": 20})
            if len(ids) == count:
                return
