"""`up`: the server in the foreground; new settings need no new process."""

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from wakeful.cli.begin import make_home
from wakeful.cli.context import CliContext
from wakeful.cli.greeting import found_line, greet, look_around
from wakeful.cli.local_models import local_model
from wakeful.doors.http.connection import CONNECTIONS, OWN_FILES
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.server import HttpOptions
from wakeful.operations import server_note, token_file
from wakeful.operations.server_note import Reload
from wakeful.runtime import Runtime
from wakeful.settings import environment
from wakeful.settings.exposure import refuse_exposed
from wakeful.settings.file import ServerSettings
from wakeful.settings.hooks import secrets_in as hook_secrets
from wakeful.settings.load import Loaded, load, reload
from wakeful.settings.problems import BadSettings
from wakeful.telemetry import log as log_file
from wakeful.telemetry.redaction import SHORTEST, Redaction, secrets_in
from wakeful.vocabulary.errors import WakefulError

LISTENING = ("host", "port")  # keys of `server` that only a start can change
YOUNG_OBJECTS = 10_000  # between two rounds of the garbage collector
STOPPING = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)

Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(min=0, max=65_535, help="The port; 0: any free one.")]


def up(context: CliContext, host: Host = None, port: Port = None) -> None:
    """Start the server; Ctrl-C lets running turns finish, a second one leaves at once."""
    if context.refused is not None:
        raise context.refused
    environ = dict(context.environ)
    own = {name: value for name, value in environ.items() if name not in os.environ}
    if host is not None:
        environ["WAKEFUL_HOST"] = host
    if port is not None:
        environ["WAKEFUL_PORT"] = str(port)
    os.umask(0o077)
    os.environ.update(own)  # the libraries of providers look for their keys there
    _ask_for_files()
    loaded = load(None, environ)
    _refuse_exposed(loaded)
    make_home(loaded.home)
    _start_log(loaded, environ)
    if loaded.home.stat().st_mode & 0o077:  # not ours to close: it may be anybody's folder
        log.warning("%s is open to others; close it with `wakeful doctor --fix`", loaded.home)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(Server(context, environ, frozenset(own)).live(loaded))


