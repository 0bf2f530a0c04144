"""Logins: a code that works once, in the fragment of a link, becomes a browser's cookie."""

from datetime import datetime

from starlette.responses import Response

from wakeful.access.tokens import CODE_SECONDS, LOGIN_SECONDS
from wakeful.doors.http.endpoint import PUBLIC, Call, Endpoint, Given, Nothing
from wakeful.doors.http.guard import COOKIE, refused
from wakeful.doors.http.shapes import time_of
from wakeful.services import Services
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR

LARGEST_LOGIN = 4096  # bytes


class LoginBody(Given):
    """The code of a login link."""

    code: str


class LoginCode(Record):
    """A code that stands for the token that asked for it, once."""

    code: str
    expires_at: datetime


class Logins:
    """How a browser gets in."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/login",
                scope=PUBLIC,
                summary="Exchange the code of a login link for a cookie, once",
                answer=self.login,
                body=LoginBody,
                largest_body=LARGEST_LOGIN,  # it comes from anybody
                returns={204: ""},
            ),
            Endpoint(
                method="POST",
                path="/api/login/code",
                scope=OPERATOR,
                summary="Make a code for a login link; it works once, for five minutes",
                answer=self.make_code,
                returns={201: LoginCode},
            ),
        ]

    async def login(self, call: Call[Nothing, LoginBody]) -> Response:
        cookie = await self._services.credentials.exchange(call.body.code)
        if cookie is None:
            raise refused(self._services.gatekeeper, call.request.scope)
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=LOGIN_SECONDS,
            httponly=True,
            samesite="strict",
            # A proxy that is not trusted does not tell the scheme, but the browser does.
            secure="https" in (call.request.url.scheme, call.request.headers.get("origin", "")[:5]),
        )
        return response

    async def make_code(self, call: Call[Nothing, Nothing]) -> tuple[int, LoginCode]:
        principal, now = call.principal, self._services.views.clock.now()
        code = await self._services.credentials.login_code(principal.token_id, by=principal.name)
        return 201, LoginCode(code=code, expires_at=time_of(now + CODE_SECONDS * 1000))
