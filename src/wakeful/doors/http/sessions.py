"""Sessions: which there are, what was said in them, and stopping what runs there."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Given, Nothing
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import (
    DEFAULT_PAGE,
    Cursor,
    EntryShape,
    Limit,
    Page,
    UsageShape,
    entry_shape,
    time_of,
    time_or_none,
)
from wakeful.transcript.sessions import Session
from wakeful.views.sessions import place
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey


class LaneShape(Record):
    """What a session's lane is doing."""

    state: str
    waits_for: str | None
    turn_id: str | None
    waiting: int
    ready_at: datetime | None


class SessionShape(Record):
    """A session."""

    key: str
    agent_id: str
    created_at: datetime
    last_human_at: datetime | None
    last_activity_at: datetime | None
    entries: int
    usage: UsageShape
    cost: float
    queue: QueueOverrides
    lane: LaneShape | None = None  # only when one session is asked for


class Stopped(Record):
    """What a stop ended."""

    turn_id: str | None
    cancelled: Sequence[str]


class SessionsQuery(Given):
    """Which page."""

    after: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


class EntriesQuery(Given):
    """Entries after one, or leading up to one; without either, the newest."""

    after: Cursor | None = None
    before: Cursor | None = None
    limit: Limit = DEFAULT_PAGE


class Sessions:
    """Conversations."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/sessions",
                scope=ANYBODY,
                summary="List sessions, newest first",
                answer=self.page,
                query=SessionsQuery,
                returns={200: Page[SessionShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/sessions/{key}",
                scope=ANYBODY,
                summary="Look at a session and its lane",
                answer=self.get,
                returns={200: SessionShape},
            ),
            Endpoint(
                method="GET",
                path="/api/sessions/{key}/entries",
                scope=ANYBODY,
                summary="Read the transcript by page, oldest first inside the page",
                answer=self.entries,
                query=EntriesQuery,
                returns={200: Page[EntryShape]},
            ),
            Endpoint(
                method="POST",
                path="/api/sessions/{key}/stop",
                scope="send",
                summary="End the running turn and cancel the messages that wait",
                answer=self.stop,
                returns={200: Stopped},
            ),
        ]

    async def page(self, call: Call[SessionsQuery, Nothing]) -> Page[SessionShape]:
        limit = call.query.limit
        found = await self._rooms.sessions.page(call.principal.owner, call.query.after, limit + 1)
        has_more = len(found) > limit
        return Page(
            items=[_shape(session) for session in found[:limit]],
            next=place(found[limit - 1]) if has_more else None,
        )

    async def get(self, call: Call[Nothing, Nothing]) -> SessionShape:
        session = await self._session(call)
        status = await self._rooms.lanes.status(session.key)
        lane = LaneShape(
            state=status.state,
            waits_for=status.waits_for,
            turn_id=status.turn_id,
            waiting=status.waiting,
            ready_at=time_or_none(status.ready_at),
        )
        return _shape(session, lane)

    async def entries(self, call: Call[EntriesQuery, Nothing]) -> Page[EntryShape]:
        """Give a page; `next` continues in the direction that was asked for."""
        session, query = await self._session(call), call.query
        found = await self._rooms.transcripts.page(
            session.key, after=query.after, before=query.before, limit=query.limit + 1
        )
        has_more = len(found) > query.limit
        if query.after is not None:
            items = found[: query.limit]
            next_id = items[-1].id if has_more else None
        else:
            items = found[-query.limit :]
            next_id = items[0].id if has_more else None
        return Page(items=[entry_shape(entry) for entry in items], next=next_id)

    async def stop(self, call: Call[Nothing, Nothing]) -> Stopped:
        session = await self._session(call)
        stopped = await self._rooms.intake.stop(SessionKey(session.key))
        return Stopped(turn_id=stopped.turn_id, cancelled=stopped.cancelled)

    async def _session(self, call: Call[EntriesQuery, Nothing] | Call[Nothing, Nothing]) -> Session:
        words = call.path["key"]
        try:
            key = self._rooms.key(words)
        except InvalidInput:
            raise NotFound("session", f"no session {words[:120]!r}") from None
        return await self._rooms.sessions.get(key, call.principal.owner)


def _shape(session: Session, lane: LaneShape | None = None) -> SessionShape:
    return SessionShape(
        key=session.key,
        agent_id=session.agent_id,
        created_at=time_of(session.created_at),
        last_human_at=time_or_none(session.last_human_at),
        last_activity_at=time_or_none(session.last_write_at),
        entries=session.leaf_depth + 1,
        usage=UsageShape(input=session.input_tokens, output=session.output_tokens),
        cost=session.cost,
        queue=session.queue,
        lane=lane,
    )
