"""What may be done to a session: stop, reset, fork, choose, label, see, delete."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from wakeful.access.principal import Principal
from wakeful.doors import naming
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.sessions import SessionShape, session_shape
from wakeful.doors.http.shapes import EntryShape, ReceiptShape, entry_shape, shaped
from wakeful.intake.deletion import Deleted
from wakeful.intake.sessions import Changes
from wakeful.services import Services
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR, Trust

LONGEST_WISH = 10_000  # characters

EntryName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]

_LINKS = (Link("GET", "/api/sessions/{key}", "key", "/key"),)


class StoppedShape(Record):
    """What a stop ended."""

    turn_id: str | None
    cancelled: Sequence[str]


class ResetShape(Record):
    """The transcript that the session goes on in; while it waits, the one that it will leave."""

    transcript_id: str
    is_waiting: bool


class ForkBody(Given):
    """From where to go on (default: the last entry), and in which new session, if in one."""

    at: EntryName | None = None
    to: str | None = None
    summary: str | None = None  # what the path that is left came to


class QueueBody(QueueOverrides, forbid_unknown_fields=True):
    """How the session queues; what is not named, or null, is as its agent has it."""


class ChangesBody(Changes, forbid_unknown_fields=True):
    """What to choose; null takes a choice back, what is not named stays.

    A queue is one choice: it takes the place of the earlier one.
    """

    queue: QueueBody | UnsetType | None = UNSET

    def changes(self) -> Changes:
        """Return the choices as the engine knows them."""
        given = msgspec.structs.asdict(self)
        if isinstance(self.queue, QueueBody):
            given["queue"] = NO_OVERRIDES.under(self.queue)
        return Changes(**given)


class CompactBody(Given):
    """What matters in the summary, if anything in particular."""

    wish: Annotated[str, msgspec.Meta(max_length=LONGEST_WISH)] = ""


class SeenBody(Given):
    """Up to which entry; without one, all of them."""

    entry_id: EntryName | None = None


class LabelBody(Given):
    """The label of an entry; an empty one removes it."""

    entry_id: EntryName
    label: str


class DeleteQuery(Given):
    """Whether automations that are bound to the session go with it."""

    confirm: bool = False


class SessionChanges:
    """Conversations, changed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._views = services.views

    def endpoints(self) -> list[Endpoint]:
        at = "/api/sessions/{key}"
        return [
            _endpoint("POST", f"{at}/stop", _STOP, self.stop, StoppedShape),
            _endpoint("POST", f"{at}/reset", _RESET, self.reset, ResetShape),
            _endpoint(
                "POST", f"{at}/fork", _FORK, self.fork, SessionShape, body=ForkBody, links=_LINKS
            ),
            _endpoint(
                "POST", f"{at}/compact", _COMPACT, self.compact, ReceiptShape, body=CompactBody
            ),
            _endpoint("POST", f"{at}/undo-compaction", _UNDO, self.undo_compaction, EntryShape),
            _endpoint("PATCH", at, _CHOOSE, self.choose, SessionShape, body=ChangesBody),
            _endpoint("POST", f"{at}/labels", _LABEL, self.label, SessionShape, body=LabelBody),
            _endpoint("POST", f"{at}/seen", _SEE, self.see, SessionShape, body=SeenBody),
            _endpoint("DELETE", at, _DELETE, self.delete, Deleted, query=DeleteQuery),
        ]

    async def stop(self, call: Call[Nothing, Nothing]) -> StoppedShape:
        return shaped(StoppedShape, await self._services.intake.stop(await self._key(call)))

    async def reset(self, call: Call[Nothing, Nothing]) -> ResetShape:
        return shaped(ResetShape, await self._services.acts.reset(await self._key(call)))

    async def fork(self, call: Call[Nothing, ForkBody]) -> SessionShape:
        key, body = await self._key(call), call.body
        to = None if body.to is None else await self._new_key(call.principal, body.to)
        forked = await self._services.acts.fork(
            key,
            at=body.at,
            to=to,
            summary=body.summary,
            owner=call.principal.owner,
            is_external=call.principal.trust is Trust.EXTERNAL,
        )
        return session_shape(forked)

    async def _new_key(self, principal: Principal, words: str) -> SessionKey:
        """Return the key of a session that this principal may make."""
        if principal.is_operator:
            return naming.key_of(self._views, words, "to")
        making = self._services.gatekeeper.make_session
        return await naming.writable_session(self._views, principal, words, making)

    async def compact(self, call: Call[Nothing, CompactBody]) -> ReceiptShape:
        key, route = await self._key(call), Route(door="http")
        compactions = self._services.compactions
        return shaped(
            ReceiptShape, await compactions.ask(key, call.body.wish, route, call.principal)
        )

    async def undo_compaction(self, call: Call[Nothing, Nothing]) -> EntryShape:
        return entry_shape(await self._services.compactions.undo(await self._key(call)))

    async def choose(self, call: Call[Nothing, ChangesBody]) -> SessionShape:
        body = call.body
        spends = body.model is not msgspec.UNSET or body.thinking is not msgspec.UNSET
        if spends and not call.principal.may(OPERATOR):
            raise Problem("forbidden", "only the operator chooses a model, or how much it thinks")
        changes = body.changes()
        return session_shape(await self._services.acts.choose(await self._key(call), changes))

    async def label(self, call: Call[Nothing, LabelBody]) -> SessionShape:
        key, body = await self._key(call), call.body
        is_external = call.principal.trust is Trust.EXTERNAL
        await self._services.acts.label_entry(
            key, body.entry_id, body.label, is_external=is_external
        )
        return session_shape(await self._views.sessions.get(key))

    async def see(self, call: Call[Nothing, SeenBody]) -> SessionShape:
        key = await self._key(call)
        return session_shape(await self._services.acts.see(key, call.body.entry_id))

    async def delete(self, call: Call[DeleteQuery, Nothing]) -> Deleted:
        words, is_confirmed = call.path["key"], call.query.confirm
        if naming.is_alias(self._views, call.principal, words):
            return Deleted(deleted=True)  # a name without a session of its own: nothing is removed
        key = await self._key(call)
        return await self._services.deletion.delete(
            key, by=call.principal.name, is_confirmed=is_confirmed
        )

    async def _key(self, call: Call[Any, Any]) -> SessionKey:
        return await naming.own_session_key(self._views, call.principal, call.path["key"])


_STOP = "End the running turn and cancel the messages that wait"
_RESET = "Begin a new transcript; while a turn is open, with the next one"
_FORK = "Go on from an entry, on a new branch or in a new session"
_COMPACT = "Compact the older part of a conversation into a summary, when its lane is free"
_UNDO = "Give back the view before the last compaction"
_CHOOSE = "Choose a label, a model and the like for a session"
_LABEL = "Label an entry"
_SEE = "Note what people have read"
_DELETE = "Delete a session; what runs there is stopped first"


def _endpoint(
    method: str, path: str, summary: str, answer: Any, returns: type[Record], **more: Any
) -> Endpoint:
    return Endpoint(
        method=method,
        path=path,
        scope="send",
        summary=summary,
        answer=answer,
        returns={200: returns},
        **more,
    )
