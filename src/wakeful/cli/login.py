"""`login`: a fresh link that signs a browser in."""

from wakeful.cli.context import CliContext
from wakeful.doors.http.logins import login_link


def login(desk: CliContext) -> None:
    """Print a link that signs a browser in; it works once, for five minutes."""
    server = desk.needed_server()
    made = server.post("/api/login/code")
    link = login_link(server.url, made["code"])
    desk.out.data({"link": link, "expires_at": made["expires_at"]}, [link])
