"""The words of an HTML page, in time that grows with its length, whatever its author wrote.

The standard library's parser looks again and again at the same characters of a page that was made
to be hard: a hundred kilobytes keep it busy for minutes.
"""

import html
import re

LONGEST_TAG = 4096  # characters in which quotes and links are looked for
LONGEST_LINK = 500

_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "head"})
_RAW = frozenset({"script", "style"})  # up to their end tag, nothing inside is a tag
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr "
        "li main nav ol p pre section table td th tr ul",
    )
)
_NAME = re.compile(r"</?([A-Za-z][^\s/>]{0,40})")
# A '>' inside quotes does not end a tag. Possessive, so that nothing is read twice.
_REST = re.compile(r"(?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>")
_LINK = re.compile(r"\shref\s*=\s*[\"']?(https?://[^\s\"'>]+)", re.IGNORECASE)
_RAW_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in _RAW}


def text_of(page: str) -> str:
    """Return what a reader of an HTML page sees: its words, its headings, its links' addresses."""
    reader = _Reader(page)
    reader.read()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader:
    """Gathers the words of a page, going forward only."""

    def __init__(self, page: str) -> None:
        self.parts: list[str] = []
        self._page = page
        self._hidden_by = ""  # the outermost tag that hides what is in it
        self._depth = 0  # of tags of that name
        self._links: list[str] = []

    def read(self) -> None:
        at = 0
        while (begin := self._page.find("<", at)) >= 0:
            self._say(self._page[at:begin])
            at = self._after(begin)
        self._say(self._page[at:])

    def _after(self, begin: int) -> int:
        """Take what begins with a '<', and return where the page goes on."""
        page = self._page
        name = _NAME.match(page, begin)
        if name is not None:
            return self._take_tag(name[1].lower(), begin, name.end())
        if page.startswith("<!--", begin):
            return _or_end(page, page.find("-->", begin + 4), 3)
        if page.startswith(("<!", "<?", "</"), begin):
            return _or_end(page, page.find(">", begin), 1)
        self._say("<")
        return begin + 1

    def _take_tag(self, name: str, begin: int, at: int) -> int:
        page = self._page
        rest = _REST.match(page, at, at + LONGEST_TAG)
        end = _or_end(page, page.find(">", at), 1) if rest is None else rest.end()
        if page.startswith("</", begin):
            self._end(name)
            return end
        self._start(name, at, end)
        if page.startswith("/>", end - 2):
            self._end(name)
        elif name in _RAW:
            closing = _RAW_ENDS[name].search(page, end)
            return len(page) if closing is None else closing.start()
        return end

    def _start(self, name: str, at: int, end: int) -> None:
        if name == self._hidden_by:
            self._depth += 1
        elif name in _HIDDEN and not self._hidden_by:
            self._hidden_by, self._depth = name, 1
        elif name in _BLOCKS:
            self.parts.append("\n- " if name == "li" else "\n")
        if name == "a":
            link = _LINK.search(self._page, at, min(end, at + LONGEST_TAG))
            self._links.append("" if link is None else link[1][:LONGEST_LINK])

    def _end(self, name: str) -> None:
        if name == self._hidden_by:
            self._depth -= 1
            self._hidden_by = name if self._depth else ""
        elif name in _BLOCKS:
            self.parts.append("\n")
        if name == "a" and self._links and (link := self._links.pop()):
            self._say(f" ({link})")

    def _say(self, text: str) -> None:
        if not self._hidden_by:
            self.parts.append(_unescaped(text))


def _or_end(page: str, found: int, length: int) -> int:
    return len(page) if found < 0 else found + length


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a character with a number of thousands of digits
        return text
