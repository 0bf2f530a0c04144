"""Publish events in the transaction that caused them; follow them without gap or repeat."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import msgspec

from wakeful.bus.replays import BATCH_LIMIT, Replays
from wakeful.store.database import Store, Tx, Verb
from wakeful.telemetry.metrics import Metrics
from wakeful.vocabulary.event import Event, matches
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.proactive import self_woken
from wakeful.vocabulary.session_key import agent_of

LAST = 100  # the rank of the bus head: the last row any transaction locks
QUEUE_LIMIT = 1024  # events a slow reader may have waiting; beyond that it re-reads the ledger

_encode = msgspec.json.Encoder().encode


class LiveWords:
    """The words so far of answers that are being written here, for whoever joins in the middle."""

    def __init__(self) -> None:
        self._pieces: dict[str, Sequence[str]] = {}

    @contextmanager
    def written(self, turn_id: str, pieces: Sequence[str]) -> Generator[None]:
        """Know the pieces of a turn's answer, as they are added, for as long as the block lasts."""
        self._pieces[turn_id] = pieces
        try:
            yield
        finally:
            self._pieces.pop(turn_id, None)

    def of(self, turn_id: str) -> str | None:
        pieces = self._pieces.get(turn_id)
        return None if pieces is None else "".join(pieces)


