"""Mounts: ASGI apps of libraries, each below a prefix, opened by the first who asks for them."""

from asyncio import Event, TaskGroup
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope

from wakeful.doors.http.app import Visit
from wakeful.doors.http.endpoint import ANY_METHOD, JSON, BodyRule, Row
from wakeful.doors.http.headers import add_defaults
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.problems import Problem, note_bug
from wakeful.doors.http.state import ABORT


@dataclass(frozen=True, kw_only=True)
class Mount(Row):
    """A row that answers everything below its path, whatever the method.

    The app finds the principal in its scope, and the parameters of the path in `path_params`.
    """

    method: str = ANY_METHOD
    # Imports and opens the app; raises `problems.missing(…)` if an extra is not installed.
    make: Callable[[], AbstractAsyncContextManager[ASGIApp]]
    media_types: tuple[str, ...] = (JSON,)

    def __post_init__(self) -> None:
        if self.is_open:
            raise ValueError(f"{self.path} is mounted: it needs a scope")

    def body_rule(self) -> BodyRule:
        return BodyRule(largest=self.largest_body, media_types=frozenset(self.media_types))


@dataclass(eq=False)
class _Opening:
    """An app that is about to be there, or why it is not."""

    is_over: Event
    app: ASGIApp | None = None
    error: Exception | None = None


class Mounts:
    """A service: the apps live in it, since what they open must be closed where it was opened."""

    def __init__(self, streams: OpenStreams) -> None:
        self._streams = streams
        self._open: dict[str, _Opening] = {}
        self._group: TaskGroup | None = None

    async def run(self) -> None:
        """Keep the apps open until cancelled."""
        async with TaskGroup() as group:
            self._group = group
            await Event().wait()

    async def serve(self, visit: Visit) -> None:
        """Have a mounted app answer; what it holds open ends with the token or the server."""
        mount, principal = visit.place.row, visit.principal
        assert isinstance(mount, Mount)
        assert principal is not None
        with mount.admitted(visit.scope, visit.place.path):
            app = await self._app(mount)
            passage = _Passage(visit)
            try:
                async with self._streams.wait(principal):
                    await app(_inner(visit), passage.receive, passage.send)
            except TimeoutError:
                passage.problem = Problem("unavailable", "the answer was cut short")
            except Exception as error:
                note_bug(f"the app below {mount.path}", error)
            passage.end()

    async def _app(self, mount: Mount) -> ASGIApp:
        opening = self._open.get(mount.path)
        if opening is None:
            assert self._group is not None
            opening = self._open[mount.path] = _Opening(Event())
            self._group.create_task(self._keep(mount, opening), name=f"app below {mount.path}")
        await opening.is_over.wait()
        if opening.app is None:
            raise opening.error or Problem("unavailable", "the server is stopping")
        return opening.app

    async def _keep(self, mount: Mount, opening: _Opening) -> None:
        """Open an app and keep it; after a failure the next request tries again."""
        try:
            async with mount.make() as app:
                opening.app = app
                opening.is_over.set()
                await Event().wait()
        except Exception as error:
            if opening.app is not None:
                note_bug(f"the app below {mount.path}", error)
            opening.error = error
        finally:
            del self._open[mount.path]
            opening.is_over.set()


class _Passage:
    """What passes between a server and an app; the app's body obeys our limits, not its own."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self.problem: Problem | None = None  # for which the app cannot be blamed
        self._has_begun = False
        self._is_whole = False

    async def receive(self) -> Message:
        try:
            message = await self._visit.receive()
        except Problem as problem:
            # A library answers an exception with a 500 of its own, but leaves with its client.
            self.problem = problem
            return {"type": "http.disconnect"}
        if message["type"] == "http.disconnect" and self.problem is None:
            self.problem = Problem("bad-request", "the request was cut off")
        return message

    async def send(self, message: Message) -> None:
        if self.problem is not None and not self._has_begun:
            return
        if message["type"] == "http.response.start":
            self._has_begun = True
            self._visit.count(message["status"])
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            add_defaults(headers)
            message = {**message, "headers": headers}
        await self._visit.send(message)
        self._is_whole = message["type"] == "http.response.body" and not message.get("more_body")

    def end(self) -> None:
        """Refuse what was not answered, and cut off what was not answered to its end."""
        if not self._has_begun:
            raise self.problem or Problem("internal")
        if not self._is_whole:
            abort = self._visit.scope.get("state", {}).get(ABORT)
            if abort is not None:
                abort()


def _inner(visit: Visit) -> Scope:
    """Return the scope as the app sees it; the prefix itself is its `/`, however it is written."""
    path, raw_path = visit.scope["path"], visit.scope["raw_path"]
    words = raw_path.split(b"/")
    if len(words) == visit.place.words + 1:
        path, raw_path = f"{path}/", raw_path + b"/"
    root = unquote(b"/".join(words[: visit.place.words + 1]).decode("latin-1"))
    return {
        **visit.scope,
        "path": path,
        "raw_path": raw_path,
        "root_path": root,
        "path_params": dict(visit.place.path),
    }
