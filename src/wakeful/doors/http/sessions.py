"""Sessions: which there are, and what was said in them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from wakeful.doors import naming
from wakeful.doors.http.automations import QueuedRun, queued_in
from wakeful.doors.http.endpoint import ANYBODY, Call, Endpoint, Nothing
from wakeful.doors.http.paging import Cursor, Page, PageQuery, paged
from wakeful.doors.http.shapes import (
    EntryShape,
    UsageShape,
    entry_shape,
    shaped,
    time_or_none,
)
from wakeful.services import Views
from wakeful.transcript.sessions import Overrides, Session
from wakeful.views.cards import TranscriptCard
from wakeful.views.pages import is_full
from wakeful.views.sessions import Order, place
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import ChatType, SessionKey


class LaneShape(Record):
    """What a session's lane is doing."""

    state: str
    waits_for: str | None
    turn_id: str | None
    waiting: int
    ready_at: datetime | None


class AsleepShape(Record):
    """The sleep that a session is in."""

    id: str
    reason: str
    created_at: datetime
    wake_at: datetime
    buffered: int
    dropped: int


class SessionShape(Record):
    """A session."""

    key: str
    agent_id: str
    chat_type: ChatType
    parent: str | None
    parent_kind: str | None  # thread, fork or spawn
    label: str | None
    display_name: str | None  # of the peer or room, as its door told last
    subject: str | None
    transcript_id: str
    created_at: datetime
    started_at: datetime
    last_human_at: datetime | None
    last_activity_at: datetime | None
    entries: int
    unread: int
    usage: UsageShape
    cost: float
    queue: QueueOverrides
    overrides: Overrides
    lane: LaneShape | None = None  # only when one session is asked for
    sleep: AsleepShape | None = None
    next_tick_at: datetime | None = None
    queued_automations: Sequence[QueuedRun] = ()  # runs that wait until it is idle, or may run


class BranchShape(Record):
    """A path through a transcript; `entries` counts those it shares with others, too."""

    id: str
    leaf_id: str | None
    entries: int


class TranscriptShape(Record):
    """One conversation of a session."""

    id: str
    is_current: bool
    started_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    branch: str
    leaf_id: str | None
    entries: int
    branches: Sequence[BranchShape]
    has_more_branches: bool = False  # older ones, where there are too many to show


class LabelShape(Record):
    """The label of an entry."""

    entry_id: str
    label: str


class SessionsQuery(PageQuery):
    """Which page, in which order."""

    order: Order = "created"  # or by the last use


class EntriesQuery(PageQuery):
    """Entries after one, or leading up to one; without either, the newest.

    `transcript` is the id of a transcript, or the leaf of one of its branches; without it, the
    path that goes on.
    """

    transcript: Cursor | None = None
    before: Cursor | None = None


class Sessions:
    """Conversations."""

    def __init__(self, views: Views) -> None:
        self._views = views

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
                method="GET",
                path="/api/sessions/{key}/transcripts",
                scope=ANYBODY,
                summary="List the conversations of a session, the newest first",
                answer=self.transcripts,
                query=PageQuery,
                returns={200: Page[TranscriptShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/sessions/{key}/labels",
                scope=ANYBODY,
                summary="List the labels of entries",
                answer=self.labels,
                returns={200: Page[LabelShape]},
            ),
        ]

    async def page(self, call: Call[SessionsQuery, Nothing]) -> Page[SessionShape]:
        limit, order = call.query.limit, call.query.order
        viewer = call.principal.viewer
        found = await self._views.sessions.page(viewer, call.query.after, limit + 1, order)
        return paged(found, limit, session_shape, lambda session: place(session, order))

    async def get(self, call: Call[Nothing, Nothing]) -> SessionShape:
        session = await self._session(call)
        status = await self._views.lanes.status(session.key)
        sleep = await self._views.sleeps.of_session(session.key)
        return replace(
            session_shape(session, shaped(LaneShape, status)),
            sleep=None if sleep is None else shaped(AsleepShape, sleep),
            next_tick_at=time_or_none(await self._views.sleeps.next_tick_at(session.key)),
            queued_automations=await queued_in(self._views, session.key),
        )

    async def entries(self, call: Call[EntriesQuery, Nothing]) -> Page[EntryShape]:
        """Give a page; `next` continues in the direction that was asked for."""
        session, query = await self._session(call), call.query
        found = await self._views.transcripts.page(
            session.key,
            path=query.transcript,
            after=query.after,
            before=query.before,
            limit=query.limit + 1,
            is_page=True,
        )
        has_more = len(found) > query.limit or is_full(len(entry.body.encode()) for entry in found)
        if query.after is not None:
            items = found[: query.limit]
            next_id = items[-1].id if has_more else None
        else:
            items = found[-query.limit :]
            next_id = items[0].id if has_more else None
        causes = await self._views.transcripts.causes(items)
        shown = [entry_shape(entry, causes.get(entry.id)) for entry in items]
        return Page(items=shown, next=next_id)

    async def transcripts(self, call: Call[PageQuery, Nothing]) -> Page[TranscriptShape]:
        session, query = await self._session(call), call.query
        view = self._views.transcripts
        cards = await view.cards(session.key, after=query.after, limit=query.limit + 1)
        return paged(cards, query.limit, _transcript_shape, lambda card: card.place)

    async def labels(self, call: Call[Nothing, Nothing]) -> Page[LabelShape]:
        session = await self._session(call)
        found = await self._views.transcripts.labels(session.key)
        items = [LabelShape(entry_id=entry_id, label=label) for entry_id, label in found.items()]
        return Page(items=items, next=None)

    async def _session(self, call: Call[Any, Nothing]) -> Session:
        return await naming.seen_session(self._views, call.principal, call.path["key"])


def session_shape(session: Session, lane: LaneShape | None = None) -> SessionShape:
    return shaped(
        SessionShape,
        session,
        chat_type=keys.parse(SessionKey(session.key)).chat_type,
        last_activity_at=time_or_none(session.last_write_at),
        entries=session.leaf_depth + 1,
        usage=UsageShape(input=session.input_tokens, output=session.output_tokens),
        lane=lane,
    )


def _transcript_shape(card: TranscriptCard) -> TranscriptShape:
    return shaped(
        TranscriptShape,
        card,
        id=card.tip.transcript_id,
        branch=card.tip.branch,
        leaf_id=card.tip.leaf_id,
        entries=card.tip.leaf_depth + 1,
        branches=[
            BranchShape(id=tip.branch, leaf_id=tip.leaf_id, entries=tip.leaf_depth + 1)
            for tip in card.branches
        ],
    )
