"""`GET /api/events`: everything that happens, resumable."""

import re
from collections import OrderedDict, deque
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.bus.bus import Subscription
from wakeful.doors import naming
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.paging import Cursor
from wakeful.doors.http.shapes import time_of
from wakeful.doors.http.sse import MEDIA_TYPE, EventStream, frame
from wakeful.services import Views
from wakeful.views.sessions import SessionView
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.event import Event

LAST_EVENT_ID = "Last-Event-ID"
REMEMBERED = 1024 * 1024  # bytes of frames kept for the other readers of the same event
MOST_TOPICS = 50
LARGEST_WRITE = 64 * 1024  # bytes written at once, but for the last frame of them

_TOPIC = re.compile(r"[a-z_]+(\.[a-z_]+)*(\.?\*)?|\*")
_ABOUT_THE_STREAM = frozenset({"gap", "reset"})
_INSTANT = re.compile(r".*_at|held_until")  # fields of events that are times


class EventsQuery(Given):
    """Which events, and from where on."""

    topics: Annotated[str, msgspec.Meta(max_length=2000)] | None = None
    since: Cursor | None = None
    session: Cursor | None = None  # only what happens there; it need not exist yet


class Events:
    """The bus, as server-sent events."""

    def __init__(self, views: Views, streams: OpenStreams) -> None:
        self._views = views
        self._streams = streams
        self._frames = Frames()

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/events",
                scope=ANYBODY,
                summary="Follow events: those after a position, then live ones",
                answer=self.follow,
                query=EventsQuery,
                headers={LAST_EVENT_ID: "Where a reader that comes back left off."},
                returns={200: MEDIA_TYPE},
                streams=True,
            )
        ]

    async def follow(self, call: Call[EventsQuery, Nothing]) -> Response:
        topics = _topics(call.query.topics)
        since = call.request.headers.get(LAST_EVENT_ID) or call.query.since
        # A new reader begins at a known position too: it may be cut off before its first event.
        subscription = self._views.bus.follow(
            topics=topics,
            session_key=self._session_key(call),
            since=since or await self._views.bus.head(),
        )
        source = EventSource(subscription, call.principal, self._views.sessions, self._frames)
        return EventStream(source, call.principal, self._streams, self._views.clock)

    def _session_key(self, call: Call[EventsQuery, Nothing]) -> str | None:
        if call.query.session is None:
            return None
        key = naming.key_of(self._views, call.query.session, "session")
        return self._views.bindings.answering_session(key, call.principal.owner)


class EventSource:
    """The events of the bus that a principal may see."""

    def __init__(
        self,
        subscription: Subscription,
        principal: Principal,
        sessions: SessionView,
        frames: "Frames",
    ) -> None:
        self._subscription = subscription
        self._principal = principal
        self._sessions = sessions
        self._frames = frames
        self._waiting: deque[Event] = deque()

    async def next(self) -> bytes | None:
        if not self._waiting:
            for event in await self._subscription.batch():
                if await self._may_see(event):
                    self._waiting.append(event)
        written: list[bytes] = []
        left = LARGEST_WRITE
        while self._waiting and left > 0:
            written.append(self._frames.of(self._waiting.popleft()))
            left -= len(written[-1])
        return b"".join(written)

    def nudge(self) -> None:
        self._subscription.nudge()

    async def close(self) -> None:
        await self._subscription.aclose()

    async def _may_see(self, event: Event) -> bool:
        if not rules.may_hear_of(self._principal, event.kind):
            return False
        if rules.sees_all(self._principal.viewer):
            return True
        if event.session_key is None:
            return event.kind in _ABOUT_THE_STREAM
        owner = await self._sessions.last_owner_of(event.session_key)
        return rules.may_see(self._principal, owner)


class Frames:
    """Frames of events, each encoded once for all who read it."""

    def __init__(self) -> None:
        # By identity; the event is kept with its frame, so that no other can have its number.
        self._known: OrderedDict[int, tuple[Event, bytes]] = OrderedDict()
        self._size = 0

    def of(self, event: Event) -> bytes:
        known = self._known.get(id(event))
        if known is not None:
            return known[1]
        encoded = encode(event)
        self._known[id(event)] = (event, encoded)
        self._size += len(encoded)
        while self._size > REMEMBERED:
            _, (_, forgotten) = self._known.popitem(last=False)
            self._size -= len(forgotten)
        return encoded


def encode(event: Event) -> bytes:
    """Return an event's frame: its names and its data in one object."""
    data: dict[str, Any] = {}
    if event.at:
        data["at"] = time_of(event.at)
    for name in ("session_key", "turn_id", "stimulus_id"):
        if (value := getattr(event, name)) is not None:
            data[name] = value
    if event.seq is None:
        data["live"] = True
    cursor = event.data["cursor"] if event.kind == "reset" else event.cursor
    data |= {name: _said(name, value) for name, value in event.data.items()}
    return frame(event.kind, data, cursor)


def _said(name: str, value: Any) -> Any:
    """Return a value of an event as clients read it: times are those of the calendar."""
    is_time = type(value) is int and _INSTANT.fullmatch(name)
    return time_of(value) if is_time else value


def _topics(text: str | None) -> tuple[str, ...]:
    if text is None or not text.strip():
        return ("*",)
    topics = tuple(topic.strip() for topic in text.split(","))
    if len(topics) > MOST_TOPICS:
        raise InvalidInput("topics", f"must be at most {MOST_TOPICS}")
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            raise InvalidInput("topics", f"must be kinds, each may end in '*', not {topic[:40]!r}")
    return topics
