"""Sleep: how a session falls asleep, and what wakes it in the end.

A sleep is a row and a timer that carries its id. Whatever ends the row leaves the timer alone: a
timer that finds another sleep, or none, does nothing.
"""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import asdict, replace

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settled
from wakeful.bus.bus import Bus
from wakeful.intake import waking
from wakeful.intake.filing import File
from wakeful.prompts.ticks import wake_block
from wakeful.sleeps import marks, sleeps
from wakeful.sleeps.marks import SleepEdge
from wakeful.sleeps.sleeps import Sleep, SleepPolicy, WokenBy
from wakeful.store.database import Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import Timer
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.kinds import Asleep, Kind
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Priority, Receipt

TIMER_KIND = "sleep"
TIMED = "sleep"  # the source of a wake whose time has come
LOOK_AGAIN_MS = 300_000  # after a wake that may not be, and that nobody can say when it may be

# What outsiders are told of a sleep that begins.
_SHOWN = frozenset(Sleep.__struct_fields__) - {
    "trust",
    "cause_id",
    "wake_id",
    "woken_by",
    "refused",
}
_payloads = msgspec.json.Decoder(dict[str, str])


class Sleeping:
    """Puts sessions to sleep and wakes them; the caller holds the lane's lock."""

    def __init__(
        self, bus: Bus, file: File, on_entered: Callable[[Tx, Sequence[Sleep]], None]
    ) -> None:
        self._bus = bus
        self._file = file
        self._on_entered = on_entered

    def on_ended(self, tx: Tx, turn: Turn, how: End) -> None:
        """Fall asleep with the commit that ends a turn well."""
        if turn.sleep is None or how.state is not TurnState.DONE:
            return
        wish = turn.sleep
        sleep = Sleep(
            owner=turn.session_key,
            id=wish.id,
            agent_id=turn.agent_id,
            session_key=turn.session_key,
            policy=SleepPolicy.WAKE,
            reason=wish.reason,
            trust=turn.trust,
            cause_id=turn.id,
            requested_ms=wish.requested_ms,
            final_ms=wish.final_ms,
            created_at=wish.made_at,
            wake_at=wish.wake_at,
        )
        self.enter(tx, sleep, by="tool", is_snapped=wish.is_snapped)

    def enter(self, tx: Tx, sleep: Sleep, *, by: str, is_snapped: bool) -> None:
        """Begin a sleep, in the place of the one that its owner may be in.

        Where somebody waits already who would have ended it, it ends in this commit.
        """
        key = sleep.session_key
        assert key is not None
        before = sleeps.get(tx, sleep.owner)
        if before is not None:
            waking.tell_woken(tx, self._bus, before, key, WokenBy.REPLACED)
            # What was parked for the old sleep waits for the end of the new one.
            sleep = replace(sleep, buffered=before.buffered, dropped=before.dropped)
        self._keep(tx, [sleep])
        marks.add(tx, sleep, SleepEdge.ENTERED, by)
        shown = {name: value for name, value in asdict(sleep).items() if name in _SHOWN}
        shown |= {"by": by, "is_snapped": is_snapped}
        event = Event(kind="sleep.entered", session_key=key, data=shown)
        self._bus.publish(tx, event)
        self._on_entered(tx, [sleep])
        if stimuli.has_waker(tx, key):
            waking.end(tx, self._bus, sleep, key, WokenBy.INTERRUPTED)

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """File the wakes whose time has come; a timer of another sleep than theirs does nothing.

        Nor does one whose wake is filed already: the end of what refused it may be due, too.
        """
        asleep = sleeps.get_all(tx, [due.timer.target for due in dues])
        rested = [
            sleep
            for due in dues
            if (sleep := asleep.get(due.timer.target)) is not None
            and sleep.id == _payloads.decode(due.timer.payload)["sleep_id"]
            and sleep.wake_id is None
        ]
        self.wake(tx, rested, WokenBy.TIMER)

    def wake(self, tx: Tx, asleep: Sequence[Sleep], by: WokenBy) -> list[Receipt]:
        """File the wakes that end sleeps.

        A sleep ends when its wake opens a turn: a wake that may not be, now or by then, leaves
        it as it was, to be looked at again.
        """
        receipts = self._file(tx, [_wake_of(tx, sleep, by) for sleep in asleep])
        refused: list[Sleep] = []
        filed: dict[str, str] = {}
        for sleep, receipt in zip(asleep, receipts, strict=True):
            if receipt.outcome is Outcome.SUPPRESSED:
                refused.append(_postponed(tx, sleep, receipt.reason, receipt.look_at))
            else:
                filed[sleep.owner] = receipt.stimulus_id
        self._put_off(tx, refused)
        sleeps.note_wakes(tx, filed, by)
        return receipts

    def on_settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """Look again later after a wake that was refused in its lane, or taken back."""
        ended = [one for one in settled if one.kind and one.kind.rule.asleep is Asleep.ENDS]
        asleep = sleeps.get_all(tx, [one.session_key for one in ended]) if ended else {}
        self._put_off(
            tx,
            [
                _postponed(tx, sleep, one.reason, one.look_at)
                for one in ended
                if (sleep := asleep.get(one.session_key)) is not None and sleep.wake_id == one.id
            ],
        )

    def look_again(self, tx: Tx, agent_id: str, reason: str, limit: int) -> int:
        """Wake now, so many of an agent's, who still sleep for a reason that may be gone.

        Return how many there were. Who may still not wake is refused again, and waits again.
        """
        refused = sleeps.get_refused(tx, agent_id, reason, limit)
        lane_rows.require(tx, [sleep.owner for sleep in refused])
        self._keep(
            tx, [replace(one, wake_at=min(one.wake_at, tx.now), refused=None) for one in refused]
        )
        return len(refused)

    def _put_off(self, tx: Tx, asleep: Sequence[Sleep]) -> None:
        """Let sleeps go on that were to end: nobody ticks meanwhile."""
        if asleep:
            self._keep(tx, asleep)
            self._on_entered(tx, asleep)

    def _keep(self, tx: Tx, asleep: Sequence[Sleep]) -> None:
        sleeps.enter(tx, *asleep)
        timers.put(tx, *map(_timer_of, asleep))


