"""`tail`: an event on one line."""

from wakeful.cli.tail import brief


def test_times_of_an_event_are_shown_in_the_zone_of_whoever_reads_them():
    data = {"at": "x", "created_at": "2026-01-01T07:00:00Z", "look_at": None, "priority": "now"}

    assert brief(data, lambda value: f"<{value}>") == (
        "created_at=<2026-01-01T07:00:00Z> priority=now"
    )
