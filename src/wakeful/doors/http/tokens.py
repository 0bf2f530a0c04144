"""Tokens: the operator makes and revokes them."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.access.tokens import NewToken, Token
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import Page, time_of, time_or_none
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


class Tokens:
    """Who may come in."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

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
        every = await self._rooms.credentials.every()
        return Page(items=[_shape(token) for token in every], next=None)

    async def add(self, call: Call[Nothing, TokenBody]) -> tuple[int, MadeToken]:
        body = call.body
        wanted = NewToken(
            name=body.name,
            scopes=body.scopes,
            trust=body.trust,
            expires_at=_wall_ms(body.expires_at),
        )
        made = await self._rooms.credentials.add(wanted, by=call.principal.name)
        token = made.token
        return 201, MadeToken(
            id=token.id,
            name=token.name,
            scopes=token.scopes,
            trust=token.trust,
            created_at=time_of(token.created_at),
            expires_at=time_or_none(token.expires_at),
            revoked_at=None,
            token=made.secret,
        )

    async def revoke(self, call: Call[Nothing, Nothing]) -> TokenShape:
        token = await self._rooms.credentials.revoke(call.path["name"], by=call.principal.name)
        return _shape(token)


def _shape(token: Token) -> TokenShape:
    return TokenShape(
        id=token.id,
        name=token.name,
        scopes=token.scopes,
        trust=token.trust,
        created_at=time_of(token.created_at),
        expires_at=time_or_none(token.expires_at),
        revoked_at=time_or_none(token.revoked_at),
    )


def _wall_ms(time: datetime | None) -> int | None:
    if time is None:
        return None
    if time.tzinfo is None:
        raise InvalidInput("expires_at", "must have an offset, such as Z")
    try:
        return round(time.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidInput("expires_at", "is no time that a calendar has") from None
