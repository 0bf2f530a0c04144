"""Each error of a database says who must act."""

import errno

import apsw
import asyncpg
import pytest
from asyncpg import exceptions

from wakeful.store import postgres_errors, sqlite_errors
from wakeful.store.backend import Rerun
from wakeful.vocabulary.errors import (
    InvalidInput,
    Invariant,
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
    Transient,
)


class Connection:
    """A connection whose last error of the system is known."""

    def __init__(self, system_errno: int = 0) -> None:
        self.system_errno = system_errno


def of_sqlite(error: apsw.Error, code: int = 0, system_errno: int = 0) -> Exception:
    error.extendedresult = code  # pyright: ignore[reportAttributeAccessIssue]
    connection = Connection(system_errno)
    return sqlite_errors.translated(error, connection, "here")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (apsw.FullError("full"), StoreFull),
        (apsw.BusyError("busy"), StoreBusy),
        (apsw.LockedError("locked"), StoreBusy),
        (apsw.IOError("disk I/O error"), StoreFailed),
        (apsw.CorruptError("malformed"), StoreDamaged),
        (apsw.NotADBError("not a database"), StoreDamaged),
        (apsw.InterruptError("interrupted"), Transient),
        (apsw.TooBigError("too big"), InvalidInput),
        (apsw.ReadOnlyError("readonly"), StoreRefused),
        (apsw.CantOpenError("cannot open"), StoreRefused),
        (apsw.ConstraintError("UNIQUE"), Invariant),
        (apsw.SQLError("syntax"), Invariant),
    ],
)
def test_errors_of_sqlite_are_sorted_by_who_must_act(
    error: apsw.Error, ours: type[Exception]
) -> None:
    assert type(of_sqlite(error)) is ours


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_want_of_descriptors_passes(number: int) -> None:
    assert type(of_sqlite(apsw.CantOpenError("cannot open"), 0, number)) is StoreBusy


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_an_input_output_error_for_want_of_room_is_a_full_disk(number: int) -> None:
    error = of_sqlite(apsw.IOError("disk"), apsw.SQLITE_IOERR_WRITE, number)

    assert type(error) is StoreFull


def test_no_room_for_the_shared_index_is_a_full_disk() -> None:
    assert type(of_sqlite(apsw.IOError("disk"), apsw.SQLITE_IOERR_SHMSIZE)) is StoreFull


def test_a_failed_sync_is_never_just_a_full_disk() -> None:
    error = of_sqlite(apsw.IOError("disk"), apsw.SQLITE_IOERR_FSYNC, errno.ENOSPC)

    assert type(error) is StoreFailed


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (exceptions.DeadlockDetectedError("x"), Rerun),
        (exceptions.SerializationError("x"), Rerun),
        (exceptions.InvalidCachedStatementError("x"), Rerun),
        (exceptions.DiskFullError("x"), StoreFull),
        (exceptions.QueryCanceledError("x"), Transient),
        (exceptions.TooManyConnectionsError("x"), StoreBusy),
        (exceptions.LockNotAvailableError("x"), StoreBusy),
        (exceptions.CannotConnectNowError("x"), StoreBusy),
        (exceptions.AdminShutdownError("x"), StoreBusy),
        (exceptions.DataCorruptedError("x"), StoreDamaged),
        (exceptions.IndexCorruptedError("x"), StoreDamaged),
        (exceptions.PostgresIOError("x"), StoreFailed),
        (exceptions.InvalidPasswordError("x"), StoreRefused),
        (exceptions.InvalidCatalogNameError("x"), StoreRefused),
        (exceptions.InsufficientPrivilegeError("x"), StoreRefused),
        (exceptions.ReadOnlySQLTransactionError("x"), StoreBusy),
        (exceptions.UniqueViolationError("x"), Invariant),
        (exceptions.UndefinedTableError("x"), Invariant),
        (asyncpg.InterfaceError("x"), Invariant),
        (ConnectionRefusedError("x"), StoreBusy),
        (TimeoutError("x"), StoreBusy),
        (KeyError("mine"), KeyError),
    ],
)
def test_errors_of_postgresql_are_sorted_by_who_must_act(
    error: Exception, ours: type[Exception]
) -> None:
    assert type(postgres_errors.translated(error, "here")) is ours
