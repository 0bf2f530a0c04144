"""A model that says what it is told to: replies, tool calls, errors, silence, garbage."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from wakeful.models.model import Delta, Reply, Request
from wakeful.models.sight import BLIND, Sight
from wakeful.models.tariffs import FREE, Tariff
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.message import Text, ToolCall, Usage

# A text is a reply, an exception is raised, a function is asked what to say.
Line = str | Reply | Exception | Callable[[Request], "Line"]


class Pause:
    """A line that streams its text and then waits until the test lets it go on.

    What it says then is that text, or what comes `then`.
    """

    def __init__(self, text: str, then: Line | None = None) -> None:
        self.text = text
        self.then = then
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()


def call(name: str, /, call_id: str = "", **arguments: Any) -> ToolCall:
    """Return a tool call for a script."""
    return ToolCall(id=call_id or f"call_{name}", name=name, arguments=arguments)


def says(text: str, *calls: ToolCall) -> Reply:
    """Return a reply of text and tool calls."""
    content = ((Text(text=text),) if text else ()) + calls
    reason = "tool_use" if calls else "stop"
    usage = Usage(input=10, output=max(1, len(text) // 4))
    return Reply(content=content, stop_reason=reason, usage=usage, provider="scripted")


class Scripted:
    """Answers with the next line of its script; asks for more than it has are errors."""

    def __init__(
        self,
        lines: Iterable[Line | Pause] | Callable[[Request], Line],
        *,
        sight: Sight = BLIND,
        tariff: Tariff = FREE,
    ) -> None:
        self.tariffs = (tariff,)
        self.sight = sight
        self._ask = lines if callable(lines) else None
        self._lines: Iterator[Line | Pause] = iter(()) if callable(lines) else iter(lines)
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return "scripted"

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        self.requests.append(request)
        line: Line | Pause = self._ask(request) if self._ask else self._next()
        if isinstance(line, Pause):
            yield Delta(text=line.text)
            line.reached.set()
            await line.go_on.wait()
            line = line.text if line.then is None else line.then
        while callable(line):
            line = line(request)
        if isinstance(line, Exception):
            raise line
        reply = says(line) if isinstance(line, str) else line
        for block in reply.content:
            if isinstance(block, Text) and block.text:
                yield Delta(text=block.text)
        yield reply

    def _next(self) -> Line | Pause:
        try:
            return next(self._lines)
        except StopIteration:
            raise Permanent("the script has no more lines") from None
