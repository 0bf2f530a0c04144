"""What a value breaks is told in words: the field, the rule, and what would do."""

from typing import Literal

import msgspec
import pytest

from wakeful.doors.http.endpoint import Given, invalid
from wakeful.doors.http.search import Instant
from wakeful.views.usage import UsageBy


class Asked(Given):
    """A body."""

    action: Literal["on", "off"] | None = None
    by: UsageBy = UsageBy.DAY
    until: Instant | None = None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"action": "maybe"}, "action: must be one of on, off, not 'maybe'"),
        ({"by": "foo"}, "by: must be one of source, agent, session, day, not 'foo'"),
        ({"until": "7:00"}, "until: must be an instant with its zone, such as 2026-01-01T"),
        ({"until": "2026-01-01T07:00:00"}, "until: must be an instant with its zone, such as"),
    ],
)
def test_a_refused_value_is_told_with_what_would_do(given: dict[str, str], told: str):
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(given, Asked)

    assert str(invalid(error.value, "body", Asked)).startswith(told)


def test_without_its_type_a_refused_value_is_still_named():
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert({"action": "maybe"}, Asked)

    assert str(invalid(error.value, "body")).startswith("action: ")
