"""The loop of a turn: ask, act, commit, until it rests."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from wakeful.gate.locking import write_in_lanes
from wakeful.models.model import Delta, Request, Restart
from wakeful.models.sight import sight_of
from wakeful.prompts import notes
from wakeful.store.database import Store, Tx
from wakeful.telemetry.metrics import Metrics
from wakeful.tools.running import is_cancelled, locks_of, run
from wakeful.tools.tool import ToolContext, ToolResult
from wakeful.turn import compaction_commits, limits, next_step
from wakeful.turn.asking import Show, answer, next_try
from wakeful.turn.attempt import (
    Act,
    Ask,
    CallOutcome,
    Compact,
    Ended,
    Fenced,
    Next,
    StepResult,
    TurnAttempt,
)
from wakeful.turn.calls import LedgerToolFailed, needs_preparation
from wakeful.turn.commit import (
    NO_FAILURES,
    CommitOutcome,
    TurnCommit,
    TurnDeps,
    commit_step,
    is_fenced,
)
from wakeful.turn.showing import Showing, attached_to, newest
from wakeful.turn.sizing import fixed_part, is_flush
from wakeful.turn.summary import TooSmall, summarise, what_to_leave_out
from wakeful.turns import asks, turns
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState, call_key
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import (
    AttachmentRefused,
    ContextOverflow,
    Garbled,
    Permanent,
    StoreDamaged,
    StoreFailed,
    StoreRefused,
    Transient,
)
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.message import AssistantMessage, Message, ToolCall
from wakeful.vocabulary.stimulus import ReadyAttachment
from wakeful.vocabulary.text import error_text

# Time mends these: a busy, full or read-only store, a machine without memory for a moment.
PASSING = (Transient, StoreRefused, MemoryError)
# Between the tries of a commit that holds what was paid for: longer, and the turn is left instead.
COMMIT_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
COMMIT_TRIES = 3  # of one that fails in a way nobody foresaw; what is deterministic fails each time
NO_CONTENTS: Mapping[str, str] = {}

log = logging.getLogger(__name__)


class TurnRunner:
    """Runs turns; everything it does is first allowed by a commit."""

    def __init__(
        self,
        store: Store,
        deps: TurnDeps,
        clock: Clock,
        random: Random,
        metrics: Metrics,
        timezone: str = "UTC",
    ) -> None:
        self._store = store
        self._deps = deps
        self._bus = deps.bus
        self._clock = clock
        self._random = random
        self._metrics = metrics
        self._timezone = timezone

    def follow(self, timezone: str) -> None:
        """Tell tools of another zone from now on."""
        self._timezone = timezone

    async def run(self, attempt: TurnAttempt, next: Next) -> Next:
        """Go on with a turn, from wherever its attempt stands, until it ends or is left."""
        while True:
            match next:
                case Ask():
                    failpoint("ask")
                    next = await self._ask(attempt)
                case Act():
                    failpoint("intended")
                    next = await self._act(attempt, next.calls)
                case Compact():
                    failpoint("ask")
                    next = await self._compact(attempt, next.purpose)
                case _:
                    return next

    async def end_interrupted(self, attempt: TurnAttempt) -> Next:
        """End a turn whose task was cancelled because a commit told it to end."""
        return await self._leave(attempt, reason="interrupted", resume_at=self._clock.now())

    async def end_out_of_time(self, attempt: TurnAttempt) -> Next:
        sentence = limits.out_of_time(attempt.turn, attempt.agent.config.limits)
        return await self._end(attempt, TurnState.TIMED_OUT, "limit", sentence)

    async def leave_for_later(self, attempt: TurnAttempt) -> Next:
        """Give a turn back because the process stops; it goes on where it was."""
        return await self._leave(attempt, reason="stopping", resume_at=self._clock.now())

    async def fail(self, attempt: TurnAttempt, error: Exception) -> Next:
        """End a turn that failed in a way nobody foresaw."""
        sentence = f"Something went wrong inside the runtime: {type(error).__name__}."
        return await self._end(attempt, TurnState.FAILED, "internal", sentence)

    async def give_up(self, attempt: TurnAttempt) -> Next:
        """End a turn whose end could not be written either, without saying what it knew."""
        return await self._write(attempt, lambda tx: self._end_silently(tx, attempt))

    async def _ask(self, attempt: TurnAttempt) -> Next:
        try:
            reply = await self._stream(attempt)
        except Transient as error:
            return await self._ask_later(attempt, error)
        except ContextOverflow as error:
            refusal, fixed = error_text(error), fixed_part(attempt)
            attempt.partial.clear()  # it is asked anew, of a shorter conversation
            return await self._commit(
                attempt, lambda commit: compaction_commits.refused(commit, refusal, fixed)
            )
        except AttachmentRefused as error:
            return await self._leave_out(attempt, error)
        except Permanent as error:
            return await self._end(attempt, TurnState.FAILED, "provider", error_text(error))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            log.exception("the model %r raised", attempt.agent.model.name)
            sentence = f"The model failed: {type(error).__name__}: {error_text(error)}"
            return await self._end(attempt, TurnState.FAILED, "provider", sentence)
        failpoint("reply" if reply.tool_calls else "close")
        next = await self._advance(attempt, StepResult(reply=reply))
        attempt.partial.clear()
        if not reply.tool_calls:
            failpoint("closed")
        return next

    async def _leave_out(self, attempt: TurnAttempt, error: AttachmentRefused) -> Next:
        """Ask again without what the provider did not take; it is not shown any more."""
        messages, known = attempt.context.messages, attempt.context.refused
        refused = newest(messages, known)
        if not refused:
            return await self._end(attempt, TurnState.FAILED, "provider", error_text(error))
        attempt.partial.clear()
        sentence = error_text(error)
        return await self._commit(
            attempt, lambda commit: next_step.ask_without(commit, refused, sentence)
        )

    async def _stream(self, attempt: TurnAttempt) -> AssistantMessage:
        """Ask the model and show its words as they come."""
        agent, turn = attempt.agent, attempt.turn
        await agent.toolbox.settled()
        if attempt.system is None or attempt.system[0] is not turn.trust:
            flush = agent.config.compaction.memory_flush
            more = flush.system_prompt if is_flush(turn) else ""
            told = "\n\n".join(filter(None, (await agent.system(turn.trust), more)))
            attempt.system = turn.trust, told
            attempt.can_remember = await agent.can_remember()
        messages, contents = await self._shown(attempt)
        request = Request(
            system=attempt.system[1],
            messages=tuple(messages),
            contents=contents,
            tools=agent.toolbox.specs(turn.trust, turn.granted),
            thinking=agent.config.thinking,
            turn_id=turn.id,
            step=turn.step,
        )
        attempt.partial.clear()

        def show(piece: Delta | Restart) -> None:
            if isinstance(piece, Delta):
                attempt.partial.append(piece.text)
                self._show(attempt, piece.text)
            else:
                attempt.partial.clear()
                self._show(attempt, "", restarted=piece.model, failure=piece.failure)

        return await self._answer(attempt, request, show)

    async def _shown(self, attempt: TurnAttempt) -> tuple[Sequence[Message], Mapping[str, str]]:
        """Return the conversation as the model is shown it, with what is attached to it."""
        context = attempt.context
        if not any(attached_to(message) for message in context.messages):
            return context.messages, NO_CONTENTS
        attempt.showing = attempt.showing or Showing(self._store)
        sight = sight_of(attempt.agent.model)
        return await attempt.showing.show(context.messages, context.refused, sight)

    async def _answer(self, attempt: TurnAttempt, request: Request, show: Show) -> AssistantMessage:
        return await answer(
            attempt.agent.model,
            request,
            show,
            clock=self._clock,
            abandoned=lambda: self._metrics.abandoned("model"),
        )

    def _show(self, attempt: TurnAttempt, text: str, **more: object) -> None:
        if self._bus.is_watched(attempt.turn.session_key):
            self._bus.show(
                Event(
                    kind="turn.delta",
                    session_key=attempt.turn.session_key,
                    turn_id=attempt.turn.id,
                    data={"text": text, "step": attempt.turn.step, **more},
                )
            )

    async def _ask_later(self, attempt: TurnAttempt, error: Transient) -> Next:
        """Leave the turn open until the model may answer, or give up after enough tries."""
        waiting = await self._wait_for_model(attempt, error)
        if waiting is not None:
            return waiting
        if isinstance(error, Garbled):
            attempt.partial.clear()  # what cannot be read is not sent again with every question
        return await self._end(attempt, TurnState.FAILED, "provider", error_text(error))

    async def _wait_for_model(self, attempt: TurnAttempt, error: Transient) -> Next | None:
        """Leave the turn open until the model may answer; None after enough tries."""
        resume_at = await self._next_try(attempt, error)
        if resume_at is None:
            return None
        attempt.partial.clear()
        wait_s = (resume_at - self._clock.now()) / 1000
        log.warning("%s waits %.1f s for its model: %s", attempt.turn.id, wait_s, error_text(error))
        return await self._leave(
            attempt, reason="waiting for the model", resume_at=resume_at, failure=error
        )

    async def _next_try(self, attempt: TurnAttempt, error: Transient) -> int | None:
        """Return when to ask again; an answer that nobody could use has one more try of its own."""
        turn, now = attempt.turn, self._clock.now()
        if isinstance(error, Garbled):
            was_garbled = await self._store.transact(
                lambda tx: asks.was_garbled(tx, turn.id, turn.step)
            )
            return None if was_garbled else now
        limit = attempt.agent.config.limits.retries
        return next_try(error, turn.retries, limit, now, self._random)

    async def _compact(self, attempt: TurnAttempt, purpose: Purpose) -> Next:
        """Compact the older part of the conversation; on failure nothing of it is changed."""
        try:
            made = await summarise(
                self._store, attempt, lambda request, show: self._answer(attempt, request, show)
            )
        except ContextOverflow as error:
            refusal = error_text(error)
            return await self._commit(
                attempt,
                lambda commit: compaction_commits.question_refused(commit, refusal, purpose),
            )
        except Transient as error:
            waiting = await self._wait_for_model(attempt, error)
            return waiting or await self._not_compacted(attempt, error, purpose)
        except Permanent as error:
            return await self._not_compacted(attempt, error, purpose)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            log.exception("the model %r raised", attempt.agent.model.name)
            why = f"{type(error).__name__}: {error_text(error)}"
            return await self._commit(
                attempt, lambda commit: compaction_commits.failed(commit, why, purpose)
            )
        if made is None:
            fixed = fixed_part(attempt)
            return await self._commit(
                attempt, lambda commit: compaction_commits.skipped(commit, purpose, fixed)
            )
        failpoint("reply")
        return await self._insist(
            attempt, lambda commit: compaction_commits.compacted(commit, *made, purpose)
        )

    async def _not_compacted(
        self, attempt: TurnAttempt, error: Transient | Permanent, purpose: Purpose
    ) -> Next:
        """Go on without a summary: the model cannot make one, or may not be asked at all."""
        why, fixed = error_text(error), fixed_part(attempt)
        if not isinstance(error, Garbled | TooSmall):
            return await self._commit(
                attempt, lambda commit: compaction_commits.failed(commit, why, purpose, fixed)
            )
        return await self._commit(
            attempt,
            lambda commit: compaction_commits.left_out(
                commit, what_to_leave_out(commit.tx, attempt), why, purpose, fixed
            ),
        )

    async def _act(self, attempt: TurnAttempt, calls: tuple[ToolCall, ...]) -> Next:
        """Run calls side by side; each result is remembered the moment it is there."""
        own = asyncio.current_task()
        assert own is not None
        if len(calls) == 1:
            await self._run_call(own, attempt, calls[0])
        else:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    beside = self._run_call(own, attempt, call)
                    group.create_task(beside, name=f"tool {call.name}")
        failpoint("tool-acts")
        order = [call.id for call in calls]
        outcomes = sorted(attempt.finished, key=lambda outcome: order.index(outcome.call.id))
        next = await self._advance(attempt, StepResult(outcomes=tuple(outcomes)))
        failpoint("result")
        return next

    async def _run_call(
        self, turn_task: asyncio.Task[object], attempt: TurnAttempt, call: ToolCall
    ) -> None:
        turn, agent = attempt.turn, attempt.agent
        tool = agent.toolbox.get(call.name, turn.trust, turn.granted)
        if tool is None:  # its server has taken it back since the call was intended
            gone = ToolResult(text=notes.GONE, is_error=True)
            attempt.finished.append(CallOutcome(call=call, result=gone, state=CallState.FAILED))
            return
        context = ToolContext(
            key=call_key(turn.id, turn.step, call.id),
            session_key=turn.session_key,
            agent_id=turn.agent_id,
            turn_id=turn.id,
            workspace=agent.workspace,
            shared_files=agent.shared_files,
            clock=self._clock,
            trust=turn.trust,
            store=self._store,
            timezone=self._timezone,
        )
        is_prepared = needs_preparation(tool, call, attempt.prepared)
        result = await run(
            tool.prepare if is_prepared and tool.prepare else tool,
            call,
            context,
            owner=turn_task,
            abandoned=lambda: self._metrics.abandoned("tool"),
        )
        if is_prepared and not result.is_error:
            ready = (one for one in result.attachments if isinstance(one, ReadyAttachment))
            attempt.prepared[call.id] = tuple(ready)
            return  # the next commit runs it
        state = CallState.FAILED if result.is_error else CallState.DONE
        if result.is_in_doubt:
            state = CallState.UNKNOWN
        attempt.finished.append(CallOutcome(call=call, result=result, state=state))
        if is_cancelled():
            raise asyncio.CancelledError  # the tool has returned all the same

    async def _advance(self, attempt: TurnAttempt, result: StepResult) -> Next:
        """Commit what happened; a ledger tool that fails has its result in the next try."""
        failures: dict[str, str] = {}
        calls = () if result.reply is None else result.reply.tool_calls
        while True:
            try:
                return await self._insist(
                    attempt,
                    lambda commit: next_step.advance(commit, result),
                    calls=calls,
                    ledger_failures=dict(failures),
                )
            except LedgerToolFailed as failed:
                log.warning("the ledger tool %r failed", failed.call.name, exc_info=True)
                failures[failed.call.id] = failed.error_text

    async def _end(self, attempt: TurnAttempt, state: TurnState, kind: str, sentence: str) -> Next:
        how = End(state=state, reply=sentence, error_kind=kind, error=sentence)
        return await self._commit(
            attempt, lambda commit: next_step.end_attempt(commit, attempt, how)
        )

    async def _leave(
        self, attempt: TurnAttempt, *, reason: str, resume_at: int, failure: Transient | None = None
    ) -> Next:
        return await self._commit(
            attempt,
            lambda commit: next_step.leave_attempt(commit, attempt, reason, resume_at, failure),
        )

    async def _insist(
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
                return await self._commit(
                    attempt, act, calls=calls, ledger_failures=ledger_failures
                )
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

    async def _commit(
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

    def _end_silently(self, tx: Tx, attempt: TurnAttempt) -> CommitOutcome:
        """End a turn and nothing else; for when its end as it should be cannot be written."""
        turn = turns.get_partly(tx, attempt.claim.turn_id)
        if is_fenced(tx, attempt) or turn is None or turn.state is not TurnState.OPEN:
            return CommitOutcome(next=Fenced(), turn=attempt.turn)
        how = End(state=TurnState.FAILED, error_kind="internal", error="its end was not writable")
        self._deps.ending.end_turn(tx, turn, how, attempt.claim.epoch)
        return CommitOutcome(next=Ended(state=how.state), turn=turn)


def lanes_of(attempt: TurnAttempt, calls: Iterable[ToolCall]) -> set[str]:
    """Return the lanes that the next commit of a turn touches: its own, and what it reaches."""
    turn, toolbox = attempt.turn, attempt.agent.toolbox
    touched = {turn.session_key}
    if turn.reports_to is not None:
        touched.add(turn.reports_to)
    for call in (*attempt.step.open_calls, *calls):
        tool = toolbox.get(call.name, turn.trust, turn.granted)
        if tool is not None and tool.locks is not None:
            touched |= locks_of(tool, call, call_key(turn.id, turn.step, call.id), turn)
    return touched
