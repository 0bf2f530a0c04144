"""Neighbours: two owners at the HTTP door, each of whom tries to learn what the other has said.

What they made, asked and heard is written down outside the process, and so are the secrets by
which they come in: nobody may be told those again.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from tests.proofs.plans import marked
from tests.proofs.process import ANSWER_S, Place, RigProcess
from wakeful.testing.ledger import Ledger
from wakeful.vocabulary.clock import SystemClock, time_limit

FIRST, SECOND = "first", "second"
PLAN = "act&put"  # which a stranger's words cannot bring about
WRONG = "wk_nobody-has-this-one-0123456789abcdefghijkl"


class Neighbour:
    """One owner: whatever is asked for it, and answered, is noted."""

    def __init__(self, who: str, client: httpx2.AsyncClient, lines: Ledger) -> None:
        self._who = who
        self._client = client
        self._lines = lines
        self.names: dict[str, str] = {}

    async def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> httpx2.Response:
        """Ask for something, and note what was said."""
        answer = await self._client.request(method, path, json=body, headers=headers)
        self._note(method, path, body, answer.status_code, f"{answer.headers} {answer.text}")
        return answer

    async def say(self, mark: str, plan: str = "") -> dict[str, str]:
        """Say something in a conversation of its own, and wait for the answer."""
        key, text = f"agent:main:api:{self._who}", marked(mark, plan)
        path = f"/api/sessions/{quote(key, safe='')}/messages?wait=10"
        said = (await self.ask("POST", path, {"text": text})).json()
        self.names = {"key": key, "id": said["stimulus_id"], "turn": said["turn"]["id"]}
        self._lines.note("made", who=self._who, names=[text, *self.names.values()])
        return self.names

    async def hear_all(self, since: str, mark: str) -> None:
        """Follow the events from an early position on, up to those of words of its own."""
        path = f"/api/events?since={since}"
        async with (
            time_limit(SystemClock(), ANSWER_S),
            self._client.stream("GET", path) as answer,
        ):
            ends = (await self.say(mark))["id"]
            async for line in answer.aiter_lines():
                self._note("GET", path, None, answer.status_code, line)
                if ends in line:
                    return

    def _note(self, method: str, path: str, body: Any, status: int, said: str) -> None:
        asked = f"{method} {path} {body or ''}"
        self._lines.note("answer", who=self._who, asked=asked, status=status, said=said)


@asynccontextmanager
async def neighbours(
    rig: RigProcess, place: Place
) -> AsyncGenerator[tuple[Neighbour, Neighbour], None]:
    """Give two owners a token each, and open the door to them."""
    lines = Ledger(place.ledgers / "neighbours.jsonl")
    lines.note("secret", secret=WRONG)
    async with AsyncExitStack() as stack:
        stack.callback(lines.close)
        pair: list[Neighbour] = []
        for who in (FIRST, SECOND):
            made = await rig.ask("token", name=who, scopes=["send"])
            lines.note("secret", secret=made["secret"])
            client = httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{made['port']}",
                headers={"Authorization": f"Bearer {made['secret']}"},
                timeout=ANSWER_S,
            )
            pair.append(Neighbour(who, await stack.enter_async_context(client), lines))
        yield pair[0], pair[1]


async def pry(curious: Neighbour, other: Neighbour, start: str) -> None:
    """Ask every route for what another owner has, search for it, and follow what happens."""
    document = (await curious.ask("GET", "/openapi.json")).json()
    for path, operations in document["paths"].items():
        if "get" not in operations or path in ("/api/events", "/openapi.json"):
            continue
        await curious.ask("GET", _named(path, other.names))
    for path in ("/api/stimuli?session={key}", "/api/turns?session={key}", "/api/search?q=please"):
        await curious.ask("GET", path.format(**other.names))
    await curious.ask("POST", "/api/halt", {})
    await curious.ask("GET", "/api/sessions", Authorization=f"Bearer {WRONG}")
    await curious.hear_all(start, "m9x2")


def _named(path: str, names: dict[str, str]) -> str:
    """Return a path to something by its name."""
    name = names["turn"] if "/turns/" in path else names["id"]
    return re.sub(r"\{\w+\}", quote(name, safe=""), path.replace("{key}", names["key"]))
