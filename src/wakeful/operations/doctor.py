"""The doctor: looks at everything a runtime stands on, says what is wrong, mends what is safe."""

import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from wakeful.broker import inbox_counts
from wakeful.models.model import USUAL_CONTEXT_WINDOW
from wakeful.operations import token_file
from wakeful.store.migrations import packaged
from wakeful.store.opening import is_postgres
from wakeful.store.sqlite import SqliteReader, open_read_only
from wakeful.store.sqlite_check import check
from wakeful.store.sqlite_home import beside
from wakeful.timers import timers
from wakeful.transcript.sessions import SESSIONS
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import UnreadableRow, WakefulError
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import error_text, one_line

OLDEST_SQLITE = (3, 51, 3)  # earlier ones may lose writes when a log is reset
LARGE_LOG = 256 * 1024 * 1024
LITTLE_SPACE = 1024 * 1024 * 1024
NO_SPACE = 100 * 1024 * 1024
EARLIEST_MS = 1_735_689_600_000  # 2025: a clock before that was never set
AHEAD_MS = 60_000
SESSIONS_AT_ONCE = 500
LONGEST_NAME = 80  # characters of an automation's
MANY_ITEMS = 1000  # in the inbox, unread: somebody forgot them
LATE_S = 120  # the timekeeper looks by itself every minute

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
SECRET_FILES = (
    "wakeful.db*",
    "wakeful.yaml*",  # the keys of servers and receivers may stand in it
    "environment*",
    "operator.token*",
    "server.json*",
    "*.log*",
    "history",
    "backups/*",
)


_HAS_INBOX = "SELECT 1 FROM sqlite_master WHERE name = 'inbox_counts'"
_HAS_AUTOMATIONS = "SELECT 1 FROM sqlite_master WHERE name = 'automations'"
_AUTOMATIONS = "SELECT COUNT(*) FROM automations WHERE enabled = 1"
_GIVEN_UP = "SELECT name FROM automations WHERE disabled_reason = 'failures' ORDER BY id LIMIT 100"
_SESSION_PAGE = SESSIONS.select("WHERE key > :after ORDER BY key LIMIT :limit")


class Condition(StrEnum):
    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"
    FIXED = "fixed"


class Finding(Record):
    """What the doctor says about one thing."""

    subject: str
    health: Condition
    told: str


class Installation(Record):
    """What is looked at."""

    home: Path
    address: str  # of the database
    database: Path  # its file, if it is one
    host: str
    port: int
    is_running: bool
    commands: Mapping[str, str] = {}  # of MCP servers: what each of them starts
    windows: Mapping[str, int | None] = {}  # of the agents' models: tokens, None if nobody knows
    hooks: Sequence[str] = ()  # who may send webhooks
    is_public: bool = False  # others than this machine reach it, by itself or through a proxy


def examine(installation: Installation, clock: Clock, *, fix: bool = False) -> Iterator[Finding]:
    """Yield one finding per subject; with `fix`, mend what can be mended without loss."""
    yield _home(installation.home, fix=fix)
    if not installation.home.is_dir():
        return
    yield _files(installation.home, fix=fix)
    yield _token(installation.home)
    yield _space(installation.home)
    if is_postgres(installation.address):
        yield _postgres(is_running=installation.is_running)
    else:
        yield from _database(installation, clock)
    yield _port(installation)
    if installation.commands:
        yield _commands(installation.commands)
    if installation.windows:
        yield _windows(installation.windows)
    if installation.hooks:
        yield _hooks(installation)


def _hooks(installation: Installation) -> Finding:
    """Tell whether the senders of webhooks can come in at all."""
    names = ", ".join(installation.hooks)
    if installation.is_public:
        return _ok("hooks", f"{names}: at /hooks/…, from wherever the server is reached")
    rule = "name the host of your proxy in `server.hosts`, or set `server.host`"
    where = f"only this machine reaches {installation.host}"
    return _warning("hooks", f"{names}: {where}; for senders elsewhere {rule}")


def _home(home: Path, *, fix: bool) -> Finding:
    if not home.exists():
        if not fix:
            return _warning("home", f"{home} does not exist yet; `wakeful init` makes it")
        home.mkdir(parents=True)
        home.chmod(PRIVATE_FOLDER)
        return _fixed("home", f"{home} was made")
    if not home.is_dir():
        return _broken("home", f"{home} is not a folder; set WAKEFUL_HOME")
    if home.stat().st_uid != os.getuid():
        return _broken("home", f"{home} belongs to another user; run as that user")
    mode = _mode(home)
    if not mode & 0o077:
        return _ok("home", str(home))
    if fix:
        home.chmod(PRIVATE_FOLDER)
        return _fixed("home", f"{home} is now 0700")
    way = f"`wakeful doctor --fix`, or `chmod 700 {home}`, closes it"
    if mode & 0o022:
        return _broken("home", f"others can replace what lies in {home} ({mode:04o}); {way}")
    # Each file that holds something is closed by itself, and the next finding says so if not.
    return _warning("home", f"others can see which files lie in {home} ({mode:04o}); {way}")


