"""Secrets that the real server was given or made are found nowhere afterwards."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from tests.server_process import ServerProcess, serving
from wakeful.vocabulary.failpoints import VARIABLE

OPERATOR = "c0ffee5e2d4860a1b2c3d4e5f607183f9c1b7a5e2d4860c0ffee0123456789ab"
SIGNING = "whsec_" + base64.b64encode(b"canary of the outbound secret").decode()
HOOK = "canary-of-a-hook-0123456789abcdef"
HOOK_BEARER = "canary-of-a-bearer-0123456789abcdef"
PROVIDER = "sk-canary-of-the-provider-0123456789abcdef"
WRONG = "canary-that-nobody-made-0123456789abcdef"

SETTINGS = f"""
telemetry: {{log_level: debug}}
outbound:
  crm: {{url: "http://127.0.0.1:9/", secret: {SIGNING}, allow_private: true}}
hooks:
  canary: {{verify: github, secret: "{HOOK} {HOOK}-two", session: hooked}}
  bearer: {{verify: bearer, secret: {HOOK_BEARER}, session: hooked, text: "{{payload.a}}"}}
  signed: {{verify: standard-webhooks, secret: {SIGNING}}}
agents:
  main: {{model: demo}}
  quoted: {{model: "openai-chat:talkative", limits: {{retries: 0}}}}
