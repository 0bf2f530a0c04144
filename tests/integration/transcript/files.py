"""Shared by the tests of transcripts as files."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from wakeful.bus.bus import Bus
from wakeful.store.database import Store
from wakeful.store.sqlite import open_sqlite
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.transcript.jsonl.importing import Importer, ImportReport
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.session_key import SessionKey

HEADER = {
    "type": "session",
    "version": 3,
    "id": "5f0c1a52-8d1c-4c60-9d2e-6f6f9b1f0001",
    "timestamp": "2026-01-22T10:00:00.000Z",
    "cwd": "/home/me/work",
}


@dataclass
class CliContext:
    """A store, with files going in and out."""

    store: Store
    importer: Importer
    count: int = 0

    async def put(
        self, file: bytes, session: str | None = None, *, piece: int = 1 << 16, trial: bool = False
    ) -> ImportReport:
        """Import a file, given in pieces of a size, into a new session."""
        self.count += 1
        key = SessionKey(session or f"agent:main:import:{self.count}")
        return await self.importer.run(pieces(file, piece), key, is_trial=trial)

    async def get(self, session: str, transcript: str | None = None) -> bytes:
        wanted = await source(self.store, session, transcript)
        return b"".join([part async for part in export(self.store, wanted)])

    async def count_of(self, table: str) -> int:
        return (await self.store.read(f"SELECT COUNT(*) FROM {table}"))[0][0]


@asynccontextmanager
async def desk() -> AsyncGenerator[CliContext, None]:
    store = await open_sqlite(None, clock=SystemClock())
    try:
        ids = Ids(SystemClock())
        bus = Bus(store, ids)
        await bus.start()
        yield CliContext(store, Importer(store, bus, ids, "main"))
    finally:
        await store.close()


async def pieces(file: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(file), size):
        yield file[start : start + size]


def written(*lines: Any) -> bytes:
    """Return a file of these lines; text and bytes are taken as they are."""
    texts = (
        line
        if isinstance(line, bytes)
        else line.encode()
        if isinstance(line, str)
        else json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode()
        for line in lines
    )
    return b"".join(text + b"\n" for text in texts)


def entry(name: str, parent: str | None, kind: str = "message", /, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "id": name,
        "parentId": parent,
        "timestamp": "2026-01-22T10:00:01.000Z",
        **fields,
    }


def user(name: str, parent: str | None, text: str = "hi") -> dict[str, Any]:
    return entry(name, parent, message={"role": "user", "content": text, "timestamp": 1})


def answer(name: str, parent: str | None, text: str = "well", **more: Any) -> dict[str, Any]:
    return entry(
        name,
        parent,
        message={
            "role": "assistant",
            "content": [{"type": "text", "text": text}],
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": "opus",
            "usage": {
                "input": 3,
                "output": 4,
                "cacheRead": 10,
                "cacheWrite": 20,
                "totalTokens": 37,
                "cost": {
                    "input": 0.1,
                    "output": 0.2,
                    "cacheRead": 0,
                    "cacheWrite": 0,
                    "total": 0.3,
                },
            },
            "stopReason": "stop",
            "timestamp": 1769076001000,
            **more,
        },
    )
