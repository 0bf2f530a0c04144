"""The server as its user starts it: a process of its own that may be killed and started again."""

import asyncio
import json
import os
import signal
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2

from tests.children import Partner, partner
from tests.patience import patience
from tests.ports import reserved_port
from wakeful.access.credentials import FILE_NAME

PATIENCE_S = patience(20)


class ServerProcess:
    """A home and a port, and whichever process serves them now."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.port = reserved_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if "WAKEFUL" not in name}
        self.environ = {**kept, "WAKEFUL_HOME": str(folder), **environ}
        self.errors = folder.parent / f"{folder.name}.stderr"
        self._process: Partner | None = None

    async def start(self, *, wrap: Sequence[str] = ()) -> None:
        """Start a process and return when it serves."""
        process = self._process = await partner(
            ["-m", "wakeful", "up", "--port", str(self.port), "--json"],
            environ=self.environ,
            errors=self.errors,
            wrap=wrap,
        )
        async with asyncio.timeout(PATIENCE_S):
            line = await process.reader.readline()
        assert line, self.errors.read_text()
        # It listens, and it says so on a pipe that is ours: nobody else can have the port.
        assert json.loads(line)["url"] == self.url

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        return await self._end(signal.SIGTERM)

    async def gone(self) -> int:
        """Return when the process has ended by itself."""
        return await self._end(None)

    async def _end(self, number: signal.Signals | None) -> int:
        process = self._process
        assert process is not None
        if number is not None:
            process.signal_all(number)
        async with asyncio.timeout(PATIENCE_S):
            code = await process.wait()
        process.writer.close()
        return code

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def token(self) -> str:
        chosen = self.environ.get("WAKEFUL_TOKEN")
        return chosen or (self.folder / FILE_NAME).read_text(encoding="ascii").strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self, **options: Any) -> httpx2.AsyncClient:
        headers = options.pop("headers", self.headers)
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE_S, **options)

    async def say(self, text: str, session: str = "main") -> None:
        """Send a message and wait for its answer."""
        async with self.client() as client:
            path = f"/api/sessions/{session}/messages?wait=20"
            answer = await client.post(path, json={"text": text})
            assert answer.status_code == 200, answer.text

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.folder / "wakeful.db", timeout=PATIENCE_S)) as database:
            return database.execute(query).fetchall()

    def cursors(self) -> list[str]:
        """Return the positions of all stored events."""
        ((epoch,),) = self.rows("SELECT epoch FROM bus_head")
        return [f"{epoch}-{seq}" for (seq,) in self.rows("SELECT seq FROM events ORDER BY seq")]

    def leaks(self) -> list[Path]:
        """Return the files in which the operator's token stands, but for its own."""
        files = [self.errors, *(file for file in self.folder.rglob("*") if file.is_file())]
        token = self.token.encode()
        return [file for file in files if file.name != FILE_NAME and token in file.read_bytes()]

    async def login_code(self) -> str:
        """Return a code that a browser may exchange for a cookie."""
        async with self.client() as client:
            answer = await client.post("/api/login/code")
            assert answer.status_code == 201, answer.text
            return answer.json()["code"]


@asynccontextmanager
async def serving(
    folder: Path, *, wrap: Sequence[str] = (), **environ: str
) -> AsyncGenerator[ServerProcess, None]:
    """Have a server for as long as the block lasts; nothing of it is left afterwards."""
    server = ServerProcess(folder, **environ)
    try:
        await server.start(wrap=wrap)
        yield server
    finally:
        await server.kill()
    assert server.leaks() == []
