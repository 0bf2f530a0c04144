"""Requests from inside: what the guard and the app answer to one that never was on a wire."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope

from wakeful.vocabulary.errors import Invariant


class Inside:
    """Asks the door itself, as somebody on this machine would."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None  # until the door is built, of which this is a part

    def reach(self, app: ASGIApp) -> None:
        """Ask this app from now on."""
        self._app = app

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Return what a POST is answered."""
        if self._app is None:
            raise Invariant("nobody asks a door that is not open")
        answer: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            answer.append(message)

        await self._app(_scope(path, headers, len(body)), receive, send)
        content = b"".join(message.get("body", b"") for message in answer[1:])
        response = Response(content, answer[0]["status"])
        response.raw_headers = list(answer[0]["headers"])
        return response


def _scope(path: str, headers: Mapping[str, str], length: int) -> Scope:
    given = {**headers, "host": "127.0.0.1", "content-length": str(length)}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
        "state": {},
    }
