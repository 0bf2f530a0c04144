"""`sessions search`: who said what, also while no server runs."""

from typing import Annotated, Any

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.output import BOLD, DIM, safe
from wakeful.cli.paging import Limit
from wakeful.transcript.search import Role

Words = Annotated[list[str], typer.Argument(help="Words, '\"a phrase\"', prefix*, -without.")]
Session = Annotated[
    str | None, typer.Option("--session", "-s", metavar="KEY", help="Only in this session.")
]
Speaker = Annotated[Role | None, typer.Option("--role", help="Only what they said.")]


def search(
    context: CliContext,
    words: Words,
    session: Session = None,
    role: Speaker = None,
    limit: Limit = 20,
) -> None:
    """Find what was said with all these words, the best match first."""
    page = _page(context, q=" ".join(words), session=session, role=role, limit=limit)
    lines = [line for hit in page["items"] for line in _lines(context, hit)]
    if page["next"] is not None:
        lines.append("… and more; ask for them with a larger --limit")
    if page.get("truncated"):
        lines.append("ranked are the newest matches; older ones come after all of them")
    context.out.data(page, lines or ["nothing was said like this"])


def _page(context: CliContext, *, limit: int, **wanted: Any) -> dict[str, Any]:
    """Return as many matches as were asked for; one page may have room for fewer."""
    reader = context.reader()
    page: dict[str, Any] = reader.get("/api/search", limit=limit, **wanted)
    items: list[Any] = page["items"]
    while page["next"] is not None and len(items) < limit:
        left = limit - len(items)
        page = reader.get("/api/search", limit=left, after=page["next"], **wanted)
        items += page["items"]
    return {**page, "items": items}


def _lines(context: CliContext, hit: dict[str, Any]) -> list[str]:
    head = f"{safe(hit['session_key'])} {hit['role']}"
    words = "".join(_word(context, part) for part in hit["snippet"])
    return [f"{head} {context.out.styled(context.when(hit['at']), DIM)}", f"  {words}"]


def _word(context: CliContext, part: dict[str, Any]) -> str:
    # Folded by itself: a space at the border of a mark must stay.
    text = part["text"]
    folded = safe(text)
    before = " " if text[:1].isspace() and folded else ""
    after = " " if text[-1:].isspace() else ""
    return f"{before}{context.out.styled(folded, BOLD) if part['is_match'] else folded}{after}"
