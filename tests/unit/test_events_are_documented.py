"""Every kind of event that the code publishes is in the reference, and the other way round."""

import re
from datetime import UTC, datetime

from tests.sources import ROOT, SOURCE, texts
from wakeful.doors.http.events import encode
from wakeful.vocabulary.automation import RunState
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Kind

PAGE = (ROOT / "docs/reference/events.md").read_text()
KINDS = re.compile(
    r'"((?:stimulus|turn|delivery|sleep|storm|loop|halt|timer|session|notice|heartbeat|budget|'
    r"activity|inbox|approval|automation)"
    r'\.[a-z_]+)"'
)
# Published with the state in their name.
STATES = {
    "stimulus": [
        "done",
        "merged",
        "failed",
        "cancelled",
        "suppressed",
        "expired",
        "parked",
        "held",
    ],
    "delivery": ["acknowledged", "failed", "expired", "held"],
    "approval": ["granted", "denied", "expired", "cancelled"],
    "automation": [
        *("created", "changed", "removed", "disabled"),
        *(state.value for state in RunState),
    ],
}
NOTIFICATIONS = {
    "turn.interrupt",
    "delivery.filed",
    "timer.set",
    "sleep.interrupted",
    *Kind,
}  # inside the process, only counted, or kinds of stimuli


def documented() -> set[str]:
    found: set[str] = set()
    for cell in re.findall(r"^\| (`[^|]+`) \|", PAGE, re.M):
        names = re.findall(r"`([^`]+)`", cell)
        family = names[0].partition(".")[0]
        found |= {name if not name.startswith(".") else f"{family}{name}" for name in names}
    return found - {"gap", "reset"}


def published() -> set[str]:
    found = {f"{family}.{state}" for family, states in STATES.items() for state in states}
    for name, text in texts(SOURCE).items():
        if not name.startswith(("testing/", "settings/", "cli/")):
            found |= set(KINDS.findall(text))
    return found - NOTIFICATIONS


def test_the_reference_names_just_what_is_published():
    assert documented() == published()


def test_no_event_hides_what_every_frame_says():
    """When it happened and where; the data stand beside it in one object."""
    said = {"at", "session_key", "turn_id", "stimulus_id", "live"}
    fields = {
        name: set(re.findall(r"`([a-z_]+)`", data))
        for name, data in re.findall(r"^\| (`[^|]+`) \|[^|]*\|([^|]*)\|", PAGE, re.M)
    }

    assert {name: hidden for name, found in fields.items() if (hidden := found & said)} == {}


def test_each_time_in_an_event_leaves_as_one_of_the_calendar():
    at = datetime(2026, 1, 1, 7, tzinfo=UTC)
    times = set(re.findall(r"`(\w+_(?:at|until))`", PAGE))
    data = dict.fromkeys(times, round(at.timestamp() * 1000))

    frame = encode(Event(kind="x.y", data={**data, "number": 7, "unknown_at": None})).decode()

    assert {"created_at", "expires_at", "held_until", "look_at"} <= times
    assert frame.count('":"2026-01-01T07:00:00Z"') == len(times)
    assert '"number":7,"unknown_at":null' in frame
