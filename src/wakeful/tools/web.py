"""Reading a page of the web, off by default: what comes back was written by anybody."""

import asyncio
import re
from typing import TYPE_CHECKING

from wakeful.net.target import parse
from wakeful.tools.html_text import text_of
from wakeful.tools.tool import Effect, ToolContext, ToolResult, tool
from wakeful.vocabulary.text import charset_of, one_line

if TYPE_CHECKING:
    from wakeful.net.client import Client

LARGEST_PAGE = 2 * 1024 * 1024  # bytes that are read
LONGEST_LINK = 2000
LONGEST_TEXT = 1_000_000  # characters that are kept
TIMEOUT_S = 40.0  # the client gives up before

_TEXT = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml)\b")
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]{1,40})")


@tool(effect=Effect.READ, timeout_s=TIMEOUT_S)
async def web_fetch(context: ToolContext, url: str) -> ToolResult:
    """Fetch a page of the web by its http or https address and return its text.

    Redirects are named and not followed; addresses that are not public are refused.
    """
    # Loaded by those alone who fetch something: HTTP and TLS take time and memory.
    from wakeful.net.client import Client

    return await fetched(Client(context.clock), url)


async def fetched(client: "Client", url: str) -> ToolResult:
    """Return what a client finds at an address."""
    from wakeful.net.client import HttpRequest

    parse(url)
    request = HttpRequest(
        method="GET", url=url, headers={"Accept": "text/*, */*"}, most_bytes=LARGEST_PAGE
    )
    answer = await client.send(request)
    status, kind = answer.status, answer.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        where = one_line(answer.headers.get("location", "nowhere"), LONGEST_LINK)
        return _external(f"[{status}: the page is elsewhere: {where}]", is_error=True)
    if not _TEXT.match(kind):
        said = f"{len(answer.body)} bytes of {one_line(kind, 100) or 'something'}, not shown"
        return _external(f"[{status}: {said}]", is_error=True)
    text = (await asyncio.to_thread(_readable, answer.body, kind))[:LONGEST_TEXT]
    if not answer.is_whole:
        text += f"\n[cut: only the first {LARGEST_PAGE} bytes were read]"
    shown = f"[{status}]\n{text}" if status >= 400 else text
    return _external(shown, is_error=status >= 400)


def _external(text: str, *, is_error: bool) -> ToolResult:
    """Return what came back: whoever runs the page wrote all of it, its address and type too."""
    return ToolResult(text=text, is_error=is_error, is_external=True)


def _readable(body: bytes, kind: str) -> str:
    text = body.decode(_charset(kind), "replace")
    return text_of(text) if "html" in kind else text


def _charset(kind: str) -> str:
    found = _CHARSET.search(kind)
    return charset_of(found[1] if found else "")