class Bus:
    """The events of one store, numbered in commit order."""

    def __init__(self, store: Store, ids: Ids, metrics: Metrics | None = None) -> None:
        self._store = store
        self._ids = ids
        self._metrics = metrics or Metrics()
        self._publish: Verb[Event, None] = Verb("publish", self._insert, rank=LAST)
        self._everywhere: set[_Reader] = set()
        self._by_session: dict[str, set[_Reader]] = {}
        self._last_seq = 0
        self._replays = Replays(store)
        self.words = LiveWords()

    async def start(self) -> None:
        """Learn where the ledger stands; must run before the first reader comes."""
        self._last_seq = await self._store.transact(self._start)
        self._metrics.started_at(self._last_seq)

    def _start(self, tx: Tx) -> int:
        tx.run(
            "INSERT INTO bus_head (id, epoch, seq, pruned_through) VALUES (1, :epoch, 0, 0) "
            "ON CONFLICT DO NOTHING",
            epoch=self._ids.new("ep"),
        )
        row = tx.one("SELECT seq FROM bus_head WHERE id = 1")
        assert row is not None
        return row[0]

    def publish(
        self,
        tx: Tx,
        what: Event | str,
        session_key: str | None = None,
        *,
        turn_id: str | None = None,
        stimulus_id: str | None = None,
        **data: object,
    ) -> None:
        """Store an event, or one of this kind, with the transaction; readers see it after the
        commit.
        """
        if isinstance(what, str):
            what = Event(
                kind=what,
                session_key=session_key,
                turn_id=turn_id,
                stimulus_id=stimulus_id,
                data=data,
            )
        tx.gather(self._publish, what)

    def show(self, event: Event) -> None:
        """Show a live-only frame to whoever is watching now."""
        self._hand_out(event)

    def is_watched(self, session_key: str) -> bool:
        """Tell whether anybody would see a live-only frame of this session."""
        return bool(self._everywhere) or session_key in self._by_session

    async def head(self) -> str:
        """Return the cursor after the newest event."""
        ((epoch, seq),) = await self._store.read("SELECT epoch, seq FROM bus_head")
        return f"{epoch}-{seq}"

    def follow(
        self,
        *,
        topics: Sequence[str] = ("*",),
        session_key: str | None = None,
        since: str | None = None,
    ) -> "Subscription":
        """Follow events after `since`, then live ones; without `since`, live ones from now on.

        A `gap` frame says that the reader was slow and missed live frames; stored events still
        all come. A `reset` frame says that `since` is unknown here: read the state anew.
        """
        reader = self._join(topics, session_key)
        return Subscription(self, reader, since, lambda: self._part(reader, session_key))

    def prune(self, tx: Tx, before: int, keep: int, limit: int) -> str | None:
        """Forget events that are too old or too many, from the oldest on; None when done."""
        rows = tx.all(
            "SELECT events.seq, events.at, bus_head.seq FROM events, bus_head "
            "ORDER BY events.seq LIMIT :limit",
            limit=limit,
        )
        through = 0
        for seq, at, head in rows:
            if at >= before and seq > head - keep:
                break
            through = seq
        if not through:
            return None
        tx.run("DELETE FROM events WHERE seq <= :through", through=through)
        tx.run("UPDATE bus_head SET pruned_through = :through WHERE id = 1", through=through)
        return "more" if through == rows[-1][0] and len(rows) == limit else None

    @contextmanager
    def watch(self, session_key: str) -> "Generator[Watch, None, None]":
        """Collect the events of a session from this moment on, for as long as the block lasts."""
        reader = self._join(("*",), session_key)
        try:
            yield Watch(reader)
        finally:
            self._part(reader, session_key)

    def _join(self, topics: Sequence[str], session_key: str | None) -> "_Reader":
        reader = _Reader(tuple(topics), session_key, self._last_seq)
        self._group(session_key).add(reader)
        return reader

    def _part(self, reader: "_Reader", session_key: str | None) -> None:
        group = self._group(session_key)
        group.discard(reader)
        if session_key is not None and not group:
            self._by_session.pop(session_key, None)

    def _group(self, session_key: str | None) -> "set[_Reader]":
        if session_key is None:
            return self._everywhere
        return self._by_session.setdefault(session_key, set())

    async def position(self, cursor: str) -> int | None:
        """Return the sequence number a cursor stands at, or None if it means nothing here.

        `0` stands before the oldest event that is kept.
        """
        epoch, _, text = cursor.rpartition("-")
        ((known, seq, pruned_through),) = await self._store.read(
            "SELECT epoch, seq, pruned_through FROM bus_head"
        )
        if cursor == "0":
            return pruned_through
        if epoch != known or not (text.isascii() and text.isdecimal() and len(text) < 20):
            return None
        return int(text) if pruned_through <= int(text) <= seq else None

    async def page(self, reader: "_Reader", through: int) -> list[Event]:
        """Return stored events after what the reader has seen; those after `through` come live."""
        page = await self._replays.page(reader.seen)
        found: list[Event] = []
        if page.pruned_through > reader.seen:
            reader.seen = page.pruned_through
            found.append(Event(kind="reset", data={"cursor": f"{page.epoch}-{reader.seen}"}))
        for event in page.events:
            if event.seq is None or event.seq > through:
                break
            reader.seen = event.seq
            if reader.wants(event):
                found.append(event)
        else:
            if page.events:
                return found
        reader.seen = max(reader.seen, through)
        return found

    @property
    def last_seq(self) -> int:
        """The number of the newest event that readers here were offered."""
        return self._last_seq

    def _insert(self, tx: Tx, events: Sequence[Event]) -> Sequence[None]:
        head = tx.one(
            "UPDATE bus_head SET seq = seq + :count WHERE id = 1 RETURNING epoch, seq",
            count=len(events),
        )
        assert head is not None
        epoch, last = head
        first = last - len(events) + 1
        at = tx.now  # by the time that readers are told, the next transaction may have begun
        tx.many(
            "INSERT INTO events (seq, kind, session_key, turn_id, stimulus_id, at, data) "
            "VALUES (:seq, :kind, :session_key, :turn_id, :stimulus_id, :at, :data)",
            [
                {
                    "seq": seq,
                    "kind": event.kind,
                    "session_key": event.session_key,
                    "turn_id": event.turn_id,
                    "stimulus_id": event.stimulus_id,
                    "at": at,
                    "data": _encode(event.data).decode(),
                }
                for seq, event in enumerate(events, first)
            ],
        )
        tx.after_commit(lambda: self._committed(events, first, epoch, at))
        return [None] * len(events)

    def _committed(self, events: Sequence[Event], first: int, epoch: str, at: int) -> None:
        if first != self._last_seq + 1:
            for reader in self._readers():  # another node wrote in between
                reader.is_behind = True
                reader.wake()
        self._last_seq = first + len(events) - 1
        self._metrics.committed((event.kind for event in events), self._last_seq)
        for event in events:
            for what in self_woken(event):
                self._metrics.proactive(agent_of(event.session_key or "agent::"), what)
        if not self._everywhere and not self._by_session:
            return
        for seq, event in enumerate(events, first):
            self._hand_out(msgspec.structs.replace(event, seq=seq, epoch=epoch, at=at))

    def _hand_out(self, event: Event) -> None:
        for reader in tuple(self._everywhere):
            reader.offer(event)
        if event.session_key is not None:
            for reader in tuple(self._by_session.get(event.session_key, ())):
                reader.offer(event)

    def _readers(self) -> Iterator["_Reader"]:
        yield from self._everywhere
        for group in self._by_session.values():
            yield from group


