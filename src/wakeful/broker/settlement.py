"""One settle: the only writer of a stimulus's end, whatever ended it."""

from collections.abc import Callable, Collection, Mapping, Sequence

from wakeful.broker import inbox_counts
from wakeful.broker.stimuli import MAY_BECOME
from wakeful.bus.bus import Bus
from wakeful.store.database import Row, Tx
from wakeful.vocabulary.errors import Invariant
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import State


class Settled(Record):
    """A stimulus that has come to its end."""

    id: str
    kind: Kind | None  # None: one that only another binary knows
    session_key: str
    turn_id: str | None
    state: State
    reason: str | None
    look_at: int | None = None  # when whatever refused it may be asked again


# Called in the transaction that ends stimuli: what else ends with them is written there.
OnSettled = Callable[[Tx, Sequence[Settled]], None]

_NO_TIMES: Mapping[str, int | None] = {}
_KINDS = {kind.value: kind for kind in Kind}

_ENDED = "id, kind, session_key, turn_id, state, state_reason, in_inbox, source"
_SETTLE = (
    "UPDATE stimuli SET state = :state, state_reason = :reason, settled_at = :now "  # noqa: S608
    "WHERE id IN :ids AND state IN :allowed "
    f"RETURNING {_ENDED}"
)
_SETTLE_TURN = (
    "UPDATE stimuli SET state = CASE WHEN id = :opened_by THEN :state ELSE :joined END, "  # noqa: S608
    "state_reason = :reason, settled_at = :now WHERE turn_id = :turn_id AND state = 'claimed' "
    f"RETURNING {_ENDED}"
)


class Settlement:
    """Ends stimuli, tells the bus, and lets others end what hangs on them."""

    def __init__(self, bus: Bus, hooks: Sequence[OnSettled] = ()) -> None:
        self._bus = bus
        self._hooks = tuple(hooks)

    def settle(
        self,
        tx: Tx,
        ids: Collection[str],
        state: State,
        reason: str | None = None,
        *,
        look_at: Mapping[str, int | None] = _NO_TIMES,
    ) -> None:
        """End stimuli; an end that their state does not allow is a bug.

        `look_at` says, per id, when whatever refused it may be asked again.
        """
        if not ids:
            return
        rows = tx.all(
            _SETTLE,
            ids=list(ids),
            state=state.value,
            reason=reason,
            allowed=MAY_BECOME[state],
            now=tx.now,
        )
        if len(rows) != len(ids):
            raise Invariant(
                f"{len(ids)} stimuli should become {state}, {len(rows)} could: {sorted(ids)!r}"
            )
        self._tell(tx, sorted(rows, key=lambda row: row[0]), look_at)

    def settle_turn(
        self, tx: Tx, turn_id: str, opened_by: str, state: State, reason: str | None
    ) -> list[str]:
        """End what a turn holds: what opened it as `state`, what joined a done one as merged."""
        rows = tx.all(
            _SETTLE_TURN,
            turn_id=turn_id,
            opened_by=opened_by,
            state=state.value,
            joined=(State.MERGED if state is State.DONE else state).value,
            reason=reason,
            now=tx.now,
        )
        return self._tell(tx, sorted(rows, key=lambda row: (row[0] != opened_by, row[0])))

    def _tell(
        self, tx: Tx, rows: Sequence[Row], look_at: Mapping[str, int | None] = _NO_TIMES
    ) -> list[str]:
        settled = [
            Settled(
                id=row[0],
                kind=_KINDS.get(row[1]),
                session_key=row[2],
                turn_id=row[3],
                state=State(row[4]),
                reason=row[5],
                look_at=look_at.get(row[0]),
            )
            for row in rows
        ]
        for row in rows:
            if row[6]:
                inbox_counts.change(tx, inbox_counts.name_of(row[1], row[7]), -1)
        for one in settled:
            self._bus.publish(
                tx,
                f"stimulus.{one.state.value}",
                one.session_key,
                turn_id=one.turn_id,
                stimulus_id=one.id,
                **({} if one.reason is None else {"reason": one.reason}),
            )
        for hook in self._hooks:
            hook(tx, settled)
        return [one.id for one in settled]
