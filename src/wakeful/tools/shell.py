"""The shell, off by default: whoever may use it has the runtime's own rights on this machine."""

from wakeful.tools import process
from wakeful.tools.tool import Effect, ToolContext, ToolResult, tool
from wakeful.vocabulary.errors import InvalidInput, Permanent

LONGEST_TIMEOUT_S = 600
_CLEANUP_S = 30.0  # beyond the command's own limit, so that this one never strikes first


@tool(effect=Effect.EFFECT, timeout_s=LONGEST_TIMEOUT_S + _CLEANUP_S)
async def shell(context: ToolContext, command: str, timeout_s: int = 60) -> ToolResult:
    """Run a shell command in the workspace and return its output and exit code.

    Everything it started is ended with it: nothing runs on in the background.
    """
    if not 1 <= timeout_s <= LONGEST_TIMEOUT_S:
        raise InvalidInput("timeout_s", f"must be from 1 to {LONGEST_TIMEOUT_S}, not {timeout_s}")
    if context.workspace is None:
        raise Permanent(f"the agent {context.agent_id!r} has no workspace configured")
    context.workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    finished = await process.run(
        ["/bin/sh", "-c", command],
        folder=context.workspace,
        clock=context.clock,
        timeout_s=timeout_s,
        key=context.key,
    )
    notes = [finished.output] if finished.output else []
    if finished.dropped_bytes:
        notes.append(f"[cut: {finished.dropped_bytes} more bytes of output were dropped]")
    if finished.exit_code is None:
        notes.append(f"[timed out after {timeout_s} s and was ended; its outcome is unknown]")
    else:
        notes.append(f"[exit code {finished.exit_code}]")
    return ToolResult(text="\n".join(notes), is_error=finished.exit_code != 0)
