"""Spans of time are read as people say them; what is none is refused."""

import pytest

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.spans import format_span, is_span, leading_span, parse_span

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("90 sec", 90_000),
        ("30m", 30 * MINUTE),
        ("90 min", 90 * MINUTE),
        ("30 Minutes", 30 * MINUTE),
        ("2h", 2 * HOUR),
        (" 2 hours ", 2 * HOUR),
        ("1.5 hours", 90 * MINUTE),
        ("an hour", HOUR),
        ("a day", DAY),
        ("1 day", DAY),
        ("2 weeks", 14 * DAY),
        ("1h30m", 90 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("1 hour and 30 minutes", 90 * MINUTE),
        ("1 day, 2 hours", 26 * HOUR),
        ("0s", 0),
    ],
)
def test_a_span_is_read_as_people_say_it(text: str, ms: int):
    assert parse_span(text, "span") == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "h",
        "hours",
        "2 fortnights",
        "tomorrow",
        "-2h",
        "2h 3h",
        "30m 2h",
        "2h30",
        "2h and",
        "a",
        "an",
        "2 hours x",
        "7:00",
        "1e3s",
        "9999999999s",
        "2" * 70 + "h",
        "1s" * 50,
    ],
)
def test_what_is_no_span_is_refused_with_what_would_be_one(text: str):
    assert not is_span(text)
    with pytest.raises(InvalidInput, match="span: must be a number with a unit, such as 90s, 30m"):
        parse_span(text, "span")


@pytest.mark.parametrize(
    ("words", "ms", "rest"),
    [
        (["2h"], 2 * HOUR, []),
        (["2", "hours"], 2 * HOUR, []),
        (["2", "hours", "the", "build", "runs"], 2 * HOUR, ["the", "build", "runs"]),
        (["1h", "30", "min", "lunch"], 90 * MINUTE, ["lunch"]),
        (["2h", "5 min break"], 2 * HOUR, ["5 min break"]),
        (["2h", "3", "builds", "run"], 2 * HOUR, ["3", "builds", "run"]),
        (
            ["1h", "2", "days", "before", "the", "release"],
            HOUR,
            ["2", "days", "before", "the", "release"],
        ),
    ],
)
def test_words_begin_with_a_span_and_go_on_with_the_reason(
    words: list[str], ms: int, rest: list[str]
):
    assert leading_span(words, "span") == (ms, rest)


def test_words_that_begin_with_no_span_are_named():
    with pytest.raises(InvalidInput, match="not '2 fortnights'"):
        leading_span(["2", "fortnights", "please"], "span")


def test_a_span_is_told_in_two_units():
    assert [format_span(ms) for ms in (0, 90_000, 26 * HOUR + 5 * MINUTE)] == [
        "0s",
        "1m 30s",
        "1d 2h",
    ]
