"""A reader gets the form of a file that it takes, and is told when it has it already."""

import pytest

from wakeful.doors.http.pages import best_encoding, is_known

BOTH = ("gzip", "br")


@pytest.mark.parametrize(
    ("accepted", "there", "best"),
    [
        ("gzip, deflate, br, zstd", BOTH, "br"),
        ("br;q=0.1, gzip;q=1.0", BOTH, "br"),
        ("GZIP", BOTH, "gzip"),
        ("gzip, br;q=0", BOTH, "gzip"),
        ("br; q=0.000, gzip ;q=0", BOTH, None),
        ("br", ("gzip",), None),
        ("identity", BOTH, None),
        ("*", BOTH, None),
        ("", BOTH, None),
        ("brotli,xgzip,;q=1,;;,", BOTH, None),
        ("gzip, br", (), None),
    ],
)
def test_the_best_form_that_is_there_and_taken_is_chosen(
    accepted: str, there: tuple[str, ...], best: str | None
):
    assert best_encoding(accepted, there) == best


@pytest.mark.parametrize(
    ("known", "is_there"),
    [('"a"', True), ('W/"a"', True), ('"b", W/"a" ,"c"', True), ('"b"', False), ("a", False)],
)
def test_a_tag_that_a_reader_names_is_known(known: str, is_there: bool):
    assert is_known(known, '"a"') is is_there
