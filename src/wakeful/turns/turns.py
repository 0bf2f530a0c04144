"""Turn rows: one thought each, from claimed stimuli to rest."""

from enum import IntEnum, StrEnum

from msgspec import structs

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.kinds import Kind, Origin, View
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.proactive import SleepIntent
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Priority, Trust

INTERRUPT = "turn.interrupt"  # a turn was told to end: its id

# Unclean stops that a turn was open at, in one step, before it is suspected of causing them.
SUSPECT_STOPS = 2


class TurnState(StrEnum):
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    PREEMPTED = "preempted"
    SUPERSEDED = "superseded"
    TIMED_OUT = "timed_out"


class Phase(StrEnum):
    STREAMING = "streaming"
    TOOLS = "tools"
    COMPACTING = "compacting"
    WAITING = "waiting"  # open without a task: for the model, or for `resume`
    ENDED = "ended"


class Interrupt(IntEnum):
    NONE = 0
    PREEMPT = 1
    SUPERSEDE = 2
    STOP = 3


ENDS: dict[Interrupt, TurnState] = {
    Interrupt.PREEMPT: TurnState.PREEMPTED,
    Interrupt.SUPERSEDE: TurnState.SUPERSEDED,
    Interrupt.STOP: TurnState.STOPPED,
}


class Turn(Record):
    """One turn, as the ledger keeps it."""

    id: str
    session_key: str
    agent_id: str
    transcript_id: str
    kind: Kind
    priority: Priority
    trust: Trust
    source: str
    route: Route | None
    root_id: str
    depth: int
    opened_by: str
    config_hash: str
    state: TurnState
    phase: Phase
    interrupt: Interrupt
    is_preemptible: bool
    attempts: int
    retries: int
    step: int
    tool_calls: int
    used_ms: int
    input_tokens: int
    output_tokens: int
    cost: float
    reply: str | None
    error_kind: str | None
    error: str | None
    opened_at: int
    claimed_at: int
    ended_at: int | None
    view: View = View.FULL
    granted: tuple[str, ...] = ()  # tools beyond those of its trust, for as long as it lasts
    reports_to: str | None = None  # the session into whose lane its end files
    sleep: SleepIntent | None = None  # what it wants once it has ended well
    for_people: bool = True  # a person said or caused what it is about
    reserved: int = 0  # what its open question may cost, in billionths of a dollar
    usage_line: str | None = None  # with which its reply ends where it is delivered
    model: str | None = None  # that answered last; None: none has yet
    wall_s: int | None = None  # how long it may take; None: as its agent's settings say
    may_pass: bool = False  # it failed of something that time may mend

    @property
    def origin(self) -> Origin:
        return self.kind.origin


TURNS = RowTable("turns", Turn)


def add(tx: Tx, turn: Turn) -> None:
    tx.run(TURNS.insert, **TURNS.params(turn))


def get(tx: Tx, turn_id: str) -> Turn | None:
    row = tx.one(TURNS.select("WHERE id = :id"), id=turn_id)
    return None if row is None else TURNS.read(row)


def get_partly(tx: Tx, turn_id: str) -> Turn | None:
    """Return a turn for whoever ends it: what cannot be read of it is None."""
    row = tx.one(TURNS.select("WHERE id = :id"), id=turn_id)
    return None if row is None else TURNS.read_partly(row)


def get_all(tx: Tx, turn_ids: list[str]) -> dict[str, Turn]:
    rows = tx.all(TURNS.select("WHERE id IN :ids"), ids=turn_ids)
    return {row[0]: TURNS.read(row) for row in rows}


def interrupt(tx: Tx, turn_id: str, level: Interrupt) -> None:
    """Tell an open turn to end; a weaker reason never replaces a stronger one."""
    changed = tx.run(
        "UPDATE turns SET interrupt = :level "
        "WHERE id = :id AND state = 'open' AND interrupt < :level",
        id=turn_id,
        level=int(level),
    )
    if changed:
        tx.notify(INTERRUPT, turn_id)


def reclaim(tx: Tx, turn_id: str) -> None:
    """Note that another attempt at an open turn begins.

    An attempt above SUSPECT_STOPS marks the suspect that runs, in the very commit that lets it run.
    """
    tx.run(
        "UPDATE turns SET attempts = attempts + 1, claimed_at = :now WHERE id = :id",
        id=turn_id,
        now=tx.now,
    )


def charge(tx: Tx, turn_id: str, stops: int) -> None:
    """Note how many unclean stops an open turn without a task is charged with."""
    tx.run("UPDATE turns SET attempts = :stops WHERE id = :id", id=turn_id, stops=stops)


