"""`login`: a fresh link that signs a browser in."""

from wakeful.cli.context import CliContext
from wakeful.doors.http.logins import login_link


def login(context: CliContext) -> None:
    """Print a link that signs a browser in; it works once, for five minutes."""
    server = context.needed_server()
    made = server.post("/api/login/code")
    link = login_link(server.url, made["code"])
    context.out.data({"link": link, "expires_at": made["expires_at"]}, [link])
