"""Full text, in the words of each database; the words themselves are made by the caller.

Both databases index words, not text: what counts as one is decided in one place, so that both
find the same. Their own tables are `search_words (rowid, words)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wakeful.vocabulary.record import Record

MOST_POSITIONS = 250  # of one word in one text; PostgreSQL keeps no more than 256

_FILLER = "\N{SYMBOL FOR NULL}"  # keeps a place; it is in no word


class Term(Record):
    """Words that must follow each other; `is_prefix`: the last may go on."""

    words: tuple[str, ...]
    is_prefix: bool = False
    is_excluded: bool = False  # must not be there


@dataclass(frozen=True, kw_only=True)
class FullText:
    """How one database keeps words and finds them."""

    insert: str  # takes :id and :words
    matches: str  # a condition on `search_words`; takes :query
    rank: str  # how well a match fits, the best with the smallest number; takes :query
    words: Callable[[Sequence[str]], str]  # of one text, as `insert` takes them
    query: Callable[[Sequence[Term]], str]  # all of the terms, as `matches` takes them


def _sqlite_words(words: Sequence[str]) -> str:
    seen: dict[str, int] = {}
    kept: list[str] = []
    for word in words:
        seen[word] = seen.get(word, 0) + 1
        kept.append(word if seen[word] <= MOST_POSITIONS else _FILLER)
    return " ".join(kept)


def _sqlite_query(terms: Sequence[Term]) -> str:
    wanted = " AND ".join(_sqlite_term(term) for term in terms if not term.is_excluded)
    unwanted = " OR ".join(_sqlite_term(term) for term in terms if term.is_excluded)
    return f"({wanted}) NOT ({unwanted})" if unwanted else wanted


def _sqlite_term(term: Term) -> str:
    return f'"{" ".join(term.words)}"{" *" if term.is_prefix else ""}'


def _postgres_words(words: Sequence[str]) -> str:
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words, 1):
        found = places.setdefault(word, [])
        if len(found) < MOST_POSITIONS:
            found.append(place)
    return " ".join(f"'{word}':{','.join(map(str, found))}" for word, found in places.items())


def _postgres_query(terms: Sequence[Term]) -> str:
    return " & ".join(
        f"{'!' if term.is_excluded else ''}({_postgres_term(term)})" for term in terms
    )


def _postgres_term(term: Term) -> str:
    words = " <-> ".join(f"'{word}'" for word in term.words)
    return words + (":*" if term.is_prefix else "")


SQLITE_FULL_TEXT = FullText(
    insert="INSERT INTO search_words (rowid, words) VALUES (:id, :words)",
    matches="search_words MATCH :query",
    rank="bm25(search_words)",
    words=_sqlite_words,
    query=_sqlite_query,
)
POSTGRES_FULL_TEXT = FullText(
    insert="INSERT INTO search_words (rowid, words) "
    "VALUES (:id, CAST(CAST(:words AS TEXT) AS tsvector))",
    matches="search_words.words @@ CAST(CAST(:query AS TEXT) AS tsquery)",
    # 1: the longer a text, the less each of its words counts.
    rank="-ts_rank(search_words.words, CAST(CAST(:query AS TEXT) AS tsquery), 1)",
    words=_postgres_words,
    query=_postgres_query,
)
