"""The server of the stand-in providers: one small HTTP/1.1 server for all wires, on loopback."""

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any

import msgspec

from wakeful.testing.ledger import Ledger
from wakeful.testing.providers.anthropic import Anthropic
from wakeful.testing.providers.openai_chat import OpenAIChatStandIn
from wakeful.testing.providers.openai_responses import OpenAIResponsesStandIn
from wakeful.testing.providers.plan import Plans, Step, mark_in, step_of
from wakeful.testing.providers.wire import Body, Frame, StandInWire

LONGEST_HEAD = 64 * 1024
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

_WIRES: tuple[StandInWire, ...] = (Anthropic(), OpenAIChatStandIn(), OpenAIResponsesStandIn())
_encode = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder().decode
_decode_plans = msgspec.json.Decoder(Plans).decode


class StandInServer:
    """Answers as the plans say; its ledger has a line for each question and for each end of one."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._plans: Plans = {}
        self._asked: Counter[str] = Counter()
        self._ids = count(1)
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Begin to listen and return the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
        return self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the server ends; the streams of asyncio would complain about it.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer):
                pass
        writer.close()  # a question that is not answered by now was cut off

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False if the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1].partition("?")[0]
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        raw = await reader.readexactly(int(fields.get("content-length", "0")))
        if path == "/plans":
            new = _decode_plans(raw)
            self._plans |= new
            self._asked -= Counter({mark: self._asked[mark] for mark in new})  # from the beginning
            return await self._send_whole(writer, 200, b"{}")
        wire = next((wire for wire in _WIRES if path.endswith(wire.path.removeprefix("/v1"))), None)
        if wire is None:
            return await self._send_whole(writer, 404, b'{"error": {"message": "no such path"}}')
        return await self._converse(reader, writer, wire, raw)

    async def _converse(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        wire: StandInWire,
        raw: bytes,
    ) -> bool:
        body: Body = _decode(raw)
        number = next(self._ids)
        question = wire.read(body)
        mark = mark_in(question.said)
        step = step_of(self._plans, mark, self._asked[mark])
        self._asked[mark] += 1
        self._ledger.note(
            "asked", number=number, path=wire.path, mark=mark, body=raw.decode("utf-8", "replace")
        )
        if question.problem is not None:
            self._ledger.note("refused", number=number, why=question.problem)
            refusal = _encode(wire.refusal(400, question.problem))
            return await self._send_whole(writer, 400, refusal)
        if step.status != 200:
            content = step.body.encode() or _encode(wire.refusal(step.status, "as planned"))
            self._ledger.note("failed", number=number, status=step.status)
            return await self._send_whole(writer, step.status, content, step.headers)
        frames = wire.write(body, step, f"{number:06}")
        is_whole = await self._stream(Line(reader, writer), frames, step, number)
        tokens = msgspec.structs.asdict(step.tokens) if is_whole else None
        self._ledger.note("answered" if is_whole else "broken", number=number, tokens=tokens)
        return is_whole

    async def _stream(self, line: "Line", frames: list[Frame], step: Step, number: int) -> bool:
        """Write an answer; False if it was not to be whole, or nobody listened to its end."""
        pieces = pieces_of(frames, step)
        places = {"headers": -1, "first": 0, "middle": len(pieces) // 2, "end": len(pieces)}
        silent_at = places.get(step.silence)
        try:
            for at, piece in enumerate((b"", *pieces, b""), -1):
                if at == silent_at:
                    self._ledger.note("silent", number=number)
                    await line.closed(None)
                    return False
                if at == len(pieces):
                    break
                await (line.write(piece) if piece else line.begin())
                if await line.closed(step.pause_ms / 1000):
                    return False
            if not step.cut:
                await line.end()
        except ConnectionError:
            return False
        return not step.cut

    async def _send_whole(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
    ) -> bool:
        kind = "text/html" if content.startswith(b"<") else "application/json"
        lines = {"content-type": kind, "content-length": str(len(content)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"HTTP/1.1 {status} Planned\r\n{head}\r\n".encode() + content)
        await writer.drain()
        return True


class Line:
    """One connection, of which the stand-in wants to know when the other side hangs up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def begin(self) -> None:
        self._writer.write(HEAD)
        await self._writer.drain()

    async def write(self, piece: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def closed(self, within_s: float | None) -> bool:
        """Tell whether the other side hangs up within that time; None waits until it does."""
        if within_s == 0:
            return self._reader.at_eof()
        try:
            async with asyncio.timeout(within_s):
                await self._reader.read(1)
        except TimeoutError:
            return False
        return True


def pieces_of(frames: list[Frame], step: Step) -> list[bytes]:
    """Return what is written, piece by piece."""
    kept = [frame for frame in frames if frame.kind not in step.drop]
    kept = [frame for frame in kept for _ in range(1 + (frame.kind in step.twice))]
    if step.is_shuffled:
        Random(len(kept)).shuffle(kept)
    pieces = [frame.data for frame in kept]
    if step.garbage:
        pieces.insert(len(pieces) // 2, step.garbage.encode("latin-1"))
    if step.cut or step.chunk:
        whole = b"".join(pieces)
        whole = whole[: len(whole) - step.cut]
        size = step.chunk or len(whole)
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    return pieces