class Server:
    """One process and its runtime, which follows the settings file while it runs."""

    def __init__(
        self, context: CliContext, environ: dict[str, str], from_file: frozenset[str]
    ) -> None:
        self._context = context
        self._environ = environ
        self._from_file = from_file  # variables that the file `environment` gave
        self._reloads = 0
        self._hangup = asyncio.Event()
        self._stop = asyncio.Event()
        self._runtime: Runtime | None = None  # once it is awake

    async def live(self, loaded: Loaded) -> None:
        """Run until a signal."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._hangup.set)
        for number in STOPPING:
            loop.add_signal_handler(number, self._asked_to_stop)
        door = HttpDoor(_http_options(loaded))
        async with Runtime(agents=loaded.agents, settings=loaded.settings, http=door) as runtime:
            await self._began(runtime, loaded)
            await self._until_stopped(runtime, door, loaded)

    async def _began(self, runtime: Runtime, loaded: Loaded) -> None:
        """Tell where the server listens."""
        self._runtime = runtime
        log.info("awake at %s", runtime.url)
        greet(self._context, await look_around(runtime, loaded, self._environ))
        _spare_the_collector()

    async def _until_stopped(self, runtime: Runtime, door: HttpDoor, loaded: Loaded) -> None:
        async with asyncio.TaskGroup() as group:
            beside = (
                group.create_task(self._follow(runtime, door, loaded), name="settings"),
                # Beside everything else, since it must neither delay nor end anything.
                group.create_task(self._look_for_model(loaded), name="local model"),
            )
            await self._stop.wait()
            for task in beside:
                task.cancel()

    async def _look_for_model(self, loaded: Loaded) -> None:
        """Tell of a model on this machine."""
        if self._context.out.is_json:
            return
        try:
            model = await local_model(loaded, self._environ, self._context.clock)
        except Exception:
            log.warning("looking for a local model failed", exc_info=True)
            return
        if model is not None:
            self._context.out.line(found_line(model))

    def _asked_to_stop(self) -> None:
        """Remember a stop, also one that comes during the start; a second one leaves at once."""
        if not self._stop.is_set():
            log.info("asked to stop; running turns get a while to finish")
        elif self._runtime is not None:
            self._runtime.leave()
        self._stop.set()

    async def _follow(self, runtime: Runtime, door: HttpDoor, began_with: Loaded) -> None:
        """Take other settings whenever a signal says that there are some, and write down how."""
        loaded = began_with
        while True:
            await self._hangup.wait()
            self._hangup.clear()
            self._reloads += 1
            loaded, outcome = await self._taken(runtime, door, loaded)
            moved = [] if outcome.problems else _moved(began_with.server, loaded.server)
            outcome = msgspec.structs.replace(outcome, kept=(*outcome.kept, *moved))
            _log_reload(outcome)
            await asyncio.to_thread(server_note.note_reload, loaded.home, outcome)

    async def _taken(
        self, runtime: Runtime, door: HttpDoor, loaded: Loaded
    ) -> tuple[Loaded, Reload]:
        """Return the settings that hold from now on, and what came of reading them again."""
        outcome = Reload(number=self._reloads, at=self._context.clock.now())
        try:
            self._read_environment(loaded.home)
            new, found = reload(loaded, self._environ)
            if found.problems:
                raise BadSettings(found.problems)
            _refuse_exposed(new)
            kept = await runtime.reconfigure(agents=new.agents, settings=new.settings)
        except BadSettings as bad:
            problems = tuple(map(str, bad.problems))
            return loaded, msgspec.structs.replace(outcome, problems=problems)
        except WakefulError as error:
            return loaded, msgspec.structs.replace(outcome, problems=(str(error),))
        door.follow(_http_options(new))
        _start_log(new, self._environ)
        return new, msgspec.structs.replace(outcome, changed=found.changed, kept=tuple(kept))

    def _read_environment(self, home: Path) -> None:
        """Take what the file `environment` says now; what the process was given stays."""
        given = {name for name in self._environ if name not in self._from_file}
        found = {name: value for name, value in environment.read(home).items() if name not in given}
        for name in self._from_file - found.keys():
            self._environ.pop(name, None)
            os.environ.pop(name, None)
        self._environ.update(found)
        os.environ.update(found)
        self._from_file = frozenset(found)


def _log_reload(outcome: Reload) -> None:
    for problem in outcome.problems:
        log.error("the settings stay as they are: %s", problem)
    if not outcome.problems:
        log.warning("settings read again; changed: %s", ", ".join(outcome.changed) or "nothing")
    if outcome.kept:
        log.warning("only a new start changes %s", ", ".join(outcome.kept))


def _http_options(loaded: Loaded) -> HttpOptions:
    server = loaded.server
    return HttpOptions(
        host=server.host,
        port=server.port,
        hosts=server.hosts,
        origins=server.origins,
        trusted_proxies=server.trusted_proxies,
        sessions_per_hour=server.sessions_per_hour,
        megabytes_per_day=server.megabytes_per_day,
        operator_token=loaded.token,
    )


def _moved(before: ServerSettings, now: ServerSettings) -> list[str]:
    """Return the keys by which a server would listen somewhere else."""
    return [f"server.{name}" for name in LISTENING if getattr(before, name) != getattr(now, name)]


def _ask_for_files() -> None:
    """Have as many open files as the connections may need, if that is permitted."""
    files, permitted = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OWN_FILES
    if permitted != resource.RLIM_INFINITY:
        wanted = min(wanted, permitted)
    if files != resource.RLIM_INFINITY and files < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, permitted))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the faster loop where it is installed, else None: Python's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _spare_the_collector() -> None:
    """Keep what the start made out of the garbage collector's rounds, each a pause of 30 ms."""
    gc.unfreeze()  # what an earlier life left
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def _refuse_exposed(loaded: Loaded) -> None:
    refuse_exposed(loaded.server, loaded.token or token_file.read(loaded.home))


def _start_log(loaded: Loaded, environ: Mapping[str, str]) -> None:
    """Begin to log; none of the secrets that are known here will stand in it."""
    redaction = Redaction(secrets_of(loaded, environ))
    log_file.start(loaded.home, loaded.telemetry.log_level, redaction)


def secrets_of(loaded: Loaded, environ: Mapping[str, str]) -> list[str]:
    """Return the secrets that the settings and the environment hold."""
    address = loaded.settings.database
    secrets = [key for one in loaded.outbound.values() for key in (one.secret or "").split()]
    secrets += [key for one in loaded.hooks.values() for key in hook_secrets(one.secret or "")]
    secrets += [loaded.token or "", token_file.read(loaded.home) or "", *secrets_in(environ)]
    secrets.append(address.partition("@")[0].rpartition(":")[2] if "@" in address else "")
    for provider in loaded.settings.providers.values():
        headers = (value for value in provider.headers.values() if len(value) >= SHORTEST)
        secrets += [provider.key or "", *headers]
    for server in loaded.mcp_servers.values():
        # What a server says when it ends is logged, and it knows these.
        headers = (value for value in server.headers.values() if len(value) >= SHORTEST)
        secrets += [server.bearer or "", *secrets_in(server.env), *headers]
    return secrets