def _files(home: Path, *, fix: bool) -> Finding:
    found = sorted({file for pattern in SECRET_FILES for file in home.glob(pattern)})
    is_open = [file for file in found if file.is_file() and _mode(file) & 0o077]
    if not is_open:
        return _ok("files", "only their owner can read them")
    names = ", ".join(file.name for file in is_open[:5])
    if not fix:
        return _broken(
            "files", f"{names}: others can read them; `wakeful doctor --fix` closes them"
        )
    for file in is_open:
        file.chmod(PRIVATE_FILE)
    return _fixed("files", f"{names}: now 0600")


def _token(home: Path) -> Finding:
    try:
        token = token_file.read(home)
    except (OSError, UnicodeDecodeError) as error:
        return _broken("token", f"{token_file.NAME} cannot be read: {error}")
    if token is None:
        return _ok("token", "none yet; the first `wakeful up` creates it")
    return _ok("token", str(home / token_file.NAME))


def _space(home: Path) -> Finding:
    free = shutil.disk_usage(home).free
    free_space = f"{free // (1024 * 1024)} MiB free"
    if free < NO_SPACE:
        return _broken("disk", f"{free_space}; make room, or nothing can be accepted")
    return _warning("disk", free_space) if free < LITTLE_SPACE else _ok("disk", free_space)


def _database(installation: Installation, clock: Clock) -> Iterator[Finding]:
    database = installation.database
    if not database.exists():
        yield _clock(clock, None)
        yield _ok("database", "none yet; the first `wakeful up` creates it")
        return
    try:
        complaints = check(database)
        facts = _looked_into(database)
    except WakefulError as error:
        yield _broken("database", str(error))
        return
    if complaints:
        yield _broken("database", f"{complaints[0]}; `wakeful backup restore` brings back a copy")
    else:
        yield _ok(
            "database", f"{database} is whole, schema {facts.schema} of {packaged()[-1].number}"
        )
    yield _clock(clock, facts.newest_event_at)
    yield _sqlite(facts.sqlite)
    yield _log(beside(database, "-wal"))
    yield _sessions(facts.unreadable)
    yield _inbox(facts.inbox)
    yield _automations(facts.automations, facts.given_up)
    if installation.is_running:
        yield _timers(facts.next_timer_at, clock)


def _postgres(*, is_running: bool) -> Finding:
    if is_running:
        return _ok("database", "PostgreSQL: the server commits to it")
    if find_spec("asyncpg") is None:
        return _broken("database", "PostgreSQL needs the extra: install wakeful[postgres]")
    return _warning("database", "PostgreSQL: not looked at, since no server runs")


class _Facts(Record):
    """What the database says about itself."""

    sqlite: str
    schema: int
    newest_event_at: int | None
    next_timer_at: int | None
    inbox: int  # items that wait
    automations: int  # that are on
    given_up: tuple[str, ...]  # the names of those that failed too often
    unreadable: tuple[str, ...]  # what is wrong with each session that cannot be read


def _looked_into(database: Path) -> _Facts:
    with open_read_only(database) as reader:
        newest = reader.read("SELECT at FROM events ORDER BY seq DESC LIMIT 1", {})
        first_due = reader.read(timers.FIRST_DUE, {})
        has_inbox = reader.read(_HAS_INBOX, {})  # an earlier release counted nothing
        has_automations = reader.read(_HAS_AUTOMATIONS, {})
        return _Facts(
            automations=reader.read(_AUTOMATIONS, {})[0][0] if has_automations else 0,
            given_up=_names(reader) if has_automations else (),
            sqlite=reader.read("SELECT sqlite_version()", {})[0][0],
            schema=reader.read("SELECT version FROM schema", {})[0][0],
            inbox=reader.read(inbox_counts.TOTAL, {})[0][0] if has_inbox else 0,
            newest_event_at=newest[0][0] if newest else None,
            next_timer_at=first_due[0][0],
            unreadable=tuple(_unreadable_sessions(reader)),
        )


def _names(reader: SqliteReader) -> tuple[str, ...]:
    return tuple(row[0] for row in reader.read(_GIVEN_UP, {}))


