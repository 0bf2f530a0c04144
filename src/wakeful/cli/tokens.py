"""`tokens`, `login`: who may come in."""

import asyncio
from typing import Annotated, Any

import typer

from wakeful.access.credentials import Credentials
from wakeful.access.tokens import NewToken
from wakeful.cli.client import segment
from wakeful.cli.context import CliContext
from wakeful.cli.output import safe
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.stimulus import Trust

BY = "cli"

Name = Annotated[str, typer.Argument(help="The token's name.")]
NameOrId = Annotated[str, typer.Argument(help="The token's name or id.")]
Scopes = Annotated[
    list[str],
    typer.Option(
        "--scope", help="operator, send, read, hub, inbox:SOURCE or a2a:PEER; repeatable."
    ),
]
Trusted = Annotated[
    bool, typer.Option("--trusted", help="What is sent with it speaks for the operator.")
]


def add(context: CliContext, name: Name, scope: Scopes, trusted: Trusted = False) -> None:
    """Make a token; its secret is shown this once."""
    trust = Trust.OPERATOR if trusted else Trust.EXTERNAL
    server = context.server()
    if server is not None:
        body = {"name": name, "scopes": scope, "trust": trust.value}
        made: dict[str, Any] = server.post("/api/tokens", body)
    else:
        made = asyncio.run(_add(context, NewToken(name=name, scopes=tuple(scope), trust=trust)))
    context.out.data(made, [made["token"]])
    context.out.note("Keep it: it is not shown again.")


def list_(context: CliContext) -> None:
    """List the tokens, without their secrets."""
    page = context.reader().get("/api/tokens")
    rows = [
        [one["name"], " ".join(one["scopes"]), _state(context, one), one["id"]]
        for one in page["items"]
    ]
    lines = context.out.table(["name", "scopes", "state", "id"], rows)
    context.out.data(page, lines or ["no token yet; the first `wakeful up` makes the operator's"])


def revoke(context: CliContext, name: NameOrId) -> None:
    """Revoke a token; whatever it has open closes at once."""
    server = context.server()
    if server is not None:
        gone: dict[str, Any] = server.delete(f"/api/tokens/{segment(name)}")
    else:
        gone = asyncio.run(_revoke(context, name))
    context.out.data(gone, [f"{safe(gone['name'])} is revoked"])


def login(context: CliContext) -> None:
    """Print a link that signs a browser in; it works once, for five minutes."""
    server = context.needed_server()
    made = server.post("/api/login/code")
    link = login_link(server.url, made["code"])
    context.out.data({"link": link, "expires_at": made["expires_at"]}, [link])


def login_link(url: str, code: str) -> str:
    """Return the address that signs a browser in; servers and logs never see a fragment."""
    return f"{url}/#code={code}"


def _state(context: CliContext, token: dict[str, Any]) -> str:
    if token["revoked_at"] is not None:
        return f"revoked {context.how_long(token['revoked_at'])}"
    if token["expires_at"] is not None:
        return f"expires {context.how_long(token['expires_at'])}"
    return f"made {context.how_long(token['created_at'])}"


async def _add(context: CliContext, wanted: NewToken) -> dict[str, Any]:
    """Make a token in the database itself; it is opened as a server would, or not at all."""
    store = await _opened(context)
    try:
        made = await Credentials(store, Ids(context.clock)).add(wanted, by=BY)
    finally:
        await store.close()
    token = made.token
    return {"id": token.id, "name": token.name, "scopes": token.scopes, "token": made.secret}


async def _revoke(context: CliContext, name: str) -> dict[str, Any]:
    store = await _opened(context)
    try:
        token = await Credentials(store, Ids(context.clock)).revoke(name, by=BY)
    finally:
        await store.close()
    return {"id": token.id, "name": token.name, "scopes": token.scopes}


async def _opened(context: CliContext) -> Any:
    # Loads the database's driver, which only this case needs.
    from wakeful.store.opening import is_postgres, open_store

    address = context.loaded.settings.database
    return await open_store(
        address if is_postgres(address) else context.database, clock=context.clock
    )
