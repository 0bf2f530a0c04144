"""The throttle: an agent may speak only so often to somebody who did not ask.

Counted in the transaction that files a message, from the outbox itself. What is too much is held
there and leaves as one digest as soon as another message may leave, whoever is asked meanwhile.
"""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from msgspec.structs import replace

from wakeful.bus.bus import Bus
from wakeful.gate import budget_rows
from wakeful.gate.budgets import Budgets
from wakeful.outbox import held
from wakeful.outbox.outbox import HOUR_MS, Along, Delivery
from wakeful.store.database import Tx
from wakeful.turns.turns import Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary import wall
from wakeful.vocabulary.agent import ThrottleRules
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import kinds_where

MOST_PARTS = 100  # messages in one digest
MOST_CHARACTERS = 100_000
MOST_BYTES = 10 * 1024 * 1024  # of what goes along with one
SAME_DAY_MS = 20 * HOUR_MS  # longer ago than this, the time alone does not say which day

_PROMPTING = kinds_where(lambda rule: rule.prompts)
_PROMPTED = (
    "SELECT 1 FROM stimuli WHERE id = :root_id AND kind IN :kinds UNION ALL "
    "SELECT 1 FROM stimuli taken JOIN stimuli roots ON roots.id = taken.root_id "
    "WHERE taken.turn_id = :turn_id AND roots.kind IN :kinds LIMIT 1"
)


def paced(
    tx: Tx, rules: ThrottleRules, turn: Turn, target: str, along: Along, *, is_reply: bool = False
) -> Along:
    """Return what goes along with a message, and whether it must wait.

    What people or other agents asked for never waits, nor does the reply of a job that is bound to
    a conversation, or to `/heartbeat now`. While something waits, whatever comes later waits with
    it.
    """
    if is_reply and not turn.kind.rule.is_throttled:
        return along
    if _is_prompted(tx, turn) or (is_reply and _is_by_hand(tx, turn)):
        return along
    along = replace(along, unprompted_by=turn.agent_id)
    budget_rows.require(tx, turn.agent_id)  # two sessions of one agent may write to one address
    due_at = held.due_at(tx, turn.agent_id, target)
    free_at = _free_at(tx, rules, turn.agent_id, target)
    if due_at is None:
        return replace(along, held_until=free_at)
    if free_at is None and due_at > tx.now:  # the limit was raised since
        held.put_off(tx, turn.agent_id, target, tx.now)
        due_at = tx.now
    return replace(along, held_until=due_at)


class Digests:
    """Lets what was held back leave together, once it is due."""

    def __init__(self, bus: Bus, ids: Ids, budgets: Budgets) -> None:
        self._bus = bus
        self._ids = ids
        self._budgets = budgets

    def make(self, tx: Tx, target: str) -> int | None:
        """File the digests that are due; return when the next of this target is, if one is."""
        later: list[int] = []
        for one in held.of_target(tx, target):
            if one.due_at > tx.now:
                later.append(one.due_at)
                continue
            budget_rows.require(tx, one.agent_id)
            if (next_at := self._make(tx, one.agent_id, target)) is not None:
                later.append(next_at)
        return min(later, default=None)

    def _make(self, tx: Tx, agent_id: str, target: str) -> int | None:
        """File one digest; what is too much for it leaves with the next."""
        waiting, lost = held.waiting(tx, agent_id, target, MOST_PARTS + 1)
        for one in lost:
            self._publish(tx, "delivery.failed", one, error=one.error)
        if not waiting:
            return held.due_at(tx, agent_id, target)
        parts = fitting(waiting)
        homes = {part.session_key for part in parts}
        text = digest_text(parts, tx.now, self._budgets.days.zone)
        # Whoever may see one of several sessions must not read by it what was said in another.
        home = homes.pop() if len(homes) == 1 else keys.main(agent_id)
        digest = held.leave_together(tx, self._ids.new("dl"), parts, text, home)
        self._bus.publish(tx, "delivery.queued", home, delivery_id=digest.id, parts=digest.parts)
        for part in parts:
            self._publish(tx, "delivery.queued", part, sent_with=digest.id)
        if len(parts) == len(waiting):
            return None
        free_at = _free_at(tx, self._budgets.throttle(agent_id), agent_id, target) or tx.now
        held.put_off(tx, agent_id, target, free_at)
        return free_at

    def _publish(self, tx: Tx, kind: str, part: Delivery, **data: Any) -> None:
        self._bus.publish(
            tx, kind, part.session_key, turn_id=part.turn_id, delivery_id=part.id, **data
        )


def fitting(waiting: Sequence[Delivery]) -> Sequence[Delivery]:
    """Return the first messages that one digest has room for; always at least one."""
    characters = size = 0
    for count, one in enumerate(waiting):
        characters += len(one.text)
        size += sum(kept.size for kept in one.attachments)
        is_full = count >= MOST_PARTS or characters > MOST_CHARACTERS or size > MOST_BYTES
        if count and is_full:
            return waiting[:count]
    return waiting


def digest_text(parts: Sequence[Delivery], now: int, zone: tzinfo | None) -> str:
    """Return what a digest says: each message with the time at which it was meant to leave."""
    if len(parts) == 1:
        return parts[0].whole_text
    said = [f"[{_time(part.filed_at, now, zone)}] {_said(part)}" for part in parts]
    return "\n\n".join((f"{len(parts)} messages that waited, so as not to disturb you:", *said))


def _said(part: Delivery) -> str:
    return part.whole_text or ", ".join(one.name for one in part.attachments)


def _time(at: int, now: int, zone: tzinfo | None) -> str:
    form = "%H:%M" if now - at < SAME_DAY_MS else "%Y-%m-%d %H:%M"
    return wall.local(at, zone).strftime(form)


def _is_prompted(tx: Tx, turn: Turn) -> bool:
    """Tell whether somebody asked for what a turn says, at its beginning or since."""
    row = tx.one(_PROMPTED, root_id=turn.root_id, turn_id=turn.id, kinds=_PROMPTING)
    return row is not None


def _is_by_hand(tx: Tx, turn: Turn) -> bool:
    """Tell whether a person asked for a turn that is usually due by itself."""
    row = tx.one(
        "SELECT 1 FROM stimuli WHERE turn_id = :turn_id AND ignores_quiet_hours = 1 LIMIT 1",
        turn_id=turn.id,
    )
    return row is not None


def _free_at(tx: Tx, rules: ThrottleRules, agent_id: str, target: str) -> int | None:
    """Return when another message may leave; None: now."""
    if rules.per_hour is None:
        return None
    since = tx.now - HOUR_MS
    first = held.nth_last_left(tx, agent_id, target, rules.per_hour, since)
    # One from the future left before the clock was moved back.
    return None if first is None else min(first, tx.now) + HOUR_MS
