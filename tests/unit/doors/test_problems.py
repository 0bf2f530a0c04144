"""Every error has one answer, and none of them says what it should not."""

import logging

import msgspec
import pytest
from starlette.requests import ClientDisconnect

from wakeful.doors.http.problems import TITLES, Problem, problem_of
from wakeful.vocabulary.errors import (
    InvalidInput,
    Invariant,
    NotFound,
    Overloaded,
    Permanent,
    StoreBusy,
    StoreFailed,
    StoreFull,
    Transient,
)


@pytest.mark.parametrize(
    ("error", "code", "retry_after"),
    [
        (NotFound("x", "no x"), "not-found", None),
        (InvalidInput("x", "must be y"), "invalid-input", None),
        (StoreFull(), "full", "30"),
        (StoreFull(retry_after_s=5), "full", "5"),
        (StoreBusy(), "unavailable", "1"),
        (StoreBusy("no way to secret words", retry_after_s=2), "unavailable", "2"),
        (Overloaded(retry_after_s=7.4), "unavailable", "7"),
        (Transient(), "unavailable", "1"),
        (StoreFailed(), "unavailable", "30"),
        (ClientDisconnect(), "bad-request", None),
        (Permanent("secret words"), "internal", None),
        (Invariant("secret words"), "internal", None),
        (ValueError("secret words"), "internal", None),
        (Problem("forbidden"), "forbidden", None),
    ],
)
def test_an_error_becomes_its_problem(error: Exception, code: str, retry_after: str | None):
    response = problem_of(error).response()
    document = msgspec.json.decode(bytes(response.body))

    assert document["code"] == code
    assert document["status"] == response.status_code == TITLES[code][0]
    assert response.headers.get("retry-after") == retry_after
    assert b"secret words" not in bytes(response.body)


def test_a_bug_is_logged_by_its_place_and_not_by_its_words(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    words = " ".join(("secret", "words"))
    try:
        raise ValueError(words)
    except ValueError as error:
        problem_of(error)

    assert "ValueError" in caplog.text
    assert "test_problems.py" in caplog.text
    assert words not in caplog.text


def test_whoever_still_sends_is_cut_off():
    assert Problem("too-large").response().headers["connection"] == "close"
    assert Problem("timeout").response().headers["connection"] == "close"
    assert "connection" not in Problem("not-found").response().headers


def test_a_401_says_how_to_come_in():
    assert Problem("unauthorized").response().headers["www-authenticate"] == "Bearer"
