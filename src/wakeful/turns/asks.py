"""What turns asked of models: a row before every call, settled by its answer."""

from enum import StrEnum

from wakeful.store.database import Row, Tx
from wakeful.vocabulary.message import Usage, encode_message
from wakeful.vocabulary.record import Record


class Purpose(StrEnum):
    REPLY = "reply"
    SUMMARY = "summary"  # of a conversation that has become long
    RESCUE = "rescue"  # the same, after the model refused a conversation as too long


class AskState(StrEnum):
    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    GARBLED = "garbled"  # an answer that nobody could use
    ABANDONED = "abandoned"  # it was asked again, or nobody waited for it


class Reserved(Record):
    """What a question may cost, as it is on record with it; money in billionths of a dollar."""

    reserved: int = 0
    max_tokens: int | None = None  # of the answer
    day: int = 0  # of the budgets
    scopes: tuple[str, ...] = ()  # the budgets that it is paid from
    for_people: bool = True  # a person said or caused it


class SettledAsk(Record):
    """A question that has ended: what it had reserved, and what it cost."""

    reserved: Reserved
    cost: int | None


NOTHING_RESERVED = Reserved()

_SETTLE = (
    "UPDATE asks SET state = :state, usage = :usage, error = :error, settled_at = :now, "
    "cost = CASE WHEN :costs_all = 1 THEN reserved ELSE CAST(:cost AS BIGINT) END, "
    "is_estimate = :is_estimate, input_tokens = :input, output_tokens = :output, "
    "cache_read = :cache_read, cache_write = :cache_write "
    "WHERE turn_id = :turn_id AND state = 'asked' "
    "RETURNING reserved, max_tokens, day, scopes, for_people, cost"
)
_SETTLE_STEP = _SETTLE.replace("AND state = 'asked'", "AND step = :step AND state = 'asked'")


def add(
    tx: Tx,
    turn_id: str,
    step: int,
    *,
    epoch: int,
    leaf_hash: str,
    purpose: Purpose = Purpose.REPLY,
    reserved: Reserved = NOTHING_RESERVED,
) -> None:
    """Note that a model is about to be asked; an earlier try without an answer was abandoned."""
    tx.run(
        "INSERT INTO asks (turn_id, step, attempt, epoch, state, leaf_hash, asked_at, purpose, "
        "reserved, max_tokens, day, scopes, for_people) "
        "SELECT :turn_id, :step, COALESCE(MAX(attempt), 0) + 1, :epoch, 'asked', :leaf_hash, :now, "
        ":purpose, :reserved, CAST(:max_tokens AS BIGINT), :day, :scopes, :for_people "
        "FROM asks WHERE turn_id = :turn_id AND step = :step",
        turn_id=turn_id,
        step=step,
        epoch=epoch,
        leaf_hash=leaf_hash,
        now=tx.now,
        purpose=purpose.value,
        reserved=reserved.reserved,
        max_tokens=reserved.max_tokens,
        day=reserved.day,
        scopes="\n".join(reserved.scopes),
        for_people=int(reserved.for_people),
    )


def last(tx: Tx, turn_id: str, step: int) -> tuple[Purpose, bool]:
    """Return what a step asked for, and whether it was answered."""
    row = tx.one(
        "SELECT purpose, state FROM asks WHERE turn_id = :turn_id AND step = :step "
        "ORDER BY attempt DESC LIMIT 1",
        turn_id=turn_id,
        step=step,
    )
    return (Purpose.REPLY, False) if row is None else (Purpose(row[0]), row[1] == "answered")


def rescues(tx: Tx, turn_id: str) -> int:
    """Return how often a turn's conversation was compacted because the model refused it."""
    row = tx.one(
        "SELECT COUNT(DISTINCT step) FROM asks WHERE turn_id = :turn_id AND purpose = 'rescue'",
        turn_id=turn_id,
    )
    return 0 if row is None else row[0]


class AskEnd(Record):
    """How a question ended, and what it cost."""

    state: AskState
    usage: Usage | None = None
    error: str | None = None
    cost: int | None = None  # billionths of a dollar; None: nobody knows the price
    is_estimate: bool = False  # nobody told what it cost
    costs_all: bool = False  # it is taken to have cost all that was reserved


def settle(tx: Tx, turn_id: str, step: int | None, how: AskEnd) -> list[SettledAsk]:
    """End the open questions of a step, or of all of a turn; return what they had reserved.

    A question that has ended is left as it is: nothing is settled twice.
    """
    usage = how.usage or Usage()
    rows = tx.all(
        _SETTLE if step is None else _SETTLE_STEP,
        turn_id=turn_id,
        **({} if step is None else {"step": step}),
        state=how.state.value,
        usage=None if how.usage is None else encode_message(usage).decode(),
        error=how.error,
        cost=how.cost,
        costs_all=int(how.costs_all),
        is_estimate=int(how.is_estimate),
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        now=tx.now,
    )
    return [_settled(row) for row in rows]


def is_unpriced(tx: Tx, turn_id: str) -> bool:
    """Tell whether nobody knows what an answer of a turn cost."""
    row = tx.one(
        "SELECT 1 FROM asks WHERE turn_id = :turn_id AND state = 'answered' AND cost IS NULL "
        "LIMIT 1",
        turn_id=turn_id,
    )
    return row is not None


def was_garbled(tx: Tx, turn_id: str, step: int) -> bool:
    """Tell whether a step has been asked once more because of an answer that nobody could use."""
    row = tx.one(
        "SELECT 1 FROM asks WHERE turn_id = :turn_id AND step = :step AND state = 'garbled'",
        turn_id=turn_id,
        step=step,
    )
    return row is not None


def _settled(row: Row) -> SettledAsk:
    reserved, max_tokens, day, scopes, for_people, cost = row
    return SettledAsk(
        reserved=Reserved(
            reserved=reserved,
            max_tokens=max_tokens,
            day=day,
            scopes=tuple(scopes.split("\n")) if scopes else (),
            for_people=bool(for_people),
        ),
        cost=cost,
    )
