"""What a line of `tail` says."""

import re
from datetime import UTC
from pathlib import Path

from wakeful.cli.client import SseFrame
from wakeful.cli.tail import KINDS, brief, flat, unknown_topics
from wakeful.cli.times import shown


def test_a_wait_is_told_as_a_time_and_its_reason_whole():
    reason = "anthropic:claude-opus-5 is overloaded or not available (529). It said: Overloaded"
    data = {"at": 1, "session_key": "s", "resume_at": 1_794_777_394_450, "error": reason}

    line = brief(data, lambda value: shown(value, UTC))

    assert line == f"resume_at=2026-11-15 21:16:34 UTC error={reason}"


def test_a_topic_that_no_event_has_is_told():
    page = (Path(__file__).parents[3] / "docs/reference/events.md").read_text()
    documented = re.findall(r"^\| `([a-z_]+)", page, re.M)

    assert set(documented) == set(KINDS)
    assert unknown_topics("turn.*, stimulus.accepted,*,bogus") == ["bogus"]


def test_the_id_of_an_event_is_its_position_whatever_it_tells_of():
    frame = SseFrame(id="ep_1-7", kind="sleep.entered", data={"id": "sl_1", "at": 5})

    assert flat(frame) == {"id": "ep_1-7", "event": "sleep.entered", "sleep_id": "sl_1", "at": 5}


def test_a_time_of_the_calendar_is_shown_in_the_zone_of_whoever_reads_it():
    data = {"at": "x", "created_at": "2026-01-01T07:00:00Z", "look_at": None, "priority": "now"}

    line = brief(data, lambda value: shown(value, UTC))

    assert line == "created_at=2026-01-01 07:00:00 UTC priority=now"
