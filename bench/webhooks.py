"""Webhooks over HTTP beside plain messages: what a signature, a template and the inbox cost.

Nobody reads them meanwhile: the messages wait for more to be said, the webhooks in the inbox.
"""

import asyncio
import json
import subprocess
import sys
import time
from hashlib import sha256
from hmac import digest
from itertools import count
from pathlib import Path
from statistics import median

import uvloop

from bench import served, wire
from bench.crowd import PROMPT
from bench.door import SESSIONS_EACH, WAITING, messages
from bench.figures import Figure
from bench.fresh import ROOT
from bench.served import TOKEN, Server
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions
from wakeful.runtime import Runtime
from wakeful.settings.hooks import HookSettings
from wakeful.settings.settings import Settings
from wakeful.vocabulary.inbox import InboxRules
from wakeful.webhooks.verification import Scheme

CLIENTS = 32
ROUNDS = 7
MOST_CPU = 1.5  # times that of a plain message
SECRET = "bench-secret-0123456789abcdef"
INBOX = InboxRules(depth=1_000_000)
HOOK = HookSettings(verify=Scheme.GITHUB, secret=SECRET, text="{payload.text}")
NAMES = [f"bench{client}" for client in range(CLIENTS)]  # each leaves less than one hook may

_numbers = count()


def measure(folder: Path) -> list[Figure]:
    more = {
        "inbox": {"depth": INBOX.depth},
        "hooks": {
            name: {"verify": HOOK.verify.value, "secret": SECRET, "text": HOOK.text}
            for name in NAMES
        },
    }
    with (
        served.wakeful(folder / "home", queue=WAITING, more=more) as product,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_measure(product))


def load(folder: Path) -> None:
    asyncio.run(_serve(folder / "home"))


async def _measure(product: Server) -> list[Figure]:
    plain: list[float] = []
    signed: list[float] = []
    await _cpu_ms(product, messages()[:CLIENTS])  # makes the sessions
    await _cpu_ms(product, webhooks())
    for _ in range(ROUNDS):
        plain.append(await _cpu_ms(product, messages()[:CLIENTS]))
        signed.append(await _cpu_ms(product, webhooks()))
    floor = median(plain)
    return [
        Figure(
            name="webhooks.cpu",
            value=median(signed),
            unit="ms",
            floor=floor,
            floor_is="CPU of a plain message",
            goal=floor * MOST_CPU,
        )
    ]


async def _cpu_ms(server: Server, requests: list[list[bytes]]) -> float:
    """Return the CPU that each request cost the server."""
    senders = await wire.connect(server.port, CLIENTS)
    cpu = server.cpu_s()
    await wire.send_all(senders, requests)
    taken = server.cpu_s() - cpu
    for sender in senders:
        sender.close()
    return taken * 1000 / sum(map(len, requests))


def webhooks() -> list[list[bytes]]:
    """Return what each client sends: webhooks under ids that nobody has used."""
    body = json.dumps({"text": PROMPT}).encode()
    signature = f"sha256={digest(SECRET.encode(), body, sha256).hex()}"
    known = {"X-Hub-Signature-256": signature, "X-GitHub-Event": "push"}
    begun = time.time_ns()
    return [
        [
            wire.post(
                f"/hooks/{name}", body, {**known, "X-GitHub-Delivery": f"{begun}-{next(_numbers)}"}
            )
            for _ in range(SESSIONS_EACH)
        ]
        for name in NAMES
    ]


async def _serve(home: Path) -> None:
    """Serve in this process, which may be profiled, what a child of it sends."""
    door = HttpDoor(HttpOptions(port=0, operator_token=TOKEN))
    settings = Settings(queue=WAITING, inbox=INBOX, hooks=dict.fromkeys(NAMES, HOOK))
    async with Runtime(home=home, settings=settings, http=door) as runtime:
        assert runtime.http is not None
        sending = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.webhooks", str(runtime.http.port), cwd=ROOT
        )
        if await sending.wait():
            raise subprocess.CalledProcessError(sending.returncode or 1, "bench.webhooks")


async def _send(port: int) -> None:
    senders = await wire.connect(port, CLIENTS)
    for _ in range(ROUNDS):
        await wire.send_all(senders, webhooks())


if __name__ == "__main__":
    uvloop.run(_send(int(sys.argv[1])))
