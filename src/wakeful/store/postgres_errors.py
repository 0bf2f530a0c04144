"""What an error of PostgreSQL, or of the way to it, means to whoever must act."""

import re
from collections.abc import Iterable, Mapping

import asyncpg

from wakeful.store.backend import Rerun
from wakeful.store.statements import Statement, unstorable
from wakeful.vocabulary.errors import (
    InvalidInput,
    Invariant,
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
    Transient,
    WakefulError,
)

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_RERUN = {"40001", "40P01"}
_END_OF_SESSION = {"57P01", "57P02", "57P05", "25P03", "25P04"}
_DAMAGED = {"XX001", "XX002"}
_REFUSED = {"3D000", "42501"}
# A row held by a stranger, a server that starts, one that only reads: as in a failover, it passes.
_READ_ONLY = {"25006", "55000"}
_BUSY = {"55P03", "57P03", *_READ_ONLY}
_RETRY_AFTER_S = 1.0

_ARGUMENT = re.compile(r"invalid input for query argument \$(\d+)[^:]*: .*\((.*)\)", re.DOTALL)


def is_end_of_session(error: asyncpg.PostgresError) -> bool:
    """Return whether the server ended the session with this error."""
    code = error.sqlstate or ""
    return code.startswith("08") or code in _END_OF_SESSION


def is_read_only(error: BaseException) -> bool:
    """Return whether this server only reads now; another may be the one that writes."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _READ_ONLY


def translated(error: Exception, where: str) -> Exception:
    """Return our error for one of the driver's; what is not the driver's stays as it is."""
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error, where)
    if isinstance(error, OSError | TimeoutError):
        return StoreBusy(f"the database cannot be reached: {error}", retry_after_s=_RETRY_AFTER_S)
    if isinstance(error, asyncpg.InterfaceError):
        return Invariant(f"{error} in {where!r}")
    return error


def of_parameters(
    error: Exception, statement: Statement, rows: Iterable[Mapping[str, object]]
) -> InvalidInput | None:
    """Return which parameter cannot be stored, if that was the reason."""
    if isinstance(
        error, asyncpg.CharacterNotInRepertoireError | asyncpg.UntranslatableCharacterError
    ):
        for row in rows:
            if (broken := unstorable(row, nul=True)) is not None:
                return InvalidInput(*broken)
    if isinstance(error, asyncpg.DataError) and (found := _ARGUMENT.search(str(error))):
        name = statement.names[int(found[1]) - 1]
        for row in rows:
            if (broken := unstorable({name: row.get(name)}, nul=True)) is not None:
                return InvalidInput(*broken)
        return InvalidInput(name, found[2])
    return None


def _of_server(error: asyncpg.PostgresError, where: str) -> WakefulError | Rerun:
    code = error.sqlstate or ""
    if code in _RERUN or isinstance(error, asyncpg.InvalidCachedStatementError):
        return Rerun()
    if code == "53100":
        return StoreFull(retry_after_s=5.0)
    if code == "57014":
        return Transient("the statement took too long and was interrupted")
    if code.startswith("53") or code in _BUSY or is_end_of_session(error):
        return StoreBusy(f"the database is busy: {error}", retry_after_s=_RETRY_AFTER_S)
    if code in _DAMAGED:
        return StoreDamaged(f"the database is damaged: {error}")
    if code == "58030":
        return StoreFailed(f"the disk of the database failed: {error}")
    if code.startswith("28") or code in _REFUSED:
        return StoreRefused(f"the database refuses: {error}")
    return Invariant(f"{error} in {where!r}")
