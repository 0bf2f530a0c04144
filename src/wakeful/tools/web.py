"""Reading a page of the web, off by default: what comes back was written by anybody."""

import asyncio
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from wakeful.net.target import parse
from wakeful.prompts.fence import fenced
from wakeful.tools.tool import Effect, ToolContext, ToolResult, tool
from wakeful.vocabulary.text import one_line

if TYPE_CHECKING:
    from wakeful.net.client import Client

LARGEST_PAGE = 2 * 1024 * 1024  # bytes that are read
LONGEST_LINK = 2000
LONGEST_TEXT = 1_000_000  # characters that are kept
TIMEOUT_S = 40.0  # the client gives up before

_TEXT = re.compile(r"text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml)\b")
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]{1,40})")
_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr "
        "li main nav ol p pre section table td th tr ul",
    )
)


@tool(effect=Effect.READ, timeout_s=TIMEOUT_S)
async def web_fetch(context: ToolContext, url: str) -> ToolResult:
    """Fetch a page of the web by its http or https address and return its text.

    Redirects are named and not followed; addresses that are not public are refused.
    """
    # Loaded by those alone who fetch something: HTTP and TLS take time and memory.
    from wakeful.net.client import Client

    return await fetched(Client(context.clock), url, context.key)


async def fetched(client: "Client", url: str, key: str) -> ToolResult:
    """Return what a client finds at an address."""
    from wakeful.net.client import Request

    host = parse(url).host
    request = Request(
        method="GET", url=url, headers={"Accept": "text/*, */*"}, most_bytes=LARGEST_PAGE
    )
    answer = await client.send(request)
    status, kind = answer.status, answer.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        where = one_line(answer.headers.get("location", "nowhere"), LONGEST_LINK)
        return ToolResult(text=f"[{status}: the page is elsewhere: {where}]", is_error=True)
    if not _TEXT.match(kind):
        said = f"{len(answer.body)} bytes of {one_line(kind, 100) or 'something'}, not shown"
        return ToolResult(text=f"[{status}: {said}]", is_error=True)
    text = (await asyncio.to_thread(_readable, answer.body, kind))[:LONGEST_TEXT]
    if not answer.is_whole:
        text += f"\n[cut: only the first {LARGEST_PAGE} bytes were read]"
    shown = fenced(text, source=host, entry_id=key)
    return ToolResult(
        text=f"[{status}]\n{shown}" if status >= 400 else shown, is_error=status >= 400
    )


def _readable(body: bytes, kind: str) -> str:
    found = _CHARSET.search(kind)
    try:
        text = body.decode(found[1] if found else "utf-8", "replace")
    except LookupError:
        text = body.decode("utf-8", "replace")
    return text_of(text) if "html" in kind else text


def text_of(page: str) -> str:
    """Return what a reader of an HTML page sees: its words, its headings, its links' addresses."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    """Gathers the words of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n")
        if tag == "a":
            self._links.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass  # left open inside
        elif tag in _BLOCKS:
            self.parts.append("\n")
        if tag == "a" and self._links:
            link = self._links.pop()
            if link.startswith(("http://", "https://")) and not self._hidden:
                self.parts.append(f" ({link[:500]})")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)
