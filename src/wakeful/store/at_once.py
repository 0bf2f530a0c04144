"""A store in memory that does everything at once, in the thread that asks for it.

For whoever looks ahead: the same schema, the same `Tx`, the same groups as a database that keeps
something, without a writer thread and without an event loop. What is to follow a commit in a
process (counters, live frames) is left out; listeners are told.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from wakeful.store.database import In, Lock, Out, Row, Tx, Verb
from wakeful.store.full_text import SQLITE_FULL_TEXT
from wakeful.store.group import WriteCall, settle
from wakeful.store.sqlite import backend_in_memory
from wakeful.vocabulary.clock import Clock

T = TypeVar("T")


class StoreAtOnce:
    """A `Store` whose every method is done when it returns."""

    full_text = SQLITE_FULL_TEXT
    yielding_rows = 0  # nobody else writes

    def __init__(self, clock: Clock) -> None:
        self._backend = backend_in_memory()
        self._clock = clock
        self._listeners: dict[str, list[Callable[[str], object]]] = {}

    def write(self, fn: Callable[[Tx], T], locks: Iterable[Lock] = ()) -> T:
        """Run a function in a transaction and return its result."""
        return self.write_all([(fn, locks)])[0]

    def write_all(self, writes: Sequence[tuple[Callable[[Tx], T], Iterable[Lock]]]) -> list[T]:
        """Run functions in one transaction, in order, as a writer does with whoever meets."""
        return self._settle([WriteCall(None, fn, locks=tuple(locks)) for fn, locks in writes])

    def apply(self, verb: Verb[In, Out], rows: Sequence[In]) -> list[Out]:
        """Run a verb over rows, in one transaction."""
        return self._settle([WriteCall(None, None, verb, row) for row in rows]) if rows else []

    def look(self, sql: str, /, **params: object) -> Sequence[Row]:
        """Run one SELECT.

        Not as readers do: to forbid writing for as long as it lasts would have every statement
        prepared anew.
        """
        return self._backend.all(sql, **params)

    def put_rows(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Fill a table with rows that another database has; it knows no fewer columns."""
        if not rows:
            return
        names = ", ".join(columns)
        values = ", ".join(f":{name}" for name in columns)
        sql = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({values})"  # noqa: S608 (names of ours)
        given: list[Mapping[str, object]] = [dict(zip(columns, row, strict=True)) for row in rows]
        self.write(lambda tx: tx.many(sql, given))

    def close_now(self) -> None:
        self._backend.close()

    async def transact(
        self, fn: Callable[[Tx], T], *, locks: Iterable[Lock] = (), yields: bool = False
    ) -> T:
        return self.write(fn, locks)

    async def batch(self, verb: Verb[In, Out], row: In) -> Out:
        return self.apply(verb, [row])[0]

    async def batch_all(self, verb: Verb[In, Out], rows: Iterable[In]) -> list[Out | Exception]:
        return [*self.apply(verb, list(rows))]

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        return self.look(sql, **params)

    def listen(self, channel: str, act: Callable[[str], object]) -> Callable[[], None]:
        listeners = self._listeners.setdefault(channel, [])
        listeners.append(act)
        return lambda: listeners.remove(act)

    async def wait_failed(self) -> None:
        """Return never: nothing was promised."""
        raise NotImplementedError

    async def close(self) -> None:
        self.close_now()

    def _settle(self, calls: Sequence[WriteCall]) -> list[Any]:
        results: dict[int, Any] = {}
        for outcome in settle(self._backend, calls, self._clock.now):
            for _, error in outcome.errors:
                raise error
            for call, result in outcome.results:
                results[id(call)] = result
            for channel, key in outcome.notes:
                for act in self._listeners.get(channel, ()):
                    act(key)
        return [results[id(call)] for call in calls]
