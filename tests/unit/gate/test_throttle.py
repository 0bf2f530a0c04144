"""What one digest holds, and what it says."""

from datetime import UTC

from msgspec.structs import replace

from wakeful.gate.throttle import MOST_CHARACTERS, MOST_PARTS, digest_text, fitting
from wakeful.outbox.outbox import Delivery, DeliveryState
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import KeptAttachment

NOON = 43_200_000
DAY_MS = 86_400_000
FILE = KeptAttachment(name="plan.pdf", media_type="application/pdf", size=9_000_000, hash="h")
HELD = Delivery(
    id="dl_1",
    target="ann",
    route=Route(door="out", address="ann"),
    session_key="agent:main:main",
    turn_id="tn_1",
    text="hi",
    state=DeliveryState.HELD,
    attempts=0,
    due_at=NOON,
    filed_at=NOON,
    expires_at=NOON,
)


def test_one_message_is_its_own_digest():
    assert digest_text([HELD], NOON, UTC) == "hi"


def test_each_message_has_its_time_and_after_a_day_its_date():
    parts = [HELD, replace(HELD, text="", attachments=(FILE,), filed_at=NOON + DAY_MS)]

    text = digest_text(parts, NOON + DAY_MS, UTC)

    assert text.splitlines()[2::2] == ["[1970-01-01 12:00] hi", "[12:00] plan.pdf"]


def test_a_digest_holds_only_so_much_and_at_least_one():
    long = replace(HELD, text="x" * MOST_CHARACTERS)
    heavy = replace(HELD, attachments=(FILE,))

    assert len(fitting([HELD] * (MOST_PARTS + 1))) == MOST_PARTS
    assert fitting([long, HELD]) == [long]
    assert fitting([heavy, heavy]) == [heavy]
    assert fitting([replace(long, text=long.text * 2)]) != []
    assert fitting([HELD, HELD]) == [HELD, HELD]
