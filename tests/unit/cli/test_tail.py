"""What a line of `tail` says."""

from datetime import UTC

from wakeful.cli.tail import brief
from wakeful.cli.times import shown


def test_a_wait_is_told_as_a_time_and_its_reason_whole():
    reason = "anthropic:claude-opus-5 is overloaded or not available (529). It said: Overloaded"
    data = {"at": 1, "session_key": "s", "resume_at": 1_794_777_394_450, "error": reason}

    line = brief(data, lambda value: shown(value, UTC))

    assert line == f"resume_at=2026-11-15 21:16:34 UTC error={reason}"
