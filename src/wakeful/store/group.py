"""One group: many callers' writes in one transaction, and what became of each."""

import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from wakeful.store.backend import Backend, Rerun
from wakeful.store.database import Lock, LocksNeeded, Tx, Verb
from wakeful.vocabulary.errors import (
    Invariant,
    StoreBusy,
    StoreDamaged,
    StoreFailed,
    StoreFull,
    StoreRefused,
)

RERUNS = 100  # deadlocks, lost connections and the like in a row before the callers hear of it
LOCK_RUNS = 10  # in which a write may find that it needs more locks, before it is a bug
RERUN_S = 10.0  # nor are they kept waiting by them for longer

# These concern the database, not a caller: every caller of the group gets the same answer.
_EVERYBODY = (StoreBusy, StoreFull, StoreFailed, StoreDamaged, StoreRefused)


class WriteCall:
    """One caller's write: a function, or a row for a verb."""

    __slots__ = ("fn", "future", "locks", "row", "verb")

    def __init__(
        self,
        future: Any,
        fn: Callable[[Tx], Any] | None,
        verb: Verb[Any, Any] | None = None,
        row: Any = None,
        locks: Sequence[Lock] = (),
    ) -> None:
        self.future = future
        self.fn = fn
        self.verb = verb
        self.row = row
        self.locks = locks


@dataclass(slots=True)
class GroupOutcome:
    """What the event loop must be told about calls whose outcome is known."""

    results: list[tuple[WriteCall, Any]] = field(default_factory=list[tuple[WriteCall, Any]])
    errors: list[tuple[WriteCall, BaseException]] = field(
        default_factory=list[tuple[WriteCall, BaseException]]
    )
    notes: Iterable[tuple[str, str]] = ()
    acts: Sequence[Callable[[], object]] = ()


class _Stopped(Exception):
    """A call, or a set of calls, raised; the cause says what."""

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count


def settle(
    backend: Backend, calls: Sequence[WriteCall], clock: Callable[[], int]
) -> Iterable[GroupOutcome]:
    """Run calls in as few transactions as possible, so that no call fails for another's sake.

    A group that fails is split at the call that raised, or in halves if it was not one of them,
    until the failing call is alone; order of arrival is kept.
    """
    waiting = [list(calls)]
    while waiting:
        group = waiting.pop()
        try:
            yield _attempt(backend, group, clock)
        except _Stopped as stopped:
            error = stopped.__cause__
            assert error is not None
            if len(group) == 1 or isinstance(error, _EVERYBODY):
                yield rejected(group, error)
            else:
                waiting.extend(reversed(_split(group, stopped)))


def rejected(calls: Sequence[WriteCall], error: BaseException) -> GroupOutcome:
    """Answer every call with an error of its own: raising one adds to its traceback."""
    if len(calls) == 1 or not isinstance(error, _EVERYBODY):
        return GroupOutcome(errors=[(call, error) for call in calls])
    return GroupOutcome(errors=[(call, _copied(error)) for call in calls])


def _copied(error: Exception) -> Exception:
    twin = copy(error)
    twin.__cause__ = error.__cause__
    return twin


def _split(group: list[WriteCall], stopped: _Stopped) -> list[list[WriteCall]]:
    first, last = stopped.first, stopped.first + stopped.count
    if stopped.count == len(group):
        first = last = len(group) // 2
    return [part for part in (group[:first], group[first:last], group[last:]) if part]


def _attempt(backend: Backend, group: list[WriteCall], clock: Callable[[], int]) -> GroupOutcome:
    # Real time, whatever the store's clock says: this bounds what callers wait for.
    deadline = time.monotonic() + RERUN_S
    needed: frozenset[Lock] = frozenset()
    for run in range(RERUNS):
        try:
            return _transaction(backend, group, clock(), needed, learns=run < LOCK_RUNS)
        except Rerun:
            if time.monotonic() > deadline:
                break
        except LocksNeeded as more:
            needed |= more.locks
    busy = StoreBusy("the database kept undoing this write", retry_after_s=1.0)
    raise _Stopped(0, len(group)) from busy


def _transaction(
    backend: Backend,
    group: list[WriteCall],
    now: int,
    needed: frozenset[Lock],
    *,
    learns: bool,
) -> GroupOutcome:
    order = _batches_first(group)
    place = (0, len(group))
    backend.now = now
    backend.gathered = {}
    backend.notes = {}
    backend.acts = []
    try:
        backend.begin()
        _take_locks(backend, group, needed)
        results: list[tuple[WriteCall, Any]] = []
        for verb, calls in order:
            place = (len(results), len(calls))
            if verb is None:
                for call in calls:
                    place = (len(results), 1)
                    assert call.fn is not None
                    results.append((call, call.fn(backend)))
            else:
                outs = _run_verb(backend, verb, [call.row for call in calls])
                results.extend(zip(calls, outs, strict=True))
        place = (0, len(group))
        _run_gathered(backend)
        backend.commit()
    except Rerun:
        backend.rollback()
        raise
    # Whatever a write function raises belongs to its caller, not to the writer thread.
    except BaseException as error:
        failure = _rolled_back(backend, error)
        if learns and failure is error and isinstance(error, LocksNeeded):
            raise
        _arrange(group, order)
        raise _Stopped(*place) from failure
    return GroupOutcome(results=results, notes=backend.notes, acts=backend.acts)


def _batches_first(group: list[WriteCall]) -> list[tuple[Verb[Any, Any] | None, list[WriteCall]]]:
    verbs: dict[Verb[Any, Any], list[WriteCall]] = {}
    functions: list[WriteCall] = []
    for call in group:
        if call.verb is None:
            functions.append(call)
        else:
            verbs.setdefault(call.verb, []).append(call)
    order: list[tuple[Verb[Any, Any] | None, list[WriteCall]]] = [*verbs.items()]
    if functions:
        order.append((None, functions))
    return order


def _arrange(
    group: list[WriteCall], order: list[tuple[Verb[Any, Any] | None, list[WriteCall]]]
) -> None:
    """Put the group into the order in which it ran, which places are counted in."""
    group[:] = [call for _, calls in order for call in calls]


def _take_locks(backend: Backend, group: list[WriteCall], needed: frozenset[Lock]) -> None:
    locks = set(needed)
    for call in group:
        locks.update(call.locks)
        if call.verb is not None:
            locks.update(call.verb.locks(call.row))
    if locks:
        backend.take(sorted(locks, key=_lock_order))


def _lock_order(lock: Lock) -> tuple[int, str, str]:
    return lock.space.rank, lock.space.name, lock.key


def _run_verb(backend: Backend, verb: Verb[Any, Any], rows: list[Any]) -> Sequence[Any]:
    outs = verb.run(backend, rows)
    if len(outs) != len(rows):
        raise Invariant(f"verb {verb.name!r} answered {len(outs)} of {len(rows)} rows")
    return outs


def _run_gathered(backend: Backend) -> None:
    # A gathered verb may gather more; the lowest rank still waiting is always next.
    while backend.gathered:
        verb = min(backend.gathered, key=lambda waiting: waiting.rank)
        rows = backend.gathered.pop(verb)
        locks = {lock for row in rows for lock in verb.locks(row)}
        if locks:
            backend.take(sorted(locks, key=_lock_order))
        verb.run(backend, rows)


def _rolled_back(backend: Backend, error: BaseException) -> BaseException:
    try:
        backend.rollback()
    except (StoreFailed, StoreDamaged) as worse:
        return worse
    return error
