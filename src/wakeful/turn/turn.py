"""The loop of a turn: ask, act, commit, until it rests."""

import asyncio
import logging
import traceback
from random import Random

from wakeful.gate.money import Grant
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.tools.running import is_cancelled
from wakeful.turn import compaction_commits, limits, next_step
from wakeful.turn.acting import CallRunner
from wakeful.turn.asking import ModelAsker, next_try
from wakeful.turn.attempt import (
    Act,
    Ask,
    Compact,
    Next,
    StepResult,
    TurnAttempt,
)
from wakeful.turn.commit import (
    TurnDeps,
)
from wakeful.turn.committing import TurnWriter
from wakeful.turn.showing import newest
from wakeful.turn.sizing import fixed_part
from wakeful.turn.summary import TooSmall, prepare, summarise
from wakeful.turns import asks
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import (
    AttachmentRefused,
    ContextOverflow,
    Garbled,
    Permanent,
    Transient,
)
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.message import ToolCall
from wakeful.vocabulary.text import error_text

LONGEST_TRACE = 20_000  # characters, the last of them

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
        self._clock = clock
        self._random = random
        self._model = ModelAsker(store, deps.bus, clock, metrics)
        self._calls = CallRunner(store, clock, metrics, timezone)
        self._writer = TurnWriter(store, deps, clock)

    def follow(self, timezone: str) -> None:
        """Tell tools of another zone from now on."""
        self._calls.follow(timezone)

    async def run(self, attempt: TurnAttempt, next: Next) -> Next:
        """Go on with a turn, from wherever its attempt stands, until it ends or is left."""
        while True:
            match next:
                case Ask():
                    failpoint("ask")
                    next = await self._ask(attempt, next.grant)
                case Act():
                    failpoint("intended")
                    next = await self._act(attempt, next.calls)
                case Compact():
                    failpoint("ask")
                    next = await self._compact(attempt, next)
                case _:
                    return next

    async def end_interrupted(self, attempt: TurnAttempt) -> Next:
        """End a turn whose task was cancelled because a commit told it to end."""
        return await self._writer.leave(attempt, reason="interrupted", resume_at=self._clock.now())

    async def end_out_of_time(self, attempt: TurnAttempt) -> Next:
        sentence = limits.out_of_time(attempt.turn, attempt.agent.config.limits)
        return await self._writer.end(attempt, TurnState.TIMED_OUT, "limit", sentence)

    async def leave_for_later(self, attempt: TurnAttempt) -> Next:
        """Give a turn back because the process stops; it goes on where it was."""
        return await self._writer.leave(attempt, reason="stopping", resume_at=self._clock.now())

    async def fail(self, attempt: TurnAttempt, error: Exception) -> Next:
        """End a turn that failed in a way nobody foresaw."""
        sentence = f"Something went wrong inside the runtime: {type(error).__name__}."
        trace = "".join(traceback.format_exception(error))[-LONGEST_TRACE:]
        return await self._writer.end(attempt, TurnState.FAILED, "internal", sentence, trace=trace)

    async def give_up(self, attempt: TurnAttempt) -> Next:
        """End a turn whose end could not be written either, without saying what it knew."""
        return await self._writer.give_up(attempt)

    async def _ask(self, attempt: TurnAttempt, grant: Grant) -> Next:
        try:
            reply = await self._model.ask(attempt, grant)
        except Transient as error:
            return await self._ask_later(attempt, error)
        except ContextOverflow as error:
            refusal, fixed = error_text(error), fixed_part(attempt)
            attempt.partial.clear()  # it is asked anew, of a shorter conversation
            return await self._writer.commit(
                attempt, lambda commit: compaction_commits.refused(commit, refusal, fixed)
            )
        except AttachmentRefused as error:
            return await self._leave_out(attempt, error)
        except Permanent as error:
            return await self._writer.end(attempt, TurnState.FAILED, "provider", error_text(error))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            log.exception("the model %r raised", attempt.agent.model.name)
            sentence = f"The model failed: {type(error).__name__}: {error_text(error)}"
            return await self._writer.end(attempt, TurnState.FAILED, "provider", sentence)
        failpoint("reply" if reply.tool_calls else "close")
        next = await self._writer.advance(attempt, StepResult(reply=reply))
        attempt.partial.clear()
        if not reply.tool_calls:
            failpoint("closed")
        return next

    async def _leave_out(self, attempt: TurnAttempt, error: AttachmentRefused) -> Next:
        """Ask again without what the provider did not take; it is not shown any more."""
        messages, known = attempt.context.messages, attempt.context.refused
        refused = newest(messages, known)
        if not refused:
            return await self._writer.end(attempt, TurnState.FAILED, "provider", error_text(error))
        attempt.partial.clear()
        sentence = error_text(error)
        return await self._writer.commit(
            attempt, lambda commit: next_step.ask_without(commit, refused, sentence)
        )

    async def _ask_later(self, attempt: TurnAttempt, error: Transient) -> Next:
        """Leave the turn open until the model may answer, or give up after enough tries."""
        waiting = await self._wait_for_model(attempt, error)
        if waiting is not None:
            return waiting
        if isinstance(error, Garbled):
            attempt.partial.clear()  # what cannot be read is not sent again with every question
        return await self._writer.end(
            attempt, TurnState.FAILED, "provider", error_text(error), may_pass=True
        )

    async def _wait_for_model(self, attempt: TurnAttempt, error: Transient) -> Next | None:
        """Leave the turn open until the model may answer; None after enough tries."""
        resume_at = await self._next_try(attempt, error)
        if resume_at is None:
            return None
        attempt.partial.clear()
        wait_s = (resume_at - self._clock.now()) / 1000
        log.warning("%s waits %.1f s for its model: %s", attempt.turn.id, wait_s, error_text(error))
        return await self._writer.leave(
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

    async def _compact(self, attempt: TurnAttempt, next: Compact) -> Next:
        """Compact the older part of the conversation; on failure nothing of it is changed."""
        purpose, grant = next.purpose, next.grant
        try:
            made = await summarise(
                self._store,
                attempt,
                lambda request, show: self._model.answer(attempt, request, show, grant),
                grant.max_tokens,
            )
        except ContextOverflow as error:
            refusal = error_text(error)
            return await self._writer.commit(
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
            return await self._writer.commit(
                attempt, lambda commit: compaction_commits.failed(commit, why, purpose)
            )
        if made is None:
            fixed = fixed_part(attempt)
            return await self._writer.commit(
                attempt, lambda commit: compaction_commits.skipped(commit, purpose, fixed)
            )
        failpoint("reply")
        return await self._writer.insist(
            attempt, lambda commit: compaction_commits.compacted(commit, *made, purpose)
        )

    async def _not_compacted(
        self, attempt: TurnAttempt, error: Transient | Permanent, purpose: Purpose
    ) -> Next:
        """Go on without a summary: the model cannot make one, or may not be asked at all."""
        why, fixed = error_text(error), fixed_part(attempt)
        if not isinstance(error, Garbled | TooSmall):
            return await self._writer.commit(
                attempt, lambda commit: compaction_commits.failed(commit, why, purpose, fixed)
            )
        made = await prepare(self._store, attempt, is_asked=False)
        return await self._writer.commit(
            attempt,
            lambda commit: compaction_commits.left_out(commit, made, why, purpose, fixed),
        )

    async def _act(self, attempt: TurnAttempt, calls: tuple[ToolCall, ...]) -> Next:
        result = await self._calls.run(attempt, calls)
        failpoint("tool-acts")
        next = await self._writer.advance(attempt, result)
        failpoint("result")
        return next
