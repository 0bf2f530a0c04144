"""Tokens: the operator makes and revokes them."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.access.credentials import Credentials
from wakeful.access.tokens import NewToken
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.paging import Page
from wakeful.doors.http.shapes import shaped
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Trust


class TokenShape(Record):
    """A token, without its secret."""

    id: str
    name: str
    scopes: Sequence[str]
    trust: Trust
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class MadeToken(TokenShape):
    """A new token; its secret is shown this once."""

    token: str


class TokenBody(Given):
    """A token that is wanted."""

    name: str
    scopes: tuple[str, ...]
    trust: Trust = Trust.EXTERNAL
    expires_at: datetime | None = None


class TokenEndpoints:
    """Who may come in."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/tokens",
                scope=OPERATOR,
                summary="List the tokens",
                answer=self.page,
                returns={200: Page[TokenShape]},
            ),
            Endpoint(
                method="POST",
                path="/api/tokens",
                scope=OPERATOR,
                summary="Make a token; the answer shows its secret, once",
                answer=self.add,
                body=TokenBody,
                returns={201: MadeToken},
                links=(Link("DELETE", "/api/tokens/{name}", "name", "/id"),),
            ),
            Endpoint(
                method="DELETE",
                path="/api/tokens/{name}",
                scope=OPERATOR,
                summary="Revoke a token; what it has open closes",
                answer=self.revoke,
                returns={200: TokenShape},
            ),
        ]

    async def page(self, call: Call[Nothing, Nothing]) -> Page[TokenShape]:
        every = await self._credentials.every()
        return Page(items=[shaped(TokenShape, token) for token in every], next=None)

    async def add(self, call: Call[Nothing, TokenBody]) -> tuple[int, MadeToken]:
        body = call.body
        wanted = NewToken(
            name=body.name,
            scopes=body.scopes,
            trust=body.trust,
            expires_at=_wall_ms(body.expires_at),
        )
        made = await self._credentials.add(wanted, by=call.principal.name)
        return 201, shaped(MadeToken, made.token, token=made.secret)

    async def revoke(self, call: Call[Nothing, Nothing]) -> TokenShape:
        token = await self._credentials.revoke(call.path["name"], by=call.principal.name)
        return shaped(TokenShape, token)


def _wall_ms(time: datetime | None) -> int | None:
    if time is None:
        return None
    if time.tzinfo is None:
        raise InvalidInput("expires_at", "must have an offset, such as Z")
    try:
        return round(time.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidInput("expires_at", "is no time that a calendar has") from None
