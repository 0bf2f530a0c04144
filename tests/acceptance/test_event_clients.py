"""Readers that others wrote see every event once, over several kills of the server."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import requests_sse
from httpx_sse import connect_sse

from tests.server_process import PATIENCE_S, ServerProcess, serving
from tests.waiting import eventually

LIVES = 2
MESSAGES = 8  # sent in each life
LAST = "halt.set"  # of the events that a reader waits for


class Reader:
    """What one reader has seen."""

    def __init__(self, server: ServerProcess, start: str) -> None:
        self.url = f"{server.url}/api/events"
        self.headers = server.headers
        self.start = start
        self.seen: list[str] = []

    def note(self, kind: str, cursor: str, data: str) -> bool:
        """Note a stored event; tell whether it was the last one."""
        assert kind not in ("gap", "reset")
        if not json.loads(data).get("live"):
            self.seen.append(cursor)
        return kind == LAST


def read_with_httpx_sse(reader: Reader) -> None:
    """Read as its manual says: whoever is cut off comes back with the last id."""
    is_done = False
    with httpx.Client(headers=reader.headers, timeout=PATIENCE_S) as client:
        while not is_done:
            position = {"Last-Event-ID": reader.seen[-1] if reader.seen else reader.start}
            with (
                suppress(httpx.TransportError),
                connect_sse(client, "GET", reader.url, headers=position) as source,
            ):
                events = source.iter_sse()
                is_done = any(reader.note(one.event, one.id, one.data) for one in events)


def read_with_requests_sse(reader: Reader) -> None:
    """Read without a thought: it comes back by itself."""
    with requests_sse.EventSource(
        reader.url,
        headers=reader.headers,
        latest_event_id=reader.start,
        reconnection_time=timedelta(milliseconds=20),
        max_connect_retry=20,
        timeout=PATIENCE_S,
    ) as source:
        events = cast("Any", source)
        assert any(reader.note(one.type, one.last_event_id, one.data) for one in events)


@pytest.mark.parametrize("read", [read_with_httpx_sse, read_with_requests_sse])
async def test_every_event_comes_once_over_several_kills(
    tmp_path: Path, read: Callable[[Reader], None]
):
    async with serving(tmp_path / "home") as server, asyncio.TaskGroup() as group:
        ((epoch,),) = server.rows("SELECT epoch FROM bus_head")
        reader = Reader(server, f"{epoch}-0")
        group.create_task(asyncio.to_thread(read, reader))
        for _ in range(LIVES):
            before = len(reader.seen)
            async with server.client() as client:
                for number in range(MESSAGES):
                    path = f"/api/sessions/api:s{number}/messages"
                    assert (await client.post(path, json={"text": "hello"})).status_code == 202
            await eventually(lambda before=before: len(reader.seen) > before)
            await server.kill()
            await server.start()
        async with server.client() as client:
            assert (await client.post("/api/halt", json={})).status_code == 200

    stored = server.cursors()
    assert reader.seen == stored[: len(reader.seen)]
    assert len(reader.seen) >= LIVES * MESSAGES
