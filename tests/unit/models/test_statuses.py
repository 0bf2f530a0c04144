"""What a provider says instead of an answer becomes one of our errors."""

import json

import pytest

from wakeful.models.statuses import (
    read_refusal,
    refusal_within,
    retry_after_s,
    sorted_refusal,
)
from wakeful.vocabulary.errors import ContextOverflow, Permanent, Transient, WakefulError

NOW = 1_700_000_000_000


def found(status: int, **error: object) -> WakefulError:
    body = json.dumps({"error": error}).encode()
    return sorted_refusal(read_refusal(status, body, None, NOW), "p:m")


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (400, Permanent, "refused the request (400)"),
        (401, Permanent, "refused our key"),
        (402, Permanent, "no quota or credit"),
        (403, Permanent, "refused our key"),
        (404, Permanent, "does not know the model"),
        (408, Transient, "did not answer in time"),
        (409, Transient, "(409)"),
        (413, ContextOverflow, "too large"),
        (422, Permanent, "refused the request"),
        (429, Transient, "asks us to slow down"),
        (500, Transient, "a fault of its own"),
        (503, Transient, "overloaded or not available"),
        (504, Transient, "did not answer in time"),
        (529, Transient, "overloaded or not available"),
    ],
)
def test_every_status_has_its_place(status: int, kind: type[WakefulError], told: str):
    error = found(status, message="because")

    assert type(error) is kind
    assert told in str(error)
    assert str(error).endswith("It said: because")


def test_an_account_without_credit_is_not_asked_again():
    assert type(found(429, code="insufficient_quota", message="pay")) is Permanent


@pytest.mark.parametrize(
    "error",
    [
        {"code": "context_length_exceeded", "message": "x"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"message": "This model's maximum context length is 8192 tokens."},
    ],
)
def test_a_conversation_that_is_too_long_is_told_as_that(error: dict[str, object]):
    assert type(found(400, **error)) is ContextOverflow


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "x"}, Transient),
        ({"type": "invalid_request_error", "message": "x"}, Permanent),
        ({"type": "authentication_error", "message": "x"}, Permanent),
        ({"code": 502, "message": "x"}, Transient),
        ({"code": "server_error", "message": "x"}, Transient),
        ({"code": "rate_limit_exceeded", "message": "x"}, Transient),
        ({"message": "x"}, Transient),
        ({"code": "1" * 5_000, "message": "x"}, Transient),  # a number that nobody can read
        ("x", Transient),
    ],
)
def test_an_error_in_the_middle_of_an_answer_has_its_place(error: object, kind: type[WakefulError]):
    sorted_ = sorted_refusal(refusal_within(error), "p:m")

    assert type(sorted_) is kind
    assert str(sorted_).endswith("It said: x")


def test_a_key_that_a_provider_quotes_is_hidden():
    refusal = read_refusal(401, b'{"error": {"message": "bad key abcdefgh12"}}', None, NOW)

    assert "abcdefgh12" not in str(sorted_refusal(refusal, "p:m", secrets=["abcdefgh12"]))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"message": "a"}', " It said: a"),
        (b'{"error": "a"}', " It said: a"),
        (b'{"detail": "a"}', " It said: a"),
        (b'[{"error": {"message": "a"}}]', " It said: a"),
        (b"plain words", " It said: plain words"),
        (b"<html>no</html>", ""),
        (b"\xff\xfe", " It said: \ufffd\ufffd"),
        (b"", ""),
        pytest.param(b"[" * 9_000 + b"]" * 9_000, f" It said: {'[' * 299}…", id="nested too deep"),
    ],
)
def test_the_sentence_is_found_however_it_is_wrapped(body: bytes, said: str):
    error = sorted_refusal(read_refusal(500, body, None, NOW), "p:m")

    assert str(error) == f"p:m has a fault of its own (500).{said}"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:12:20 GMT", None),
        ("-5", None),
        ("NaN", None),
        ("soon", None),
        (None, None),
    ],
)
def test_how_long_to_wait_is_read(value: str | None, seconds: float | None):
    assert retry_after_s(value, NOW) == seconds
