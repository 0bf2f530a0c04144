"""Text that any database and any model can hold."""

import codecs
import hashlib
import re
from typing import Any, cast

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
DEEPEST_JSON = 64
LONGEST_INDEXED = 1024  # bytes; an index entry of PostgreSQL, of two names or so, holds 2.7 kB
LONGEST_ERROR = 1000  # characters kept of what an error says
LEFT_OUT = "characters left out …]"  # ends the note that stands where a text was cut

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Escaped backslashes, or escapes of surrogates, in JSON, side by side. It begins with the one sign
# that can be looked for quickly: nothing else runs meanwhile, and a body may have 16 MiB without.
_SURROGATES = re.compile(
    rb"\\(?:\\(?:\\\\)*+|u[dD][89a-fA-F][0-9a-fA-F]{2}(?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})*+)"
)
_LONE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
# What a terminal obeys, or shows in another order, and JSON may hold as it is.
_STEERING = re.compile("[\x7f-\x9f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# Codecs that nobody writes in: over a long text one takes for ever, others make half characters.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def clean(text: str) -> str:
    """Replace what UTF-8 or a database cannot hold: lone surrogates and NUL."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def with_whole_surrogates(raw: bytes) -> bytes:
    """Replace the escapes of lone surrogates in JSON, which some writers make and none may."""

    def mended(run: re.Match[bytes]) -> bytes:
        is_escaped = run[0].startswith(rb"\\")
        return run[0] if is_escaped else _LONE.sub(lambda one: one[1] or b"\\ufffd", run[0])

    return _SURROGATES.sub(mended, raw)


def charset_of(name: str) -> str:
    """Return the codec that a stranger says a text is in, or UTF-8 for one that is not to be used.

    What is decoded may hold replacement characters: its sender may be wrong.
    """
    try:
        known = codecs.lookup(name).name
        "".encode(known)  # refuses what is a codec, but not of text
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if known.replace("_", "-") in _NO_CHARSETS else known


def escaped_json(text: str) -> str:
    """Return a JSON text that means the same and steers no terminal."""
    return _STEERING.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def unsteering(text: str) -> str:
    """Return a text without what a terminal obeys or shows in another order."""
    return _STEERING.sub("", text)


def error_text(error: BaseException) -> str:
    """Return what an error says, as text that can be stored and is not too long."""
    return clean(str(error))[:LONGEST_ERROR]


def is_plain(text: str) -> bool:
    """Tell whether a name has neither control characters nor lone surrogates."""
    return _CONTROL.search(text) is None and _UNSTORABLE.search(text) is None


def indexable(name: str) -> str:
    """Return a name that fits into an index entry of any database: itself, or its hash."""
    if len(name) <= LONGEST_INDEXED // 4:  # bytes of one character, at most
        return name
    encoded = name.encode()
    return name if len(encoded) <= LONGEST_INDEXED else hashlib.sha256(encoded).hexdigest()


def clean_json(value: Any, depth: int = 0) -> Any:
    """Clean every string of a JSON value; what lies too deep becomes text."""
    match value:
        case str():
            return clean(value)
        case dict() | list() if depth >= DEEPEST_JSON:
            return f"{REPLACEMENT} nested deeper than {DEEPEST_JSON}"
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {clean(str(key)): clean_json(item, depth + 1) for key, item in pairs}
        case list():
            return [clean_json(item, depth + 1) for item in cast("list[Any]", value)]
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)  # JSON knows neither NaN nor infinity
        case int() if abs(value) >= 2**63:
            return str(value)
        case _:
            return value


def one_line(text: str, limit: int) -> str:
    """Fold white space and control characters and cut to `limit` characters."""
    folded = " ".join(_CONTROL.sub(" ", text[: limit * 4]).split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def shortened(text: str, limit: int) -> str:
    """Cut the middle out of a text that is longer than `limit` characters, and say so."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[len(text) - limit // 3 :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} {LEFT_OUT}\n{tail}"
