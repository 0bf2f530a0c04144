"""A million entries from a file into the ledger and out again: how fast, and in how much memory.

`python -m bench.transfers import HOME FILE` (or `export`) does one of them in a fresh process.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.figures import Figure, Sense
from bench.fresh import memory_mb
from wakeful.bus.bus import Bus
from wakeful.store.opening import open_store
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.session_key import SessionKey

ENTRIES = 1_000_000
COPIED = 100_000  # lines of the floor
PROFILED = 20_000
MOST_MB = 150
PIECE = 64 * 1024
TIMEOUT_S = 600
KEY = SessionKey("agent:main:million")
ROOT = Path(__file__).resolve().parent.parent


def measure(folder: Path) -> list[Figure]:
    file = folder / "in.jsonl"
    write(file, ENTRIES)
    floor = _copied(file, folder / "copy.jsonl")
    figures: list[Figure] = []
    for act, target in (("import", file), ("export", folder / "out.jsonl")):
        command = [sys.executable, "-m", "bench.transfers", act, str(folder), str(target)]
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S
        )
        rate, most_mb = json.loads(done.stdout)
        figures += [
            Figure(
                name=f"transfers.{act}",
                value=rate,
                unit="/s",
                floor=floor,
                floor_is="lines of JSON, read and written again",
                sense=Sense.AT_LEAST,
            ),
            Figure(
                name=f"transfers.{act}_memory",
                value=most_mb,
                unit="MB",
                floor=None,
                floor_is="",
                goal=MOST_MB,
            ),
        ]
    return figures


def load(folder: Path) -> None:
    write(folder / "in.jsonl", PROFILED)
    asyncio.run(_import(folder, folder / "in.jsonl"))
    asyncio.run(_export(folder, folder / "out.jsonl"))


def write(file: Path, entries: int) -> None:
    """Write a conversation of so many entries, as others would."""
    at = "2026-01-22T10:00:01.000Z"
    head = {"type": "session", "version": 3, "id": "million", "timestamp": at, "cwd": "/"}
    with file.open("w", encoding="utf-8") as lines:
        lines.write(json.dumps(head) + "\n")
        for number in range(entries):
            parent = f'"{number - 1:08x}"' if number else "null"
            lines.write(
                f'{{"type":"message","id":"{number:08x}","parentId":{parent},"timestamp":"{at}",'
                f'"message":{{"role":"user","content":"message {number} says something of common '
                f'length, in a few words","timestamp":{number}}}}}\n'
            )


def _copied(source_file: Path, target: Path) -> float:
    """Return how many lines per second are read, understood and written again."""
    started = time.perf_counter()
    with source_file.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8") as copy:
        for line, _ in zip(lines, range(COPIED), strict=False):
            copy.write(json.dumps(json.loads(line)) + "\n")
    return COPIED / (time.perf_counter() - started)


async def _import(home: Path, file: Path) -> int:
    async def pieces() -> AsyncIterator[bytes]:
        with file.open("rb") as opened:
            while piece := opened.read(PIECE):
                yield piece

    store = await open_store(home / "wakeful.db", clock=SystemClock())
    try:
        ids = Ids(SystemClock())
        bus = Bus(store, ids)
        await bus.start()
        report = await Importer(store, bus, ids, "main").run(pieces(), KEY, is_trial=False)
        return report.entries
    finally:
        await store.close()


async def _export(home: Path, file: Path) -> int:
    store = await open_store(home / "wakeful.db", clock=SystemClock())
    try:
        count = 0
        with file.open("wb") as opened:
            async for part in export(store, await source(store, KEY)):
                opened.write(part)
                count += part.count(b"\n")
        return count
    finally:
        await store.close()


def _main(act: str, home: str, file: str) -> None:
    started = time.perf_counter()
    count = asyncio.run((_import if act == "import" else _export)(Path(home), Path(file)))
    rate = count / (time.perf_counter() - started)
    print(json.dumps([rate, memory_mb()]))


if __name__ == "__main__":
    _main(*sys.argv[1:])
