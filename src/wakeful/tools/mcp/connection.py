"""One connection to an MCP server, over its pipes or over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from wakeful.net.addresses import NOBODY, allow
from wakeful.net.streaming import guarded_transport
from wakeful.net.target import parse
from wakeful.net.wire import Patience
from wakeful.prompts import notes
from wakeful.tools.mcp.listing import MOST_TOOLS, Listed
from wakeful.tools.mcp.options import McpServerSettings
from wakeful.tools.mcp.results import as_result
from wakeful.tools.mcp.stdio import LONGEST_LINE, ServerCommand
from wakeful.tools.tool import Effect, ToolResult
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Permanent

ANSWER_LIMIT_S = 10.0  # for a handshake, and for one page of a list
MOST_PAGES = 20  # of a list of tools
KEY_OF_CALL = "wakeful/key"  # in the `_meta` of a call: the same over every attempt at it

_SLACK_S = 30.0  # beyond the longest call, until a silent connection is given up


class McpConnection:
    """What may be asked of a server while it is there."""

    def __init__(self, name: str, server: McpServerSettings) -> None:
        self._name = name
        self._server = server
        self.look = asyncio.Event()  # something happened: ask for the tools again
        self.ended = ""  # why there is no connection any more, if anybody said so
        self._client: Client | None = None

    def opened(self, client: Client) -> None:
        self._client = client

    def end(self, why: str) -> None:
        """Note that the other side is gone."""
        self.ended = self.ended or why
        self.look.set()

    async def tools(self) -> list[Listed]:
        """Return what the server says it has, as far as it is worth reading."""
        found: list[Listed] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            try:
                page = await self._session.list_tools(params=params)
            except ValidationError as error:
                raise Permanent(f"its list of tools cannot be read: {error}") from error
            found += [
                Listed(name=tool.name, description=tool.description or "", schema=tool.input_schema)
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None or len(found) > MOST_TOOLS:
                break
        return found

    async def call(self, name: str, arguments: Mapping[str, Any], key: str) -> ToolResult:
        """Call a tool; if the server goes away meanwhile, say that nobody knows what it did.

        The answer is not held against the server's own schema: checking patterns that somebody
        else wrote can take for ever, and a model reads the answer either way.
        """
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(
                name=name, arguments=dict(arguments), _meta={KEY_OF_CALL: key}
            )
        )
        limit_s = self._server.timeout_of(name) + _SLACK_S  # the turn's own limit comes first
        try:
            return as_result(
                await self._session.send_request(
                    request, types.CallToolResult, request_read_timeout_seconds=limit_s
                )
            )
        except asyncio.CancelledError:
            self.look.set()  # it may hang
            raise
        except MCPError as error:
            self.look.set()  # it may have forgotten us
            if error.code == types.CONNECTION_CLOSED:
                return self._lost(name, self.ended or "the connection was closed")
            return ToolResult(text=error.message, is_error=True)
        except (ValidationError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self.look.set()
            return self._lost(name, f"no answer that can be read ({type(error).__name__})")

    def _lost(self, name: str, why: str) -> ToolResult:
        is_in_doubt = self._server.effect_of(name) is not Effect.READ
        doubt = f"{notes.UNKNOWN}: " if is_in_doubt else ""
        text = f"{doubt}the MCP server {self._name!r} did not finish the call: {why}"
        return ToolResult(text=text, is_error=True, is_in_doubt=is_in_doubt)

    async def follow(self) -> None:
        """Watch for changes of the list, where the server's version of the protocol allows it."""
        assert self._client is not None
        try:
            async with self._client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self.look.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            pass  # asking again now and then must do

    async def heard(self, message: IncomingMessage) -> None:
        """Take what the server says by itself."""
        if isinstance(message, types.ToolListChangedNotification):
            self.look.set()

    @property
    def _session(self):
        assert self._client is not None
        return self._client.session


@asynccontextmanager
async def connected(
    name: str, server: McpServerSettings, *, folder: Path, clock: Clock
) -> AsyncGenerator[McpConnection, None]:
    """Connect, shake hands, and give the connection; a command is ended with it."""
    connection = McpConnection(name, server)
    try:
        async with (
            _transport(server, connection, folder, clock) as streams,
            Client(
                _Ready(streams),
                read_timeout_seconds=ANSWER_LIMIT_S,
                message_handler=connection.heard,
                client_info=types.Implementation(name="wakeful", version=""),
                cache=None,
            ) as client,
        ):
            connection.opened(client)
            yield connection
    except Exception as error:
        if connection.ended:  # says more than that something was closed
            raise Permanent(connection.ended) from error
        raise


class _Ready(AbstractAsyncContextManager[Any]):
    """Streams that are open already, as the library wants them: something to enter."""

    def __init__(self, streams: Any) -> None:
        self._streams = streams

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        return None


@asynccontextmanager
async def _transport(
    server: McpServerSettings, connection: McpConnection, folder: Path, clock: Clock
) -> AsyncGenerator[Any, None]:
    if server.url is None:
        command = ServerCommand(server.words, folder=folder, env=server.env, clock=clock)
        async with command.streams(connection.end) as streams:
            yield streams
        return
    longest_s = max((server.timeout_s, *map(server.timeout_of, server.tools)))
    transport = await guarded_transport(
        clock,
        allowed=allow([parse(server.url).host]) if server.allow_private else NOBODY,
        patience=Patience(read_s=longest_s + _SLACK_S),
        most_bytes=LONGEST_LINE,
    )
    headers = dict(server.headers)
    if server.bearer:
        headers["Authorization"] = f"Bearer {server.bearer}"
    async with (
        httpx2.AsyncClient(
            transport=transport, headers=headers, timeout=None, trust_env=False
        ) as http,
        # A server that hangs must not hold up our own end, so nobody says goodbye.
        streamable_http_client(server.url, http_client=http, terminate_on_close=False) as streams,
    ):
        yield streams
