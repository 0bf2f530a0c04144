"""What a store promises, whichever database lies below it.

A write is a function of an open transaction. Many callers' functions share one commit (a group);
each caller continues once that commit is on disk. A group runs in this order: its locks, sorted;
its batch verbs, each as one set; its functions, in order of arrival; its gathered verbs, by rank;
COMMIT; then notifications and `after_commit`, on the event loop.

SQL is written once, in the subset both databases share, with named parameters (`:name`). A list
parameter is written `IN :names` and becomes what each database calls it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from wakeful.store.full_text import FullText

Row = Sequence[Any]  # columns in the order of the SELECT

T = TypeVar("T")
In = TypeVar("In")
Out = TypeVar("Out")

READ_TIMEOUT_S = 5.0  # a read that takes longer is interrupted
GROUP_LIMIT = 1000  # callers that share one commit
YIELDING_FUNCTIONS = 4  # that share one commit; see `Store.yielding_rows`


@dataclass(frozen=True, kw_only=True, eq=False)
class LockSpace:
    """A kind of row that transactions lock before they read it.

    `ensure` inserts the row if it is missing (`:key`); `lock` takes `IN :keys` in sorted order and
    FOR UPDATE. SQLite has one writer: it runs `ensure`, never `lock`, and waits for nobody.
    """

    name: str
    rank: int  # lanes 0, budgets 1, counters 2: everybody locks in this order
    lock: str
    ensure: str | None = None


class Lock(NamedTuple):
    """One row of a lock space; locks are taken before anything else in a group."""

    space: LockSpace
    key: str


class LocksNeeded(Exception):
    """A write must touch rows that its group did not lock up front: the store runs it again.

    The whole group runs again, with these locks in their order, so that nobody overtakes anybody.
    """

    def __init__(self, locks: Iterable[Lock]) -> None:
        self.locks = frozenset(locks)
        super().__init__(", ".join(sorted(lock.key for lock in self.locks)))


class Tx(Protocol):
    """One open transaction, used on the writer thread only and never kept."""

    @property
    def now(self) -> int:
        """The wall time of this group, in milliseconds."""
        ...

    def all(self, sql: str, /, **params: object) -> Sequence[Row]: ...

    def one(self, sql: str, /, **params: object) -> Row | None: ...

    def run(self, sql: str, /, **params: object) -> int:
        """Execute one statement and return how many rows it changed."""
        ...

    def many(self, sql: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Execute one statement once per row, as one round trip."""
        ...

    def holds(self, lock: Lock) -> bool:
        """Tell whether a lock of this group found its row; a row made since then is not held."""
        ...

    def gather(self, verb: "Verb[In, Any]", row: In) -> None:
        """Leave a row to a verb that runs once for the whole group, before COMMIT."""
        ...

    def notify(self, channel: str, key: str) -> None:
        """Tell listeners, after the commit, that something about `key` changed."""
        ...

    def after_commit(self, act: Callable[[], object]) -> None:
        """Call `act` on the event loop once the commit is on disk; never if it is not."""
        ...


@dataclass(frozen=True, eq=False)
class Verb(Generic[In, Out]):
    """A write over many callers' rows at once: one row in, one result out, in order."""

    name: str
    run: Callable[[Tx, Sequence[In]], Sequence[Out]]
    locks: Callable[[In], Iterable[Lock]] = lambda _: ()
    rank: int = 0  # gathered verbs run in this order; the bus head is last
    yields: bool = False  # there may be thousands of rows: some share a commit, others go first
    is_followed: bool = False  # whoever is answered writes again at once: what yields waits for it


class Store(Protocol):
    """A durable home of ledgers."""

    @property
    def full_text(self) -> FullText:
        """How this database keeps words and finds them."""
        ...

    @property
    def yielding_rows(self) -> int:
        """How many rows of verbs that yield share one commit: some 10 ms of the writer's time."""
        ...

    async def transact(
        self, fn: Callable[[Tx], T], *, locks: Iterable[Lock] = (), yields: bool = False
    ) -> T:
        """Run `fn` in a transaction and return its result after the commit.

        `fn` may run more than once: it touches only its transaction. An exception from it reaches
        this caller alone. Cancellation waits for the outcome of the commit first. One that yields
        lets others go first, as a verb that does.
        """
        ...

    async def batch(self, verb: Verb[In, Out], row: In) -> Out:
        """Run `verb` over this row together with the other callers' rows, then as `write`."""
        ...

    async def batch_all(self, verb: Verb[In, Out], rows: Iterable[In]) -> list[Out | Exception]:
        """Run `verb` over each of these rows as `batch` does; one that fails has its error here."""
        ...

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        """Run one SELECT off the event loop; what it returns may be shown, never decided on."""
        ...

    def listen(self, channel: str, act: Callable[[str], object]) -> Callable[[], None]:
        """Call `act(key)` on the event loop after each commit that notified; returns the undo."""
        ...

    async def wait_failed(self) -> None:
        """Return when this store can no longer promise anything (StoreFailed, damage)."""
        ...

    async def close(self) -> None: ...
