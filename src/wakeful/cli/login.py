"""`login`: a fresh link that signs a browser in."""

from wakeful.cli.context import CliContext


def login(desk: CliContext) -> None:
    """Print a link that signs a browser in; it works once, for five minutes."""
    server = desk.needed_server()
    made = server.post("/api/login/code")
    link = login_link(server.url, made["code"])
    desk.out.data({"link": link, "expires_at": made["expires_at"]}, [link])


def login_link(url: str, code: str) -> str:
    """Return the address that signs a browser in; servers and logs never see a fragment."""
    return f"{url}/#code={code}"
