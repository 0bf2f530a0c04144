"""What a provider's library raises becomes one of our errors, with a sentence for a human."""

import pytest
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRequestRejectedError,
    UserError,
)

from wakeful.models.sorting import sorted_error
from wakeful.models.statuses import LONGEST_QUOTE
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent, Transient, WakefulError


def http(status: int, body: object = None) -> Exception:
    return ModelHTTPError(status, "m", body)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (http(408), Transient),
        (http(429), Transient),
        (http(500), Transient),
        (http(503), Transient),
        (http(529), Transient),
        (http(413), ContextOverflow),
        (http(418), Permanent),
        (ModelConnectionError("m", "reset"), Transient),
        (ModelRequestRejectedError("m", "no"), Permanent),
        (UserError("set a key"), Permanent),
        (ImportError("install it"), Permanent),
        (ModelAPIError("m", "decode"), Garbled),
        (ValueError("what is this"), Garbled),
        (AssertionError(), Garbled),
    ],
)
def test_every_error_has_its_place(error: Exception, kind: type[WakefulError]):
    assert type(sorted_error(error, "p:m")) is kind


def test_what_the_provider_said_is_quoted_on_one_line():
    error = http(400, {"error": {"message": "tools.0:\nbad\x1b[31m name"}})

    assert str(sorted_error(error, "p:m")) == "p:m failed (400). It said: tools.0: bad [31m name"


@pytest.mark.parametrize("body", ["<html><h1>502</h1>", {"x": 1}, None, b"\xff", ["a"]])
def test_what_no_human_can_read_is_not_quoted(body: object):
    assert "It said" not in str(sorted_error(http(502, body), "p:m"))


def test_a_long_story_is_cut():
    error = sorted_error(http(400, {"message": "x" * 10_000}), "p:m")

    assert len(str(error)) < LONGEST_QUOTE + 100


def test_how_long_to_wait_is_kept():
    error = ModelConnectionError("m", "later", retry_after=7.5)

    found = sorted_error(error, "p:m")

    assert isinstance(found, Transient)
    assert found.retry_after_s == 7.5
