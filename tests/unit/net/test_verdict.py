"""A receiver's status says whether it has it, may have it later, or never will."""

import pytest

from wakeful.net.client import HttpResponse
from wakeful.net.verdict import refuse_failure, retry_after_s
from wakeful.vocabulary.errors import Permanent, Transient

NOW = 1_800_000_000_000  # Fri, 15 Jan 2027 08:00:00 GMT


def answer(status: int, **headers: str) -> HttpResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status=status, headers=named, body=b"", is_whole=True)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_a_2xx_is_an_acknowledgement(status: int):
    refuse_failure(answer(status), "crm", NOW)


@pytest.mark.parametrize("status", [301, 308, 400, 401, 403, 404, 405, 410, 413, 422, 451, 499])
def test_a_refusal_is_for_a_human(status: int):
    with pytest.raises(Permanent, match=rf"'crm' .*{status}"):
        refuse_failure(answer(status), "crm", NOW)


@pytest.mark.parametrize("status", [101, 300, 302, 303, 307, 408, 409, 425, 429, 500, 503, 599])
def test_anything_else_may_work_later(status: int):
    with pytest.raises(Transient, match=rf"'crm' .*{status}") as caught:
        refuse_failure(answer(status, retry_after="7"), "crm", NOW)

    assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("\u0667", None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Fri, 15 Jan 2027 08:01:00 -0000", 60.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Fri, 15 Jan 2099 08:00:00 GMT", 3600.0),
        ("99999999999999999999999999", 3600.0),
        ("Fri, 15 Jan 99999 08:00:00 GMT", None),
    ],
)
def test_a_wish_to_wait_is_read_with_reason(value: str | None, seconds: float | None):
    assert retry_after_s(value, NOW) == seconds
