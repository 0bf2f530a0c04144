"""Words: what full text is made of, and what a search asks for."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from wakeful.store.full_text import Term
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

LONGEST_QUERY = 500  # characters
MOST_TERMS = 20
SHORTEST_PREFIX = 2
LONGEST_WORD = 64  # characters that count
SNIPPET_BEFORE = 60
SNIPPET = 200

_WORD = re.compile(r"[^\W_]+")
# Scripts that do not part their words: each sign is one.
_UNPARTED = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_FIRST_UNPARTED = "\u3040"
_TERM = re.compile(r'"([^"]*)"(\*?)|([^\s"]+)')


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
    """Return what a query asks for: words, "phrases" and prefixes*, all of which must be there."""
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(field, f"must be at most {LONGEST_QUERY} characters")
    if text.count('"') % 2:
        raise InvalidInput(field, "a quotation mark is not closed")
    terms = [term for match in _TERM.finditer(text) if (term := _term(match, field)) is not None]
    if not terms:
        raise InvalidInput(field, "holds no word to look for")
    if len(terms) > MOST_TERMS:
        raise InvalidInput(field, f"must ask for at most {MOST_TERMS} words or phrases")
    return terms


def snippet(text: str, terms: Sequence[Term]) -> list[Part]:
    """Return the surroundings of the first match, with every match in them marked."""
    plain = _plain(text)
    spans = sorted(_spans(plain, terms))
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
    phrase, star, word = match.groups()
    is_prefix = bool(star) or (word or "").endswith("*")
    said = phrase if word is None else word.rstrip("*")
    if "*" in said:
        raise InvalidInput(field, "a star may only end a word")
    words = tuple(words_of(said, LONGEST_QUERY))
    if is_prefix and (not words or len(words[-1]) < SHORTEST_PREFIX):
        raise InvalidInput(field, f"a star needs {SHORTEST_PREFIX} letters or more before it")
    return Term(words=words, is_prefix=is_prefix) if words else None


def _plain(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _words(plain: str) -> Iterator[tuple[str, int, int]]:
    """Yield words with where they begin and end."""
    for match in _WORD.finditer(plain):
        word, start = match[0], match.start()
        if word.isascii() or max(word) < _FIRST_UNPARTED:
            yield word.casefold()[:LONGEST_WORD], start, match.end()
            continue
        place = 0
        for sign in _UNPARTED.finditer(word):
            if place < sign.start():
                before = word[place : sign.start()].casefold()[:LONGEST_WORD]
                yield before, start + place, start + sign.start()
            yield sign[0], start + sign.start(), start + sign.end()
            place = sign.end()
        if place < len(word):
            yield word[place:].casefold()[:LONGEST_WORD], start + place, match.end()


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