class Subscription:
    """Events as they come, from the moment it was made; close it, or let it go, to leave."""

    def __init__(
        self, bus: Bus, reader: "_Reader", since: str | None, part: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._reader = reader
        self._since = since
        self._part = part
        self._through = reader.joined_at  # stored events up to here are read from the ledger
        self._taken: deque[Event] = deque()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> Event:
        while not self._taken:
            self._taken.extend(await self.batch())
        return self._taken.popleft()

    async def batch(self) -> list[Event]:
        """Wait for events and return the next ones; none if somebody nudged instead.

        May be cancelled and called again: nothing is lost.
        """
        reader = self._reader
        if self._since is not None:
            position = await self._bus.position(self._since)
            epoch = (await self._bus.head()).rpartition("-")[0]
            self._since = None
            if position is None:
                return [Event(kind="reset", data={"cursor": f"{epoch}-{reader.joined_at}"})]
            reader.seen = position
            return []
        if reader.seen < self._through:
            return await self._bus.page(reader, self._through)
        if events := list(islice(reader.take(), BATCH_LIMIT)):
            return events
        if reader.is_behind:
            reader.is_behind = False
            self._through = self._bus.last_seq
            return [Event(kind="gap")]
        await reader.wait()
        return list(islice(reader.take(), BATCH_LIMIT))

    def nudge(self) -> None:
        """Let whoever waits for a batch look up."""
        self._reader.wake()

    async def aclose(self) -> None:
        self._part()

    def __del__(self) -> None:
        self._part()


class Watch:
    """What a session's events have been since the watch began."""

    def __init__(self, reader: "_Reader") -> None:
        self._reader = reader

    async def until(self, wanted: Callable[[Event], bool]) -> Event | None:
        """Return the next wanted event, or None if some were missed: then look for yourself."""
        while True:
            for event in self._reader.take():
                if wanted(event):
                    return event
            if self._reader.is_behind:
                self._reader.is_behind = False
                return None
            await self._reader.wait()


class _Reader:
    """One follower: a bounded queue, and how far it has seen the ledger."""

    def __init__(self, topics: tuple[str, ...], session_key: str | None, joined_at: int) -> None:
        self._topics = topics
        self._session_key = session_key
        self.joined_at = joined_at  # the newest event when it came
        self._queue: deque[Event] = deque()
        self._woken = asyncio.Event()
        self.seen = joined_at
        self.is_behind = False

    def wants(self, event: Event) -> bool:
        if self._session_key is not None and event.session_key != self._session_key:
            return False
        return any(matches(topic, event.kind) for topic in self._topics)

    def offer(self, event: Event) -> None:
        if not self.wants(event):
            return
        if len(self._queue) >= QUEUE_LIMIT:
            # Nothing stored is lost: the reader goes back to the ledger at its own pace.
            self._queue.clear()
            self.is_behind = True
        if not self.is_behind:
            self._queue.append(event)
        self.wake()

    def take(self) -> Iterator[Event]:
        """Yield what is waiting and has not been seen in the ledger already."""
        while self._queue:
            event = self._queue.popleft()
            if event.seq is None:
                yield event
            elif event.seq > self.seen:
                self.seen = event.seq
                yield event

    def wake(self) -> None:
        self._woken.set()

    async def wait(self) -> None:
        if not self._queue and not self.is_behind:
            self._woken.clear()
            await self._woken.wait()
