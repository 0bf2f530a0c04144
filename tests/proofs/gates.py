"""Gates: places where a test lets the stand-in model or a test tool wait."""

import asyncio
from pathlib import Path


class Gates:
    """Gates by name; one that was opened stays open, in later lives of the process too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(exist_ok=True)
        self._opened: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}

    async def wait(self, name: str) -> None:
        """Say that somebody stands at the gate and wait until it is open."""
        self._reached.setdefault(name, asyncio.Event()).set()
        if not (self._folder / name).exists():
            await self._opened.setdefault(name, asyncio.Event()).wait()

    async def stay(self, name: str) -> None:
        """Stand at the gate for ever, also when told to end."""
        self._reached.setdefault(name, asyncio.Event()).set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    def open_later(self, name: str) -> None:
        """Let whoever comes next pass; who stands at the gate now goes on waiting."""
        (self._folder / name).touch()

    def open(self, name: str) -> None:
        self.open_later(name)
        self._opened.setdefault(name, asyncio.Event()).set()

    async def reached(self, name: str) -> None:
        """Return when somebody stands, or stood, at the gate in this life of the process."""
        await self._reached.setdefault(name, asyncio.Event()).wait()
