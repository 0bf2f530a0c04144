"""What people hear of a heartbeat's answer: nothing, unless there is something new."""

from wakeful.prompts.heartbeat_token import strip_heartbeat_token
from wakeful.transcript.sessions import Session
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.record import Record

REPEATED_MS = 86_400_000
ACKNOWLEDGED = "acknowledged"
DUPLICATE = "duplicate"


class Heard(Record):
    """What is delivered of an answer; empty: nothing, and why."""

    text: str
    reason: str | None = None


def heard(session: Session, rules: HeartbeatRules, said: str, now: int) -> Heard:
    """Return what of an answer is delivered."""
    stripped = strip_heartbeat_token(said, "heartbeat", rules.ack_max_chars)
    if stripped.should_skip or rules.target == "none":
        return Heard(text="", reason=ACKNOWLEDGED)
    text, sent_at = stripped.text.strip(), session.last_heartbeat_sent_at
    is_recent = sent_at is not None and abs(now - sent_at) < REPEATED_MS
    if is_recent and text == session.last_heartbeat_text:
        return Heard(text="", reason=DUPLICATE)
    return Heard(text=text)
