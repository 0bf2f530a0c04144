"""What turns asked of tools: an intent before each act, settled by its result."""

from collections.abc import Sequence
from enum import StrEnum

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.record import Record


class CallState(StrEnum):
    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"  # the tool answered with an error
    UNKNOWN = "unknown"  # it was cut off and may or may not have acted
    SKIPPED = "skipped"  # it never began
    ASKED = "asked"  # it never began: somebody must approve it first


class RecordedCall(Record):
    """One call of a tool, as the ledger keeps it."""

    turn_id: str
    step: int
    call_id: str
    position: int
    name: str
    effect: str
    arguments: str
    epoch: int
    state: CallState
    intended_at: int
    settled_at: int | None = None
    output: str | None = None
    ends_turn: bool = False


CALLS = RowTable("tool_calls", RecordedCall)


def call_key(turn_id: str, step: int, call_id: str) -> str:
    """Return the idempotency key of a call: the same over every attempt."""
    return f"{turn_id}:{step}:{call_id}"


def output_id(turn_id: str, step: int, position: int) -> str:
    """Return the name under which the whole output of a call can be read; fits into an address."""
    return f"{turn_id}.{step}.{position}"


def add(tx: Tx, calls: Sequence[RecordedCall]) -> None:
    """Write calls down before they run (or, settled, together with their results).

    An intent that an earlier attempt left behind is taken over by the attempt that repeats it.
    """
    tx.many(
        f"{CALLS.insert} ON CONFLICT (turn_id, step, call_id) DO UPDATE SET epoch = :epoch",
        [CALLS.params(call) for call in calls],
    )


def of_step(tx: Tx, turn_id: str, step: int) -> dict[str, RecordedCall]:
    rows = tx.all(
        CALLS.select("WHERE turn_id = :turn_id AND step = :step"),
        turn_id=turn_id,
        step=step,
    )
    return {call.call_id: call for call in map(CALLS.read, rows)}


def abandon(tx: Tx, turn_id: str) -> list[tuple[str, str]]:
    """Settle the calls of a turn that began and will never be heard of; return id and name of each.

    Reads nothing that may be damaged.
    """
    rows = tx.all(
        "UPDATE tool_calls SET state = :state, settled_at = :now "
        "WHERE turn_id = :turn_id AND state = 'intended' RETURNING position, call_id, name",
        turn_id=turn_id,
        state=CallState.UNKNOWN.value,
        now=tx.now,
    )
    return [(row[1], row[2]) for row in sorted(rows, key=lambda row: row[0])]


def settle(
    tx: Tx,
    turn_id: str,
    step: int,
    call_id: str,
    *,
    state: CallState,
    output: str | None,
    ends_turn: bool,
) -> None:
    """Write what came of a call; the first result stands."""
    tx.run(
        "UPDATE tool_calls SET state = :state, settled_at = :now, output = :output, "
        "ends_turn = :ends_turn "
        "WHERE turn_id = :turn_id AND step = :step AND call_id = :call_id AND state = 'intended'",
        turn_id=turn_id,
        step=step,
        call_id=call_id,
        state=state.value,
        output=output,
        ends_turn=int(ends_turn),
        now=tx.now,
    )
