"""What a database must bring to be a store: one connection, one transaction at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wakeful.store.database import In, Lock, Row, Verb


class Rerun(Exception):
    """The transaction did not happen, through nobody's fault; the same group runs again."""


class Backend(ABC):
    """A connection owned by the writer thread; it is the `Tx` of the transaction it has open.

    Errors of the driver leave translated. After any error the transaction is void: each later
    statement raises until `rollback`, so a write function that swallows an error commits nothing.
    """

    now: int = 0

    def __init__(self) -> None:
        self.gathered: dict[Verb[Any, Any], list[Any]] = {}
        self.notes: dict[tuple[str, str], None] = {}
        self.acts: list[Callable[[], object]] = []

    def holds(self, lock: Lock) -> bool:
        return True  # where there is one writer, it holds everything

    def hold(self, locks: Iterable[Lock]) -> None:
        return None

    def gather(self, verb: Verb[In, Any], row: In) -> None:
        rows = self.gathered.get(verb)
        if rows is None:
            self.gathered[verb] = [row]
        else:
            rows.append(row)

    def notify(self, channel: str, key: str) -> None:
        self.notes[channel, key] = None

    def after_commit(self, act: Callable[[], object]) -> None:
        self.acts.append(act)

    @abstractmethod
    def all(self, sql: str, /, **params: object) -> Sequence[Row]: ...

    @abstractmethod
    def one(self, sql: str, /, **params: object) -> Row | None: ...

    @abstractmethod
    def run(self, sql: str, /, **params: object) -> int: ...

    @abstractmethod
    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None: ...

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def take(self, locks: Sequence[Lock]) -> None:
        """Take these locks, which are sorted and unique."""
        ...

    @abstractmethod
    def commit(self) -> None:
        """Return when the transaction is on disk; raise if it is not and never will be."""
        ...

    @abstractmethod
    def rollback(self) -> None:
        """End the transaction, if one is open, leaving nothing of it."""
        ...

    @abstractmethod
    def read(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """Run one SELECT outside of any transaction."""
        ...

    @abstractmethod
    def tidy(self, *, is_idle: bool) -> bool:
        """Do housekeeping between groups; return whether more is wanted once idle."""
        ...

    @abstractmethod
    def close(self) -> None: ...
