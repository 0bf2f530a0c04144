"""The tool calls of a step, run side by side."""

import asyncio

from wakeful.prompts import notes
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.tools.running import is_cancelled, run
from wakeful.tools.tool import ToolContext, ToolResult
from wakeful.turn.attempt import CallOutcome, StepResult, TurnAttempt
from wakeful.turn.calls import needs_preparation, usable
from wakeful.turns.tool_calls import CallState, call_key
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.message import ToolCall
from wakeful.vocabulary.stimulus import ReadyAttachment


class CallRunner:
    """Runs what a commit has intended."""

    def __init__(self, store: Store, clock: Clock, metrics: Metrics, timezone: str) -> None:
        self._store = store
        self._clock = clock
        self._metrics = metrics
        self._timezone = timezone

    def follow(self, timezone: str) -> None:
        """Tell tools of another zone from now on."""
        self._timezone = timezone

    async def run(self, attempt: TurnAttempt, calls: tuple[ToolCall, ...]) -> StepResult:
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
        order = [call.id for call in calls]
        outcomes = sorted(attempt.finished, key=lambda outcome: order.index(outcome.call.id))
        return StepResult(outcomes=tuple(outcomes))

    async def _run_call(
        self, turn_task: asyncio.Task[object], attempt: TurnAttempt, call: ToolCall
    ) -> None:
        turn, agent = attempt.turn, attempt.agent
        tool = agent.toolbox.get(call.name, turn.trust, usable(turn, call, attempt.step))
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
