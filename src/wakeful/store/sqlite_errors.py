"""What an error of SQLite means to whoever must act."""

import errno

import apsw

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

_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_SYNC_FAILED = {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}
_NO_ROOM_FOR_INDEX = {apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP}


def translated(error: apsw.Error, connection: apsw.Connection | None, where: str) -> WakefulError:
    """Return our error for one of SQLite's; `where` is the statement or the file."""
    match error:
        case apsw.FullError():
            return StoreFull(retry_after_s=5.0)
        # The last two: others began a log, or changed the schema, at the same moment.
        case (
            apsw.BusyError()
            | apsw.LockedError()
            | apsw.NoMemError()
            | apsw.ProtocolError()
            | apsw.SchemaChangeError()
        ):
            return StoreBusy(retry_after_s=1.0)
        case apsw.IOError() if _is_full(error, connection):
            return StoreFull(retry_after_s=5.0)
        case apsw.IOError():
            return StoreFailed(f"the disk failed ({error}); nothing is acknowledged from here on")
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreDamaged(f"the database is damaged: {error}")
        case apsw.InterruptError():
            return Transient("the read took too long and was interrupted")
        case apsw.TooBigError():
            return InvalidInput("statement", "a value is too large to be stored")
        case apsw.CantOpenError() if _errno(connection) in _NO_DESCRIPTORS:
            return StoreBusy("the process has too many files open", retry_after_s=1.0)
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreRefused(f"the database cannot be written: {error}")
        case _:
            return Invariant(f"{error} in {where!r}")


def _is_full(error: apsw.Error, connection: apsw.Connection | None) -> bool:
    # A sync that fails is never "full": what it was to make durable may be gone.
    code: int = getattr(error, "extendedresult", 0)
    if code in _SYNC_FAILED:
        return False
    if code in _NO_ROOM_FOR_INDEX:
        return True
    return _errno(connection) in _NO_ROOM


def _errno(connection: apsw.Connection | None) -> int:
    return 0 if connection is None else connection.system_errno