"""
# Bugs at the door, in a lane, in a turn and between a turn and its tools; each logs a traceback.
FAILURES = "accept:raise:2,claim:raise:3,ask:raise:3,tool-acts:raise:1"


@asynccontextmanager
async def talkative_provider() -> AsyncGenerator[str, None]:
    """Serve a provider of models that quotes the key it refuses, as real ones do."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = re.search(r"(?i)^authorization: bearer (\S+)", head, re.MULTILINE)
        message = f"Incorrect API key provided: {found[1] if found else ''}"
        body = json.dumps({"error": {"message": message, "code": "invalid_api_key"}})
        writer.write(
            f"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


class Ear:
    """Everything that the server has said to anybody."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def note(self, response: httpx2.Response) -> None:
        """Take down an answer as it comes, but for a stream, which has no end."""
        self.said.append(str(response.headers))
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            self.said.append((await response.aread()).decode())

    async def follow(self, client: httpx2.AsyncClient, began: asyncio.Event) -> None:
        """Take down the events until the server is gone."""
        try:
            async with client.stream("GET", "/api/events") as response:
                async for line in response.aiter_lines():
                    began.set()
                    self.said.append(line)
        except httpx2.HTTPError:
            pass


async def ask_everything(client: httpx2.AsyncClient, secret: str) -> None:
    """Show every route a secret where it does not belong: as a credential, in query and body."""
    document = (await client.get("/openapi.json")).json()
    body = {"text": 7, "code": [secret], "name": {"x": secret}, "token": secret}
    ways: tuple[dict[str, Any], ...] = (
        {"headers": {"Authorization": f"Bearer {secret}x"}},
        {"headers": {"Authorization": f"Basic {secret}"}},
        {"headers": {"Authorization": "", "Cookie": f"wakeful={secret}"}},
        {"params": {"token": secret}},
        {"params": {"limit": secret, "since": secret, "wait": secret}},
        {"json": body},
        {"content": f'{{"token": "{secret}', "headers": {"Content-Type": "application/json"}},
    )
    for path, operations in document["paths"].items():
        for method in operations:
            for way in ways:
                target = re.sub(r"\{\w+\}", "web:x", path)
                async with client.stream(method.upper(), target, **way):
                    pass  # its answer is noted; a stream is left


async def work(client: httpx2.AsyncClient) -> None:
    """Have turns run, break and be refused by their provider."""
    for number in range(5):
        for session in ("main", "agent:quoted:main"):
            path = f"/api/sessions/{session}/messages?wait=5"
            await client.post(path, json={"text": f"write a{number}.md: hello"})


async def send_webhooks(client: httpx2.AsyncClient) -> None:
    """Have hooks tried, believed, refused and given what they cannot read."""
    for name in ("canary", "bearer", "signed"):
        assert (await client.post(f"/api/hooks/{name}/test", json={})).status_code in (202, 500)
    bearer = {"Authorization": f"Bearer {HOOK_BEARER}", "Content-Type": "application/json"}
    for to in ("bearer", "canary", "nobody", f"{HOOK}"):
        await client.post(f"/hooks/{to}", content=b"{", headers=bearer)
    await client.post("/hooks/canary", content=b"x", headers={"X-Hub-Signature-256": HOOK})
    assert (await client.get("/api/hooks")).status_code == 200


async def leave_in_the_inbox(server: ServerProcess, secret: str, ear: Ear) -> None:
    """Have a source post what it may, as whom it may not be, and look where it may not."""
    shown, noted = {"Authorization": f"Bearer {secret}"}, {"response": [ear.note]}
    async with server.client(headers=shown, event_hooks=noted) as source:
        for body in ({"text": "all well"}, {"text": "fire", "priority": "now"}):
            assert (await source.post("/api/inbox", json=body)).status_code == 202
        for body in ({"text": "x", "source": "another"}, {"text": "x", "session": "main"}):
            assert (await source.post("/api/inbox", json=body)).status_code == 403
        assert (await source.get("/api/inbox")).status_code == 403
        assert (await source.get("/api/approvals")).status_code == 404


async def secrets_made(server: ServerProcess) -> list[str]:
    """Have the server make tokens, a code and a cookie; it may say each of them once, here.

    The first is that of a source.
    """
    code = await server.login_code()
    async with server.client() as client:
        made = [
            (await client.post("/api/tokens", json={"name": name, "scopes": [scope]})).json()
            for name, scope in (("sender", "send"), ("backup", "inbox:backup"))
        ]
        login = await client.post("/api/login", json={"code": code})
        return [made[1]["token"], made[0]["token"], code, login.cookies["wakeful"]]


def traces(secret: str, where: dict[str, bytes]) -> list[str]:
    """Return the places in which a secret stands, as it is or as addresses write it."""
    return [
        place
        for place, content in where.items()
        if secret.encode() in content or quote(secret, safe="").encode() in content
    ]


async def test_no_secret_is_in_any_answer_event_metric_log_or_file(tmp_path: Path):
    """T6: canaries are looked for in everything that leaves."""
    home, ear, began = tmp_path / "home", Ear(), asyncio.Event()
    home.mkdir()
    (home / "wakeful.yaml").write_text(SETTINGS)
    async with (
        talkative_provider() as address,
        asyncio.TaskGroup() as group,
        serving(
            home,
            WAKEFUL_TOKEN=OPERATOR,
            OPENAI_API_KEY=PROVIDER,
            OPENAI_BASE_URL=address,
            **{VARIABLE: FAILURES},
        ) as server,
        server.client(event_hooks={"response": [ear.note]}) as client,
    ):
        made = await secrets_made(server)
        canaries = [
            *made,
            OPERATOR,
            SIGNING,
            PROVIDER,
            WRONG,
            HOOK,
            HOOK_BEARER,
        ]
        group.create_task(ear.follow(client, began))
        await began.wait()
        await work(client)
        await send_webhooks(client)
        await leave_in_the_inbox(server, made[0], ear)
        for secret in (OPERATOR, WRONG):
            await ask_everything(client, secret)
        for path in ("/metrics", "/api/tokens", "/api/stimuli?limit=500", "/api/agents/quoted"):
            assert (await client.get(path)).status_code == 200
        await server.stop()

    where = {
        str(file): file.read_bytes()
        for file in [server.errors, *home.rglob("*")]
        if file.is_file() and file.name != "wakeful.yaml"
    }
    where |= {f"answer {number}": said.encode() for number, said in enumerate(ear.said)}
    assert {secret: found for secret in canaries if (found := traces(secret, where))} == {}
    log = (home / "wakeful.log").read_text()
    assert "FailpointRaised" in log  # tracebacks were written
    assert any("Incorrect API key" in said for said in ear.said)  # and errors were told
