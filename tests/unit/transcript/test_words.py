"""Words are parted in one way, and queries are read in one way."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.store.full_text import POSTGRES_FULL_TEXT, SQLITE_FULL_TEXT, Term
from wakeful.transcript.words import SNIPPET, parse_query, snippet, words_of
from wakeful.vocabulary.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World_2!", ["hello", "world", "2"]),
        ("Straße", ["strasse"]),
        ("ﬁne", ["fine"]),
        ("abc東京def", ["abc", "東", "京", "def"]),
        ("x" * 100, ["x" * 64]),
        ("\0 \u2028 --", []),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("ฉันกิน ข้าว", ["ฉั", "น", "กิ", "น", "ข้", "า", "ว"]),
        ("ພາສາລາວ", ["ພ", "າ", "ສ", "າ", "ລ", "າ", "ວ"]),
        ("ខ្មែរ", ["ខ្", "មែ", "រ"]),
        ("می\u200cشود", ["میشود"]),
        ("well 👍🏽👍", ["well", "👍", "👍"]),
        ("I ❤\ufe0f 👨\u200d👩", ["i", "❤", "👨", "👩"]),
        ("│ ─── │ 20°C", ["20", "c"]),
    ],
)
def test_text_is_parted_into_words(text: str, words: list[str]):
    assert words_of(text, 100) == words


def test_only_so_many_words_count():
    assert words_of("a b c d", 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Two words", [(("two",), False), (("words",), False)]),
        ('"a phrase" more', [(("a", "phrase"), False), (("more",), False)]),
        ("pre*", [(("pre",), True)]),
        ('"a pre"*', [(("a", "pre"), True)]),
        ("e-mail", [(("e", "mail"), False)]),
        ('"" word', [(("word",), False)]),
        ("word ... !", [(("word",), False)]),
    ],
)
def test_a_query_is_read(query: str, terms: list[tuple[tuple[str, ...], bool]]):
    assert parse_query(query) == [Term(words=words, is_prefix=star) for words, star in terms]


@pytest.mark.parametrize(
    ("query", "wanted", "unwanted"),
    [
        ("harbour -river", [("harbour",)], [("river",)]),
        ('-"no harbour" river', [("river",)], [("no", "harbour")]),
        ("harbour -riv*", [("harbour",)], [("riv",)]),
        ("--verbose e-mail", [("verbose",), ("e", "mail")], []),
    ],
)
def test_a_dash_before_a_word_leaves_out_what_has_it(
    query: str, wanted: list[tuple[str, ...]], unwanted: list[tuple[str, ...]]
):
    terms = parse_query(query)

    assert [term.words for term in terms if not term.is_excluded] == wanted
    assert [term.words for term in terms if term.is_excluded] == unwanted


@pytest.mark.parametrize("query", ["-river", '-"a b" -c'])
def test_what_is_left_out_alone_is_nothing_to_look_for(query: str):
    with pytest.raises(InvalidInput, match="holds no word"):
        parse_query(query)


@pytest.mark.parametrize("query", ["北*", "ฉัน*", "👍*"])
def test_a_star_after_a_single_sign_is_read(query: str):
    assert [term.is_prefix for term in parse_query(query)] == [True]


@given(st.text(alphabet=st.sampled_from("ab\"'*():&|!<>-\\ \0東é"), max_size=30))
def test_no_query_reaches_a_database_unread(query: str):
    try:
        terms = parse_query(query)
    except InvalidInput as refused:
        assert refused.field == "q"
        return

    for full_text in (SQLITE_FULL_TEXT, POSTGRES_FULL_TEXT):
        assert not set(full_text.query(terms)) - set("abé東\"' *:&<->()!ANDORT")
    assert all(word.isalnum() for term in terms for word in term.words)


def test_a_snippet_surrounds_the_first_match_and_marks_all_of_them():
    text = "before " * 30 + "the Harbour of Kraków, a harbour " + "after " * 60
    parts = snippet(text, parse_query("harbour"))

    assert [part.text for part in parts if part.is_match] == ["Harbour", "harbour"]
    assert parts[0].text == parts[-1].text == "…"
    assert sum(len(part.text) for part in parts) == SNIPPET + 2


def test_a_snippet_costs_no_more_the_longer_its_text_goes_on():
    terms = parse_query("harbour " + " ".join(f"word{number}*" for number in range(19)))

    def taken(text: str) -> float:
        begun = time.process_time()
        for _ in range(20):
            snippet(text, terms)
        return time.process_time() - begun

    short, long = (taken("a harbour " * count) for count in (100, 20_000))

    assert long < 20 * short  # where all of it was looked at, two hundred times


@given(st.text(max_size=60), st.sampled_from(["a", "aa*", '"a b"', "ß", "東"]))
def test_a_snippet_is_a_piece_of_its_text(text: str, query: str):
    parts = snippet(text, parse_query(query))

    assert all(part.text for part in parts)
    assert sum(len(part.text) for part in parts) <= SNIPPET + 2
