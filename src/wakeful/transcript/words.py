"""Words: what full text is made of, and what a search asks for."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from wakeful.store.full_text import Term
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

LONGEST_QUERY = 500  # characters
MOST_TERMS = 20
SHORTEST_PREFIX = 2
LONGEST_WORD = 64  # characters that count
SNIPPET_BEFORE = 60
SNIPPET = 200

# A run of letters and digits, or one character that only its category tells the use of.
_PIECE = re.compile(r"[^\W_]+|[^\x00-\x7f]")
# Scripts that do not part their words: each sign is one, with the vowels and tones upon it.
_UNPARTED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf]"
    "[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u17b4-\u17d3\u17dd]*"
)
_FIRST_UNPARTED = "\u0e00"
_JOINERS = dict.fromkeys(map(ord, "\u200c\u200d\u00ad\ufe0e\ufe0f"))  # seen by nobody
_PICTURES = ((0x2300, 0x23FF), (0x2600, 0x27BF), (0x2B00, 0x2BFF), (0x1F000, 0x1FFFF))
_TERM = re.compile(r'(-?)"([^"]*)"(\*?)|([^\s"]+)')


class Part(Record):
    """A piece of a snippet."""

    text: str
    is_match: bool


def words_of(text: str, limit: int) -> list[str]:
    """Return the words of a text, as they are compared."""
    found: list[str] = []
    for word, _, _ in _words(_plain(text)):
        found.append(word)
        if len(found) == limit:
            break
    return found


def parse_query(text: str, field: str = "q") -> list[Term]:
    """Return what a query asks for: words, "phrases" and prefixes*, all of which must be there,
    and -words, none of which may be.
    """
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(field, f"must be at most {LONGEST_QUERY} characters")
    if text.count('"') % 2:
        raise InvalidInput(field, "a quotation mark is not closed")
    terms = [term for match in _TERM.finditer(text) if (term := _term(match, field)) is not None]
    if all(term.is_excluded for term in terms):
        raise InvalidInput(field, "holds no word to look for")
    if len(terms) > MOST_TERMS:
        raise InvalidInput(field, f"must ask for at most {MOST_TERMS} words or phrases")
    return terms


def snippet(text: str, terms: Sequence[Term]) -> list[Part]:
    """Return the surroundings of the first match, with every match in them marked."""
    plain = _plain(text)
    spans = sorted(_spans(plain, [term for term in terms if not term.is_excluded]))
    start = max(0, spans[0][0] - SNIPPET_BEFORE) if spans else 0
    end = min(len(plain), start + SNIPPET)
    parts = [Part(text="…", is_match=False)] if start else []
    place = start
    for first, last in spans:
        if place <= first and last <= end:
            parts += [_part(plain, place, first, False), _part(plain, first, last, True)]
            place = last
    parts.append(_part(plain, place, end, False))
    parts += [Part(text="…", is_match=False)] if end < len(plain) else []
    return [part for part in parts if part.text]


def _term(match: re.Match[str], field: str) -> Term | None:
    minus, phrase, star, word = match.groups()
    # Of `e-mail` and `--verbose` the dash is no wish; of `-mail` it is.
    is_excluded = bool(minus) or (
        word is not None and word[0] == "-" and word[1:2] not in ("", "-")
    )
    is_prefix = bool(star) or (word or "").endswith("*")
    said = phrase if word is None else word.rstrip("*")
    if "*" in said:
        raise InvalidInput(field, "a star may only end a word")
    words = tuple(words_of(said, LONGEST_QUERY))
    if is_prefix and not _may_begin(words):
        raise InvalidInput(field, f"a star needs {SHORTEST_PREFIX} letters or more before it")
    return Term(words=words, is_prefix=is_prefix, is_excluded=is_excluded) if words else None


def _may_begin(words: Sequence[str]) -> bool:
    """Tell whether few enough words begin as the last of these; few begin with a sign."""
    last = words[-1] if words else ""
    is_sign = _UNPARTED.fullmatch(last) is not None or (len(last) == 1 and _is_picture(last))
    return is_sign or len(last) >= SHORTEST_PREFIX


def _plain(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _words(plain: str) -> Iterator[tuple[str, int, int]]:
    """Yield words with where they begin and end."""
    for start, end in _runs(plain):
        word = plain[start:end]
        if word.isascii() or max(word) < _FIRST_UNPARTED:
            yield _compared(word), start, end
            continue
        place = 0
        for sign in _UNPARTED.finditer(word):
            if place < sign.start():
                yield _compared(word[place : sign.start()]), start + place, start + sign.start()
            yield _compared(sign[0]), start + sign.start(), start + sign.end()
            place = sign.end()
        if place < len(word):
            yield _compared(word[place:]), start + place, end


def _runs(plain: str) -> Iterator[tuple[int, int]]:
    """Yield where runs of letters, with the marks upon them, begin and end; and each picture."""
    start = end = -1  # of the run so far
    for match in _PIECE.finditer(plain):
        first, last = match.span()
        is_letters = match[0].isalnum()
        if end == first and (is_letters or _is_mark(match[0])):
            end = last
            continue
        if end > start:
            yield start, end
        start, end = (first, last) if is_letters else (-1, -1)
        if not is_letters and _is_picture(match[0]):
            yield first, last
    if end > start:
        yield start, end


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    """Tell whether a character belongs to the letter before it."""
    return unicodedata.category(character)[0] == "M" or ord(character) in _JOINERS


@lru_cache(maxsize=4096)
def _is_picture(character: str) -> bool:
    code = ord(character)
    is_symbol = unicodedata.category(character) == "So"
    return is_symbol and any(first <= code <= last for first, last in _PICTURES)


def _compared(word: str) -> str:
    """Return a word as it is compared."""
    folded = word.casefold()
    return (folded if folded.isascii() else folded.translate(_JOINERS))[:LONGEST_WORD]


def _spans(plain: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return where terms begin and end, as far as the snippet of the first one may go."""
    whole: dict[str, list[Term]] = {}
    for term in terms:
        if not term.is_prefix:
            whole.setdefault(term.words[-1], []).append(term)
    prefixes = [term for term in terms if term.is_prefix]
    seen: list[tuple[str, int, int]] = []
    spans: list[tuple[int, int]] = []
    for word, start, end in _words(plain):
        if spans and start > spans[0][0] + SNIPPET:
            break
        seen.append((word, start, end))
        begun = [term for term in prefixes if word.startswith(term.words[-1])]
        for term in [*whole.get(word, ()), *begun]:
            here = seen[-len(term.words) :]
            if [one for one, _, _ in here[:-1]] == list(term.words[:-1]):
                spans.append((here[0][1], end))
    return spans


def _part(text: str, start: int, end: int, is_match: bool) -> Part:
    return Part(text=text[start:end], is_match=is_match)
