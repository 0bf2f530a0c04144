"""The loop of a turn: ask, act, commit, until it rests."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random

from wakeful.bus.bus import Bus
from wakeful.gate.locking import write_in_lanes
from wakeful.models.model import Delta, Request, Restart
from wakeful.prompts import notes
from wakeful.store.database import Store, Tx
from wakeful.tools.running import is_cancelled, locks_of, run
from wakeful.tools.tool import ToolContext, ToolResult
from wakeful.turn import folding, limits
from wakeful.turn.asking import answer
from wakeful.turn.backoff import next_try
from wakeful.turn.calls import LedgerToolFailed
from wakeful.turn.journal import Act, Ask, CallOutcome, Compact, Journal, News, Next
from wakeful.turn.page import Advanced, Page
from wakeful.turn.record import Recorder
from wakeful.turn.sizing import is_flush
from wakeful.turn.summary import summarise
from wakeful.turns import asks
from wakeful.turns.asks import Purpose
from wakeful.turns.tool_calls import CallState, call_key
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent, Transient
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.message import AssistantMessage, ToolCall
from wakeful.vocabulary.text import told

log = logging.getLogger(__name__)


class Thinker:
    """Runs turns; everything it does is first allowed by a commit."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        recorder: Recorder,
        clock: Clock,
        random: Random,
        timezone: str = "UTC",
    ) -> None:
        self._store = store
        self._bus = bus
        self._recorder = recorder
        self._clock = clock
        self._random = random
        self._timezone = timezone

    def follow(self, timezone: str) -> None:
        """Tell tools of another zone from now on."""
        self._timezone = timezone

    async def think(self, journal: Journal, next: Next) -> Next:
        """Go on with a turn, from wherever its journal stands, until it ends or is left."""
        while True:
            match next:
                case Ask():
                    failpoint("P5")
                    next = await self._ask(journal)
                case Act():
                    failpoint("P7")
                    next = await self._act(journal, next.calls)
                case Compact():
                    failpoint("P5")
                    next = await self._compact(journal, next.purpose)
                case _:
                    return next

    async def end_interrupted(self, journal: Journal) -> Next:
        """End a turn whose task was cancelled because a commit told it to end."""
        return await self._leave(journal, reason="interrupted", resume_at=self._clock.now())

    async def end_out_of_time(self, journal: Journal) -> Next:
        sentence = limits.out_of_time(journal.turn, journal.mind.config.limits)
        return await self._end(journal, TurnState.TIMED_OUT, "limit", sentence)

    async def leave_for_later(self, journal: Journal) -> Next:
        """Give a turn back because the process stops; it goes on where it was."""
        return await self._leave(journal, reason="stopping", resume_at=self._clock.now())

    async def fail(self, journal: Journal, error: Exception) -> Next:
        """End a turn that failed in a way nobody foresaw."""
        sentence = f"Something went wrong inside the runtime: {type(error).__name__}."
        return await self._end(journal, TurnState.FAILED, "internal", sentence)

    async def give_up(self, journal: Journal) -> Next:
        """End a turn whose end could not be written either, without saying what it knew."""
        return await self._write(journal, lambda tx: self._recorder.give_up(tx, journal))

    async def _ask(self, journal: Journal) -> Next:
        try:
            reply = await self._stream(journal)
        except Transient as error:
            return await self._ask_later(journal, error)
        except ContextOverflow as error:
            refusal = told(error)
            journal.partial.clear()  # it is asked anew, of a shorter conversation
            return await self._on_page(journal, lambda page: folding.rescue(page, refusal))
        except Permanent as error:
            return await self._end(journal, TurnState.FAILED, "provider", told(error))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            log.exception("the model %r raised", journal.mind.model.name)
            sentence = f"The model failed: {type(error).__name__}: {told(error)}"
            return await self._end(journal, TurnState.FAILED, "provider", sentence)
        failpoint("P6" if reply.tool_calls else "P10")
        next = await self._commit(journal, News(reply=reply))
        journal.partial.clear()
        if not reply.tool_calls:
            failpoint("P11")
        return next

    async def _stream(self, journal: Journal) -> AssistantMessage:
        """Ask the model and show its words as they come."""
        mind, turn = journal.mind, journal.turn
        await mind.toolbox.settled()
        if journal.system is None:
            flush = mind.config.compaction.memory_flush
            more = flush.system_prompt if is_flush(turn) else ""
            journal.system = "\n\n".join(filter(None, (await mind.system(), more)))
        request = Request(
            system=journal.system,
            messages=tuple(journal.context.messages),
            tools=mind.toolbox.specs(turn.trust, turn.granted),
            thinking=mind.config.thinking,
            turn_id=turn.id,
            step=turn.step,
        )
        journal.partial.clear()

        def show(piece: Delta | Restart) -> None:
            if isinstance(piece, Delta):
                journal.partial.append(piece.text)
                self._show(journal, piece.text)
            else:
                journal.partial.clear()
                self._show(journal, "", restarted=piece.model, failure=piece.failure)

        return await answer(mind.model, request, show)

    def _show(self, journal: Journal, text: str, **more: object) -> None:
        if self._bus.is_watched(journal.turn.session_key):
            self._bus.show(
                Event(
                    kind="turn.delta",
                    session_key=journal.turn.session_key,
                    turn_id=journal.turn.id,
                    data={"text": text, "step": journal.turn.step, **more},
                )
            )

    async def _ask_later(self, journal: Journal, error: Transient) -> Next:
        """Leave the turn open until the model may answer, or give up after enough tries."""
        waiting = await self._wait_for_model(journal, error)
        if waiting is not None:
            return waiting
        if isinstance(error, Garbled):
            journal.partial.clear()  # what cannot be read is not sent again with every question
        return await self._end(journal, TurnState.FAILED, "provider", told(error))

    async def _wait_for_model(self, journal: Journal, error: Transient) -> Next | None:
        """Leave the turn open until the model may answer; None after enough tries."""
        resume_at = await self._next_try(journal, error)
        if resume_at is None:
            return None
        journal.partial.clear()
        wait_s = (resume_at - self._clock.now()) / 1000
        log.warning("%s waits %.1f s for its model: %s", journal.turn.id, wait_s, told(error))
        return await self._leave(
            journal, reason="waiting for the model", resume_at=resume_at, failure=error
        )

    async def _next_try(self, journal: Journal, error: Transient) -> int | None:
        """Return when to ask again; an answer that nobody could use has one more try of its own."""
        turn, now = journal.turn, self._clock.now()
        if isinstance(error, Garbled):
            was_garbled = await self._store.write(
                lambda tx: asks.was_garbled(tx, turn.id, turn.step)
            )
            return None if was_garbled else now
        limit = journal.mind.config.limits.retries
        return next_try(error, turn.retries, limit, now, self._random)

    async def _compact(self, journal: Journal, purpose: Purpose) -> Next:
        """Fold the older part of the conversation; on failure nothing of it is changed."""
        try:
            made = await summarise(self._store, journal)
        except Transient as error:
            waiting = await self._wait_for_model(journal, error)
            if waiting is not None:
                return waiting
            why = told(error)
        except Permanent as error:
            why = told(error)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            log.exception("the model %r raised", journal.mind.model.name)
            why = f"{type(error).__name__}: {told(error)}"
        else:
            if made is None:
                return await self._on_page(journal, lambda page: folding.skip(page, purpose))
            failpoint("P6")
            return await self._on_page(journal, lambda page: folding.fold(page, *made, purpose))
        return await self._on_page(journal, lambda page: folding.fail(page, why, purpose))

    async def _act(self, journal: Journal, calls: tuple[ToolCall, ...]) -> Next:
        """Run calls side by side; each result is remembered the moment it is there."""
        if len(calls) == 1:
            await self._run_call(journal, calls[0])
        else:
            own = asyncio.current_task()
            assert own is not None
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    beside = self._run_beside(own, journal, call)
                    group.create_task(beside, name=f"tool {call.name}")
        failpoint("P8")
        order = [call.id for call in calls]
        outcomes = sorted(journal.finished, key=lambda outcome: order.index(outcome.call.id))
        next = await self._commit(journal, News(outcomes=tuple(outcomes)))
        failpoint("P9")
        return next

    async def _run_beside(
        self, turn: asyncio.Task[object], journal: Journal, call: ToolCall
    ) -> None:
        # A new task begins one cycle later: a stop may have been acknowledged in between.
        if not turn.cancelling():
            await self._run_call(journal, call)

    async def _run_call(self, journal: Journal, call: ToolCall) -> None:
        turn, mind = journal.turn, journal.mind
        tool = mind.toolbox.get(call.name, turn.trust, turn.granted)
        if tool is None:  # its server has taken it back since the call was intended
            gone = ToolResult(text=notes.GONE, is_error=True)
            journal.finished.append(CallOutcome(call=call, result=gone, state=CallState.FAILED))
            return
        context = ToolContext(
            key=call_key(turn.id, turn.step, call.id),
            session_key=turn.session_key,
            agent_id=turn.agent_id,
            turn_id=turn.id,
            workspace=mind.workspace,
            clock=self._clock,
            trust=turn.trust,
            store=self._store,
            timezone=self._timezone,
        )
        result = await run(tool, call, context)
        state = CallState.FAILED if result.is_error else CallState.DONE
        if result.is_in_doubt:
            state = CallState.UNKNOWN
        journal.finished.append(CallOutcome(call=call, result=result, state=state))

    async def _commit(self, journal: Journal, news: News) -> Next:
        failures: dict[str, str] = {}
        while True:
            known = News(reply=news.reply, outcomes=news.outcomes, ledger_failures=dict(failures))
            try:
                return await self._write(
                    journal,
                    lambda tx, known=known: self._recorder.advance(tx, journal, known),
                    () if news.reply is None else news.reply.tool_calls,
                )
            except LedgerToolFailed as failed:
                log.warning("the ledger tool %r failed", failed.call.name, exc_info=True)
                failures[failed.call.id] = failed.told

    async def _on_page(self, journal: Journal, act: Callable[[Page], Next]) -> Next:
        return await self._write(journal, lambda tx: self._recorder.on_page(tx, journal, act))

    async def _end(self, journal: Journal, state: TurnState, kind: str, sentence: str) -> Next:
        how = End(state=state, reply=sentence, error_kind=kind, error=sentence)
        return await self._write(journal, lambda tx: self._recorder.end(tx, journal, how))

    async def _leave(
        self, journal: Journal, *, reason: str, resume_at: int, failure: Transient | None = None
    ) -> Next:
        return await self._write(
            journal,
            lambda tx: self._recorder.leave(
                tx, journal, reason=reason, resume_at=resume_at, failure=failure
            ),
        )

    async def _write(
        self, journal: Journal, fn: Callable[[Tx], Advanced], calls: Iterable[ToolCall] = ()
    ) -> Next:
        try:
            advanced = await write_in_lanes(self._store, lanes_of(journal, calls), fn)
        except asyncio.CancelledError:
            journal.is_stale = True  # it may have been committed all the same
            raise
        return advanced.apply(journal)


def lanes_of(journal: Journal, calls: Iterable[ToolCall]) -> set[str]:
    """Return the lanes that the next commit of a turn touches: its own, and what it reaches."""
    turn, toolbox = journal.turn, journal.mind.toolbox
    touched = {turn.session_key}
    if turn.reports_to is not None:
        touched.add(turn.reports_to)
    for call in (*journal.remaining, *calls):
        tool = toolbox.get(call.name, turn.trust, turn.granted)
        if tool is not None and tool.locks is not None:
            touched |= locks_of(tool, call, call_key(turn.id, turn.step, call.id), turn)
    return touched