def enter(
    tx: Tx, turn: Turn, phase: Phase, *, step: int, tool_calls: int, reserved: int = 0
) -> None:
    """Note how far the turn has come; a new step proves it is not poison, and has all its tries."""
    tx.run(
        "UPDATE turns SET phase = :phase, attempts = CASE WHEN step < :step THEN 1 ELSE attempts "
        "END, retries = CASE WHEN step < :step THEN 0 ELSE retries END, step = :step, "
        "tool_calls = :tool_calls, reserved = :reserved WHERE id = :id",
        id=turn.id,
        reserved=reserved,
        phase=phase.value,
        step=step,
        tool_calls=tool_calls,
    )


def note_usage(tx: Tx, turn_id: str, usage: Usage, model: str | None = None) -> None:
    """Count what an answer used, and note which model gave it, if one did."""
    tx.run(
        "UPDATE turns SET input_tokens = input_tokens + :input, "
        "output_tokens = output_tokens + :output, cost = cost + :cost, reserved = 0, "
        "model = COALESCE(:model, model) WHERE id = :id",
        id=turn_id,
        input=usage.input,
        output=usage.output,
        cost=usage.cost or 0.0,
        model=model,
    )


def taint(tx: Tx, turn: Turn) -> Turn:
    """Let a turn's trust sink, for good: its model has been shown text from outside."""
    tx.run("UPDATE turns SET trust = 'external' WHERE id = :id", id=turn.id)
    return structs.replace(turn, trust=Trust.EXTERNAL)


def narrow(tx: Tx, turn: Turn, granted: tuple[str, ...]) -> Turn:
    """Take from a turn the grants that somebody who joins it does not have."""
    kept = tuple(name for name in turn.granted if name in granted)
    if kept == turn.granted:
        return turn
    narrowed = structs.replace(turn, granted=kept)
    params = TURNS.params(narrowed)
    tx.run(
        "UPDATE turns SET granted = :granted WHERE id = :id", id=turn.id, granted=params["granted"]
    )
    return narrowed


def note_for_people(tx: Tx, turn: Turn) -> Turn:
    """Note that a person has joined a turn: it is theirs from now on."""
    tx.run("UPDATE turns SET for_people = 1 WHERE id = :id", id=turn.id)
    return structs.replace(turn, for_people=True)


def intend_sleep(tx: Tx, turn: Turn, sleep: SleepIntent) -> Turn:
    """Note that a turn's session sleeps once it has ended well; the last wish counts."""
    intending = structs.replace(turn, sleep=sleep)
    tx.run(
        "UPDATE turns SET sleep = :sleep WHERE id = :id",
        id=turn.id,
        sleep=TURNS.params(intending)["sleep"],
    )
    return intending


def leave(tx: Tx, turn_id: str, *, failed_ask: bool, used_ms: int) -> None:
    """Note that a turn stays open without a task; a clean release gives the attempt back."""
    tx.run(
        "UPDATE turns SET phase = 'waiting', attempts = attempts - 1, "
        "retries = retries + :failed, used_ms = used_ms + :used_ms WHERE id = :id",
        id=turn_id,
        failed=int(failed_ask),
        used_ms=used_ms,
    )


class End(Record):
    """How a turn ended."""

    state: TurnState
    reply: str | None = None
    error_kind: str | None = None
    error: str | None = None
    reason: str | None = None  # for its stimuli
    usage_line: str | None = None  # what it used, for those who hear the reply
    may_pass: bool = False  # what it failed of may be over soon
    trace: str | None = None  # where something went wrong inside the runtime


def end(tx: Tx, turn: Turn, how: End, *, is_news: bool = False) -> bool:
    """Write the terminal state, and whether people should read it; False if the turn had ended."""
    changed = tx.run(
        "UPDATE turns SET state = :state, phase = 'ended', reply = :reply, "
        "error_kind = :error_kind, error = :error, ended_at = :now, usage_line = :usage_line, "
        "is_news = :is_news, may_pass = :may_pass, "
        "used_ms = used_ms + CASE WHEN :now > claimed_at THEN :now - claimed_at ELSE 0 END "
        "WHERE id = :id AND state = 'open'",
        id=turn.id,
        state=how.state.value,
        reply=how.reply,
        error_kind=how.error_kind,
        error=how.error,
        usage_line=how.usage_line,
        is_news=int(is_news),
        may_pass=int(how.may_pass),
        now=tx.now,
    )
    return changed == 1


def prune(tx: Tx, after: str, before: int, limit: int) -> str | None:
    """Forget turns ended before an instant, with their questions and calls."""
    rows = tx.all(
        "SELECT id, ended_at FROM turns WHERE id > :after AND id < :until ORDER BY id LIMIT :limit",
        after=after,
        until=f"tn_{before:012x}",
        limit=limit,
    )
    old = [row[0] for row in rows if row[1] is not None and row[1] < before]
    tx.run("DELETE FROM asks WHERE turn_id IN :ids", ids=old)
    tx.run("DELETE FROM tool_calls WHERE turn_id IN :ids", ids=old)
    tx.run("DELETE FROM turns WHERE id IN :ids", ids=old)
    return rows[-1][0] if len(rows) == limit else None
