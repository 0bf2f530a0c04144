import time

import msgspec
import pytest

from tests.unit.tools.calls import call, failure, make_context
from wakeful.tools.current_time import current_time
from wakeful.vocabulary.clock import ManualClock

NOON = 1_783_598_400_999  # 2026-07-09 12:00:00 UTC, a Thursday


@pytest.mark.parametrize(
    ("timezone", "said"),
    [
        ("UTC", "2026-07-09T12:00:00+00:00 (Thursday, UTC)"),
        ("Europe/Berlin", "2026-07-09T14:00:00+02:00 (Thursday, Europe/Berlin)"),
        ("Asia/Kolkata", "2026-07-09T17:30:00+05:30 (Thursday, Asia/Kolkata)"),
        ("Pacific/Kiritimati", "2026-07-10T02:00:00+14:00 (Friday, Pacific/Kiritimati)"),
        (
            "America/Argentina/Ushuaia",
            "2026-07-09T09:00:00-03:00 (Thursday, America/Argentina/Ushuaia)",
        ),
    ],
)
async def test_the_time_comes_from_the_clock_in_any_zone(timezone: str, said: str) -> None:
    context = make_context(clock=ManualClock(NOON))

    assert (await call(current_time, context, timezone=timezone)).text == said


@pytest.mark.parametrize(
    ("city", "zone"),
    [("tokyo", "Asia/Tokyo"), ("New York", "America/New_York"), ("Berlin", "Europe/Berlin")],
)
async def test_a_city_will_do(city: str, zone: str) -> None:
    result = await call(current_time, make_context(), timezone=city)

    assert result.text.endswith(f", {zone})")


async def test_without_a_zone_it_is_the_users() -> None:
    context = msgspec.structs.replace(make_context(), timezone="Europe/Berlin")

    assert (await call(current_time, context)).text.endswith(", Europe/Berlin)")


async def test_a_user_without_a_zone_is_where_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = msgspec.structs.replace(make_context(clock=ManualClock(NOON)), timezone="")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "XST-5:30")  # needs no zone files
        time.tzset()
        said = (await call(current_time, context)).text
    time.tzset()

    assert said == "2026-07-09T17:30:00+05:30 (Thursday, XST)"


async def test_without_a_zone_it_is_utc() -> None:
    result = await call(current_time, make_context(clock=ManualClock(NOON)))

    assert result.text == "2026-07-09T12:00:00+00:00 (Thursday, UTC)"


@pytest.mark.parametrize(
    "timezone",
    [
        "",
        "Mars/Olympus",
        "Europe",
        "../../etc/passwd",
        "/etc/localtime",
        "UTC\0",
        "zone.tab",
        "Europe/../UTC",
        "\ud800",
        "A" * 65_536,
        "tzdata.zi",
        "Europe/Berlin ",
    ],
)
async def test_a_bad_zone_is_named(timezone: str) -> None:
    said = await failure(current_time, make_context(), timezone=timezone)

    assert said.startswith(f"timezone: no time zone is named {timezone[:80]!r}")
