"""A server as the runtime sees it: a service that keeps a connection, and tools that use it."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from wakeful.tools.mcp.listing import Listed, Listing, checked, name_of
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.tools.running import is_cancelled
from wakeful.tools.tool import NAME, Tool, ToolContext, ToolResult
from wakeful.views.agents import ServerStatus
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import Permanent, WakefulError
from wakeful.vocabulary.text import one_line

if TYPE_CHECKING:
    from wakeful.tools.mcp.connection import McpConnection

FIRST_LOOK_S = 15.0  # a turn waits no longer for a server that has just been started
CONNECT_LIMIT_S = 30.0  # for starting it, shaking hands, and its first list
LOOK_AGAIN_S = 60.0  # between two looks at a list that nobody said had changed
LEAST_PAUSE_S = 0.2  # between two looks, however often it says so
STEADY_S = 60.0  # whoever stays for so long is started again at once
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 60.0
LONGEST_PROBLEM = 600  # characters

log = logging.getLogger(__name__)


class ServerState(StrEnum):
    CONNECTING = "connecting"  # for the first time
    UP = "up"
    DOWN = "down"  # until the next try


class McpServer:
    """Keeps a connection to one server, and its last list of tools when there is none."""

    def __init__(
        self, name: str, settings: McpServerSettings, *, folder: Path, clock: Clock
    ) -> None:
        self.name = name
        self.tools: Mapping[str, Tool] = {}
        self._settings = settings
        self._folder = folder
        self._clock = clock
        self._began = clock.monotonic()
        self._state = ServerState.CONNECTING
        self._problem: str = ""
        self._heard: list[Listed] = []  # the last list, as the server gave it
        self._listing: Listing = Listing()  # and what can be used of it
        self._connection: McpConnection | None = None
        self._known = asyncio.Event()  # set once the first try has ended, well or not

    def is_for(self, settings: McpServerSettings, folder: Path) -> bool:
        """Tell whether this is the server that such settings mean."""
        return self._settings == settings and self._folder == folder

    async def run(self) -> None:
        """Connect, and connect again whenever the connection is gone."""
        if self._settings.folder is None:  # then it is of the server's own
            await asyncio.to_thread(self._folder.mkdir, 0o700, parents=True, exist_ok=True)
        pause_s = FIRST_BACKOFF_S
        while True:
            began = self._clock.monotonic()
            try:
                await self._stay_connected()
            except Exception as error:
                if is_cancelled():  # a group of tasks that failed hides it
                    raise asyncio.CancelledError from error
                self._note_down(_error_text(error))
            finally:
                self._connection = None
            if self._clock.monotonic() - began > STEADY_S:
                pause_s = FIRST_BACKOFF_S
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_BACKOFF_S)

    async def settled(self) -> None:
        left_s = self._began + FIRST_LOOK_S - self._clock.monotonic()
        if self._known.is_set() or left_s <= 0:
            return
        with suppress(TimeoutError):
            async with time_limit(self._clock, left_s):
                await self._known.wait()

    def find(self, name: str) -> Tool | None:
        tool = self.tools.get(name)
        # As a model spells it: it may be no name at all.
        is_ours = name.startswith(f"{self.name}_") and NAME.fullmatch(name) is not None
        if tool is None and is_ours and self._state is not ServerState.UP and not self.tools:
            # A turn goes on after a restart with a call that an earlier list knew.
            return self._tool(name, Listed(name=self._own_name(name), description="", schema={}))
        return tool

    def status(self) -> ServerStatus:
        ended = "" if self._connection is None else self._connection.ended
        problems = tuple(filter(None, (self._problem or ended,)))
        return ServerStatus(
            name=self.name,
            state=(ServerState.DOWN if ended else self._state).value,
            tools=tuple(self.tools),
            problems=(*problems, *self._listing.refused),
        )

    async def call(
        self, context: ToolContext, arguments: dict[str, Any], *, name: str
    ) -> ToolResult:
        """Call a tool by the name a model knows it by."""
        await self.settled()
        connection = self._connection
        if connection is None or connection.ended:
            ended = "" if connection is None else connection.ended
            why = ended or self._problem or "it has not answered yet"
            return self._said(_refusal(f"the MCP server {self.name!r} is not reachable: {why}"))
        listed = self._listing.tools.get(name)
        if listed is None:
            return _refusal(f"the MCP server {self.name!r} no longer has this tool")
        return self._said(await connection.call(listed.name, arguments, context.key))

    def _said(self, result: ToolResult) -> ToolResult:
        """Return a result as what it is: somebody else's words, unless the operator trusts them."""
        return msgspec.structs.replace(result, is_external=not self._settings.trusted)

    async def _stay_connected(self) -> None:
        """Connect and keep the list of tools in step; raise when that is over."""
        connecting = await asyncio.to_thread(_library)
        async with AsyncExitStack() as stack:
            async with time_limit(self._clock, CONNECT_LIMIT_S):
                connection: McpConnection = await stack.enter_async_context(
                    connecting.connected(
                        self.name, self._settings, folder=self._folder, clock=self._clock
                    )
                )
                await self._look(connection)
            log.info("the MCP server %r is up with %d tools", self.name, len(self.tools))
            async with asyncio.TaskGroup() as group:
                following = group.create_task(connection.follow(), name=f"mcp {self.name}")
                try:
                    await self._keep_looking(connection)
                finally:
                    following.cancel()

    async def _keep_looking(self, connection: "McpConnection") -> None:
        while not connection.ended:
            with suppress(TimeoutError):
                async with time_limit(self._clock, LOOK_AGAIN_S):
                    await connection.look.wait()
            connection.look.clear()
            if not connection.ended:
                await self._look(connection)
                await self._clock.sleep(LEAST_PAUSE_S)
        raise Permanent(connection.ended)

    async def _look(self, connection: "McpConnection") -> None:
        """Take the list as it is now; an unchanged one leaves everything as it was."""
        heard = await connection.tools()
        if heard != self._heard:
            self._listing = listing = await asyncio.to_thread(checked, self.name, heard)
            self._heard = heard
            self.tools = {name: self._tool(name, tool) for name, tool in listing.tools.items()}
            for refusal in listing.refused:
                log.warning("of the MCP server %r the tool %s", self.name, refusal)
        self._connection, self._state, self._problem = connection, ServerState.UP, ""
        self._known.set()

    def _note_down(self, why: str) -> None:
        if self._state is not ServerState.DOWN or why != self._problem:
            log.warning("the MCP server %r is not reachable: %s", self.name, why)
        self._state, self._problem = ServerState.DOWN, why
        self._known.set()

    def _tool(self, name: str, listed: Listed) -> Tool:
        return Tool(
            partial(self.call, name=name),
            name=name,
            effect=self._settings.effect_of(listed.name),
            timeout_s=self._settings.timeout_of(listed.name),
            description=listed.description or f"A tool of the MCP server {self.name!r}.",
            schema=listed.schema,
        )

    def _own_name(self, name: str) -> str:
        """Return what the server calls a tool, as far as the settings tell."""
        named = (tool for tool in self._settings.tools if name_of(self.name, tool) == name)
        return next(named, name.removeprefix(f"{self.name}_"))


def _library() -> Any:
    """Load what speaks MCP; it takes a while and much memory, so only those who use it pay."""
    try:
        from wakeful.tools.mcp import connection
    except ImportError as error:
        raise Permanent(
            f"the MCP library is not installed ({error}); install 'wakeful[mcp]'"
        ) from error
    # What a server can make the libraries say must not fill the log, nor put addresses into it.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return connection


def _refusal(text: str) -> ToolResult:
    return ToolResult(text=text, is_error=True)


def _error_text(error: BaseException) -> str:
    """Return the innermost reason, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, TimeoutError):
        return "it does not answer"
    kind = "" if isinstance(error, WakefulError) else f"{type(error).__name__}: "
    return one_line(f"{kind}{error}", LONGEST_PROBLEM)