def _unreadable_sessions(reader: SqliteReader) -> Iterator[str]:
    after = ""
    while rows := reader.read(_SESSION_PAGE, {"after": after, "limit": SESSIONS_AT_ONCE}):
        for row in rows:
            try:
                SESSIONS.read(row)
            except UnreadableRow as error:
                yield error_text(error)
        after = rows[-1][0]


def _sessions(unreadable: Sequence[str]) -> Finding:
    if not unreadable:
        return _ok("sessions", "all can be read")
    more = f" (and {len(unreadable) - 1} more)" if len(unreadable) > 1 else ""
    advice = "run the release that wrote it, or `wakeful sessions rm` it"
    return _broken("sessions", f"{unreadable[0]}{more}; {advice}")


def _inbox(waiting: int) -> Finding:
    """Tell of an inbox that nobody reads."""
    if waiting > MANY_ITEMS:
        advice = "`wakeful inbox list` shows them; ask the agent to check_inbox, or dismiss them"
        return _warning("inbox", f"{waiting} items wait; {advice}")
    return _ok("inbox", f"{waiting} {'item waits' if waiting == 1 else 'items wait'}")


def _automations(enabled: int, given_up: Sequence[str]) -> Finding:
    """Tell of automations that failed until they were switched off."""
    if given_up:
        more = f" and {len(given_up) - 1} more" if len(given_up) > 1 else ""
        advice = "`wakeful cron list --state failures` shows them, `cron resume` goes on"
        name = one_line(given_up[0], LONGEST_NAME)
        return _warning("automations", f"{name!r}{more} failed too often: off; {advice}")
    return _ok("automations", f"{enabled} {'is' if enabled == 1 else 'are'} on")


def _timers(next_at: int | None, clock: Clock) -> Finding:
    """Tell whether the timekeeper of a running server still fires what is due."""
    late_s = timers.late_s(next_at, clock.now())
    if late_s > LATE_S:
        return _broken("timers", f"one is {late_s:.0f} s late: the timekeeper is dead; restart")
    return _ok("timers", "none is late")


def _clock(clock: Clock, newest_event_at: int | None) -> Finding:
    now = clock.now()
    if now < EARLIEST_MS:
        return _broken("clock", "the clock was never set; set it, or timers fire at wrong times")
    if newest_event_at is not None and newest_event_at > now + AHEAD_MS:
        ahead_s = (newest_event_at - now) // 1000
        return _warning("clock", f"the newest event is {ahead_s} s in the future: it went back")
    return _ok("clock", "plausible")


def _sqlite(version: str) -> Finding:
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        return _broken("sqlite", f"{version} may lose writes; install apsw with {wanted} or newer")
    return _ok("sqlite", version)


def _log(wal: Path) -> Finding:
    size = wal.stat().st_size if wal.exists() else 0
    size_text = f"{size // 1024} KiB of write-ahead log"
    if size > LARGE_LOG:
        return _warning("log", f"{size_text}: a long reader may keep it from being copied back")
    return _ok("log", size_text)


def _commands(commands: Mapping[str, str]) -> Finding:
    missing = [f"{name} ({what})" for name, what in commands.items() if shutil.which(what) is None]
    if missing:
        return _broken("mcp", f"no such program: {', '.join(missing)}; mend mcp_servers")
    return _ok("mcp", f"the programs of {', '.join(commands)} are there")


def _windows(windows: Mapping[str, int | None]) -> Finding:
    """Tell how much each model reads at once, and of which of them nobody knows."""
    unknown = [name for name, window in windows.items() if window is None]
    if not unknown:
        return _ok(
            "models", ", ".join(f"{name} reads {window}" for name, window in windows.items())
        )
    keys = ", ".join(f'models."{name}".context_window' for name in unknown)
    assumed = f"{USUAL_CONTEXT_WINDOW} tokens are assumed for {', '.join(unknown)}"
    return _warning("models", f"{assumed}; say how many it reads at once: {keys}")


def _port(installation: Installation) -> Finding:
    where = f"{installation.host}:{installation.port}"
    if installation.is_running:
        return _ok("server", "running")
    if installation.port and not _can_listen(installation.host, installation.port):
        return _broken("server", f"{where} is taken by another program; choose another port")
    return _ok("server", f"not running; {where} is free")


def _can_listen(host: str, port: int) -> bool:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError:
        return False
    return True


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _finding(health: Condition) -> Callable[[str, str], Finding]:
    return lambda subject, sentence: Finding(subject=subject, health=health, told=sentence)


_ok, _warning = _finding(Condition.OK), _finding(Condition.WARNING)
_broken, _fixed = _finding(Condition.BROKEN), _finding(Condition.FIXED)