def _postponed(tx: Tx, sleep: Sleep, reason: str | None, look_at: int | None) -> Sleep:
    """Return a sleep that goes on until its end, or until its wake may be looked at again."""
    if sleep.wake_at > tx.now:  # the wake was asked for before its time
        return replace(sleep, wake_id=None, woken_by=None)
    due_at = max(look_at or tx.now + LOOK_AGAIN_MS, tx.now + 1)
    return replace(sleep, wake_at=due_at, wake_id=None, woken_by=None, refused=reason)


def _timer_of(sleep: Sleep) -> Timer:
    assert sleep.session_key is not None
    return Timer(
        id=f"{TIMER_KIND} {sleep.owner}",
        due_at=sleep.wake_at,
        kind=TIMER_KIND,
        target=sleep.session_key,
        payload=msgspec.json.encode({"sleep_id": sleep.id}).decode(),
    )


def _wake_of(tx: Tx, sleep: Sleep, by: WokenBy) -> Draft:
    assert sleep.session_key is not None
    text = wake_block(
        "sleep_wake",
        max(0, tx.now - sleep.created_at),
        sleep.reason,
        buffered=sleep.buffered,
        dropped=sleep.dropped,
    )
    return Draft(
        session_key=sleep.session_key,
        text=text,
        kind=Kind.WAKE,
        priority=Priority.LATER,
        trust=sleep.trust,
        owner=OPERATOR,
        source=TIMED if by is WokenBy.TIMER else f"{Kind.WAKE.value}:{by.value}",
        cause_id=sleep.cause_id,
        ignores_quiet_hours=by is WokenBy.OPERATOR,
    )
