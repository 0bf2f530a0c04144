"""The commits of a turn: each one whole, and none lost that holds what was paid for."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from wakeful.gate.locking import write_in_lanes
from wakeful.store.database import Store, Tx
from wakeful.tools.running import locks_of
from wakeful.turn import next_step
from wakeful.turn.attempt import Ended, Fenced, Next, StepResult, TurnAttempt
from wakeful.turn.calls import LedgerToolFailed, usable
from wakeful.turn.commit import (
    NO_FAILURES,
    CommitOutcome,
    TurnCommit,
    TurnDeps,
    commit_step,
    is_fenced,
)
from wakeful.turns import turns
from wakeful.turns.tool_calls import call_key
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreDamaged, StoreFailed, StoreRefused, Transient
from wakeful.vocabulary.message import ToolCall

# Time mends these: a busy, full or read-only store, a machine without memory for a moment.
PASSING = (Transient, StoreRefused, MemoryError)
# Between the tries of a commit that holds what was paid for: longer, and the turn is left instead.
COMMIT_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
COMMIT_TRIES = 3  # of one that fails in a way nobody foresaw; what is deterministic fails each time

log = logging.getLogger(__name__)


class TurnWriter:
    """Writes what a turn did; the attempt learns of it once it is on disk."""

    def __init__(self, store: Store, deps: TurnDeps, clock: Clock) -> None:
        self._store = store
        self._deps = deps
        self._clock = clock

    async def advance(self, attempt: TurnAttempt, result: StepResult) -> Next:
        """Commit what happened; a ledger tool that fails has its result in the next try."""
        failures: dict[str, str] = {}
        calls = () if result.reply is None else result.reply.tool_calls
        while True:
            try:
                return await self.insist(
                    attempt,
                    lambda commit: next_step.advance(commit, result),
                    calls=calls,
                    ledger_failures=dict(failures),
                )
            except LedgerToolFailed as failed:
                failed.note()
                failures[failed.call.id] = failed.error_text

    async def end(
        self,
        attempt: TurnAttempt,
        state: TurnState,
        kind: str,
        sentence: str,
        *,
        may_pass: bool = False,
        trace: str | None = None,
    ) -> Next:
        how = End(
            state=state,
            reply=sentence,
            error_kind=kind,
            error=sentence,
            may_pass=may_pass,
            trace=trace,
        )
        return await self.commit(
            attempt, lambda commit: next_step.end_attempt(commit, attempt, how)
        )

    async def leave(
        self, attempt: TurnAttempt, *, reason: str, resume_at: int, failure: Transient | None = None
    ) -> Next:
        return await self.commit(
            attempt,
            lambda commit: next_step.leave_attempt(commit, attempt, reason, resume_at, failure),
        )

    async def insist(
        self,
        attempt: TurnAttempt,
        act: Callable[[TurnCommit], Next],
        *,
        calls: Iterable[ToolCall] = (),
        ledger_failures: Mapping[str, str] = NO_FAILURES,
    ) -> Next:
        """Make a commit whose content would be lost, again if it fails for what may pass.

        Nothing was written when a commit raises, so that it may be made again as it is.
        """
        tries = 0
        while True:
            try:
                return await self.commit(attempt, act, calls=calls, ledger_failures=ledger_failures)
            except (LedgerToolFailed, StoreFailed, StoreDamaged):
                raise
            except Exception as error:
                is_passing = isinstance(error, PASSING)
                if tries >= (len(COMMIT_PAUSES_S) if is_passing else COMMIT_TRIES - 1):
                    raise
                log.warning("a commit of %s is tried again", attempt.turn.id, exc_info=True)
            if is_passing:
                await self._clock.sleep(COMMIT_PAUSES_S[tries])
            tries += 1

    async def commit(
        self,
        attempt: TurnAttempt,
        act: Callable[[TurnCommit], Next],
        *,
        calls: Iterable[ToolCall] = (),
        ledger_failures: Mapping[str, str] = NO_FAILURES,
    ) -> Next:
        """Make one commit; the attempt learns of it once it is on disk."""
        return await self._write(
            attempt,
            lambda tx: commit_step(self._deps, tx, attempt, act, ledger_failures),
            calls,
        )

    async def give_up(self, attempt: TurnAttempt) -> Next:
        """End a turn whose end could not be written either, without saying what it knew."""
        return await self._write(attempt, lambda tx: self._end_silently(tx, attempt))

    def _end_silently(self, tx: Tx, attempt: TurnAttempt) -> CommitOutcome:
        """End a turn and nothing else; for when its end as it should be cannot be written."""
        turn = turns.get_partly(tx, attempt.claim.turn_id)
        if is_fenced(tx, attempt) or turn is None or turn.state is not TurnState.OPEN:
            return CommitOutcome(next=Fenced(), turn=attempt.turn)
        how = End(state=TurnState.FAILED, error_kind="internal", error="its end was not writable")
        self._deps.ending.end_turn(tx, turn, how, attempt.claim.epoch)
        return CommitOutcome(next=Ended(state=how.state), turn=turn)

    async def _write(
        self,
        attempt: TurnAttempt,
        fn: Callable[[Tx], CommitOutcome],
        calls: Iterable[ToolCall] = (),
    ) -> Next:
        try:
            outcome = await write_in_lanes(self._store, lanes_of(attempt, calls), fn)
        except asyncio.CancelledError:
            attempt.is_stale = True  # it may have been committed all the same
            raise
        return outcome.apply(attempt)


def lanes_of(attempt: TurnAttempt, calls: Iterable[ToolCall]) -> set[str]:
    """Return the lanes that the next commit of a turn touches: its own, and what it reaches."""
    turn, toolbox = attempt.turn, attempt.agent.toolbox
    touched = {turn.session_key}
    if turn.reports_to is not None:
        touched.add(turn.reports_to)
    for call in (*attempt.step.open_calls, *calls):
        tool = toolbox.get(call.name, turn.trust, usable(turn, call, attempt.step))
        if tool is not None and tool.locks is not None:
            touched |= locks_of(tool, call, call_key(turn.id, turn.step, call.id), turn)
    return touched
