"""A model behind a provider's interface; the library that speaks to it is loaded on first use."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wakeful.models.choosing import Chosen
from wakeful.models.model import Piece, Request
from wakeful.models.tariffs import Tariff, tariff_of
from wakeful.models.windows import NOTHING_STATED, ModelSettings

if TYPE_CHECKING:
    from wakeful.models.library import LibraryConnection


class Remote:
    """Any model that the library knows, by its name `provider:model`."""

    def __init__(
        self,
        name: str,
        chosen: Chosen | None = None,
        stated: ModelSettings = NOTHING_STATED,
    ) -> None:
        self._name = name
        self._chosen = chosen  # None: as the environment says
        self._stated = stated
        self._connection: LibraryConnection | None = None
        self._loading = asyncio.Lock()  # guards the connection while it is made

    @property
    def name(self) -> str:
        return self._name

    @cached_property
    def tariffs(self) -> Sequence[Tariff]:
        provider, _, model = self._name.partition(":")
        return (tariff_of(provider, model, self._stated),)

    @property
    def context_window(self) -> int | None:
        return None if self._connection is None else self._connection.context_window

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        connection = self._connection or await self._connect()
        async with aclosing(connection.stream(request)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close what is open; the next question opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def _connect(self) -> "LibraryConnection":
        async with self._loading:
            if self._connection is None:
                # Seconds of work the first time: on the loop it would stop everybody.
                self._connection = await asyncio.to_thread(
                    _connected, self._name, self._chosen, self._stated
                )
            return self._connection


def _connected(name: str, chosen: Chosen | None, stated: ModelSettings) -> "LibraryConnection":
    library: Any = import_module("wakeful.models.library")
    return library.LibraryConnection(name, chosen, stated)
