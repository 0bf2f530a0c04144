"""Run one tool call to a result; whatever goes wrong becomes a result the model sees."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from wakeful.intake.draft import ready
from wakeful.tools.tool import CallFacts, Effect, LedgerContext, Tool, ToolContext, ToolResult
from wakeful.turns.turns import Turn
from wakeful.vocabulary.apart import Apart
from wakeful.vocabulary.clock import time_limit
from wakeful.vocabulary.errors import InvalidInput, Overloaded, WakefulError
from wakeful.vocabulary.message import ToolCall
from wakeful.vocabulary.stimulus import Attachment
from wakeful.vocabulary.text import clean

LONGEST_RESULT = 16_384  # characters that the model is shown
LONGEST_OUTPUT = 1_048_576  # characters that are kept of what it is not shown
THREAD_LIMIT = 64  # plain functions running at once, those that hang included

log = logging.getLogger(__name__)


async def run(
    tool: Tool,
    call: ToolCall,
    context: ToolContext,
    *,
    owner: asyncio.Task[Any] | None = None,
    abandoned: Callable[[], object] = lambda: None,
) -> ToolResult:
    """Run a call of a tool that acts outside the ledger, for the sake of a turn's task.

    A tool that does not end when it is told to is abandoned. One that returns after it was told to
    end has done its work: whoever calls must see for himself whether he was cancelled.
    """
    apart: Apart[ToolResult] | None = None
    try:
        arguments = tool.parse(call.arguments)
        if tool.context_parameter is not None:
            arguments[tool.context_parameter] = context
        apart = Apart(
            _finished(tool, arguments),
            name=f"tool {tool.name}",
            clock=context.clock,
            owner=owner,
        )
        async with time_limit(context.clock, tool.timeout_s):
            return await apart.result()
    except (TimeoutError, asyncio.CancelledError) as error:
        if apart is not None and apart.value is not None:
            return apart.value
        if apart is not None and apart.is_abandoned:
            abandoned()
        if isinstance(error, TimeoutError):
            return _timed_out(tool)
        if is_cancelled() or (owner is not None and owner.cancelling()):
            raise
        return _failure(tool, error)  # the tool's own, not ours
    except Exception as error:
        return _failure(tool, error)


def locks_of(tool: Tool, call: ToolCall, key: str, turn: Turn) -> frozenset[str]:
    """Return the sessions whose lanes a call touches beside its own; none if it cannot be read."""
    if tool.locks is None:
        return frozenset()
    facts = CallFacts(
        key=key, session_key=turn.session_key, agent_id=turn.agent_id, turn_id=turn.id
    )
    try:
        return frozenset(tool.locks(tool.parse(call.arguments), facts))
    except InvalidInput:
        return frozenset()  # what does not fit becomes the result of the call


def run_in_ledger(tool: Tool, call: ToolCall, context: LedgerContext) -> ToolResult:
    """Run a ledger tool inside the transaction that stores its result.

    Arguments that do not fit become a result here: whatever the tool itself raises must roll the
    transaction back, since it may have written something before.
    """
    try:
        arguments = tool.parse(call.arguments)
    except InvalidInput as error:
        return ToolResult(text=str(error), is_error=True)
    if tool.context_parameter is not None:
        arguments[tool.context_parameter] = context
    return _as_result(tool.function(**arguments))


def cut(text: str, output_id: str) -> tuple[str, str | None]:
    """Return what the model is shown of an output, and the whole if it was cut."""
    if len(text) <= LONGEST_RESULT:
        return text, None
    left = min(len(text), LONGEST_OUTPUT) - LONGEST_RESULT
    note = (
        f"\n[cut: {left} more characters; "
        f"read on with read_output, id {output_id!r}, offset {LONGEST_RESULT}]"
    )
    if len(text) > LONGEST_OUTPUT:
        note += f"\n[{len(text) - LONGEST_OUTPUT} characters at the end were not kept]"
    return text[:LONGEST_RESULT] + note, text[:LONGEST_OUTPUT]


def is_cancelled() -> bool:
    """Tell whether our own task was cancelled, rather than somebody having raised the error."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _finished(tool: Tool, arguments: dict[str, Any]) -> ToolResult:
    """Run the function to its result; a time-out of its own making is not ours."""
    try:
        if tool.is_async:
            value = await tool.function(**arguments)
        else:
            value = await _in_thread(lambda: tool.function(**arguments), tool.name)
        return await _measured(_as_result(value))
    except (TimeoutError, SystemExit) as error:
        return _failure(tool, error)


async def _measured(result: ToolResult) -> ToolResult:
    """Read what goes along with a result; what cannot be kept does not undo what was done."""
    new = [one for one in result.attachments if isinstance(one, Attachment)]
    if not new:
        return result
    try:
        return msgspec.structs.replace(result, attachments=await ready(new))
    except InvalidInput as error:
        said = f"{result.text}\n[what the tool attached was not kept: {error}]"
        return msgspec.structs.replace(result, text=said, attachments=())


def _timed_out(tool: Tool) -> ToolResult:
    is_in_doubt = tool.effect is not Effect.READ
    unsure = "; its outcome is unknown" if is_in_doubt else ""
    return ToolResult(
        text=f"timed out after {tool.timeout_s:g} s{unsure}",
        is_error=True,
        is_in_doubt=is_in_doubt,
    )


def _as_result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return msgspec.structs.replace(value, text=clean(value.text))
    if value is None:
        return ToolResult(text="done")
    if isinstance(value, str):
        return ToolResult(text=clean(value))
    try:
        return ToolResult(text=clean(msgspec.json.encode(value).decode()))
    except (TypeError, ValueError):
        return ToolResult(text=clean(repr(value)))


def _failure(tool: Tool, error: BaseException) -> ToolResult:
    if not isinstance(error, WakefulError):
        log.info("the tool %r failed", tool.name, exc_info=True)
    said = str(error)
    kind = "" if isinstance(error, WakefulError) and said else f"{type(error).__name__}: "
    return ToolResult(text=clean(f"{kind}{said}"), is_error=True)


_threads = threading.BoundedSemaphore(THREAD_LIMIT)


async def _in_thread(act: Callable[[], Any], name: str) -> Any:
    """Run a plain function off the loop; one that hangs is left behind and counted."""
    if not _threads.acquire(blocking=False):
        raise Overloaded(f"{THREAD_LIMIT} tool calls are already running or hanging")
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(error)

    def body() -> None:
        result, failure = None, None
        try:
            result = act()
        except BaseException as error:
            failure = error if _fits_future(error) else RuntimeError(repr(error))
        finally:
            _threads.release()
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            log.info("the tool %r finished after the runtime had stopped", name)

    # A daemon: a function that never returns must not keep the process alive.
    thread = threading.Thread(target=body, name=f"tool {name}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        _threads.release()
        raise Overloaded(f"no thread could be started: {error}") from error
    return await outcome


def _fits_future(error: BaseException) -> bool:
    # A future refuses StopIteration, and an exit must not end the runtime.
    return isinstance(error, Exception) and not isinstance(error, StopIteration)
