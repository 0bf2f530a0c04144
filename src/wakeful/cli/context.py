"""The context of a verb: home, settings, output, and the server."""

import asyncio
from collections.abc import Mapping
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from wakeful.cli.client import ServerClient
from wakeful.cli.exits import Unreachable
from wakeful.cli.output import CommandOutput
from wakeful.cli.times import relative, shown, zone_named
from wakeful.operations import server_note, token_file
from wakeful.operations.server_note import RunningServer
from wakeful.settings.places import DATABASE_NAME, file_of, home_of
from wakeful.settings.problems import BadSettings
from wakeful.settings.purpose import SettingsPurpose
from wakeful.store.sqlite_home import kept_closed
from wakeful.vocabulary.clock import Clock, SystemClock

if TYPE_CHECKING:
    from wakeful.cli.offline import Offline
    from wakeful.settings.load import Loaded


class CliContext:
    """One run of one command; everything is looked up when it is first needed."""

    def __init__(
        self,
        environ: Mapping[str, str],
        output: CommandOutput,
        *,
        is_debug: bool = False,
        refused: BadSettings | None = None,
    ) -> None:
        self.environ = environ
        self.refused = refused  # the file `environment`, if it cannot be used as it is
        self.out = output
        self.is_debug = is_debug
        self.clock: Clock = SystemClock()
        self.home = home_of(environ)
        self.file = file_of(environ)

    @cached_property
    def loaded(self) -> "Loaded":
        """The settings, as far as a verb needs them: keys and secrets are the server's affair."""
        # Loads half of the engine; a verb that asks a server needs none of it.
        from wakeful.settings.load import load

        return load(None, self.environ, SettingsPurpose.LOOK)

    @property
    def database(self) -> Path:
        """The file of the database, if it is one."""
        return self.home / DATABASE_NAME

    @cached_property
    def zone(self) -> tzinfo | None:
        """The user's zone; the machine's where the settings name none that is known."""
        if not self.file.exists():
            return None
        from wakeful.settings.text import timezone_in  # reads YAML, which takes its time

        try:
            return zone_named(timezone_in(self.file) or "")
        except (ValueError, OSError, LookupError):
            return None

    @cached_property
    def token(self) -> str | None:
        """The operator's token: from the environment, else from the home folder."""
        return self.environ.get("WAKEFUL_TOKEN") or token_file.read(self.home)

    @property
    def url(self) -> str | None:
        """Where the server listens, as far as anybody here knows; None: there is none."""
        if given := self.environ.get("WAKEFUL_URL"):
            return given
        return None if self.running is None else self.running.url

    @property
    def running(self) -> RunningServer | None:
        """The server of this home, if it runs."""
        found = server_note.find(self.home)
        return None if found is None or (found.has_file and self._is_abandoned()) else found

    def _is_abandoned(self) -> bool:
        """Tell whether nobody has the database open, whoever has the server's number now.

        A process that was killed leaves its note behind, and a stranger may get its number and its
        port: the token must not be sent there.
        """
        with kept_closed(self.database) as is_closed:
            return is_closed

    def server(self) -> ServerClient | None:
        """Return the running server, None if there is none."""
        return None if self.url is None else ServerClient(self.url, self.token)

    def needed_server(self) -> ServerClient:
        """Return the running server; raise if there is none."""
        found = self.server()
        if found is None:
            raise Unreachable(f"no server runs in {self.home}; start one with `wakeful up`")
        return found

    def reader(self) -> "ServerClient | Offline":
        """Return whoever can be asked: the server, or the database while there is none."""
        found = self.server()
        if found is not None:
            return found
        # Loads the engine, which only this case needs.
        from wakeful.cli.offline import offline

        return offline(self.loaded, self.database, self.clock)

    def pause(self, seconds: float) -> None:
        """Wait for a moment."""
        asyncio.run(self.clock.sleep(seconds))

    def when(self, value: str | int | None) -> str:
        """Return an instant in the user's zone."""
        return shown(value, self.zone)

    def how_long(self, value: str | int | None) -> str:
        """Return how far away an instant is."""
        return "–" if value is None else relative(value, self.clock.now())
