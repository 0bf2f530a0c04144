"""Shared by the tests of compaction: a model with a small window, and a runtime around it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from wakeful.models.model import Reply, Request
from wakeful.models.scripted import Line
from wakeful.prompts import compaction as template
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, Pause, Scripted, says
from wakeful.tools.tool import Tool
from wakeful.turn.agent import DEFAULT_LIMITS, Agent
from wakeful.turns.turns import Turn
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.compacting import CompactionRules, MemoryFlush
from wakeful.vocabulary.entry import CompactionBody
from wakeful.vocabulary.message import ToolCall, Usage

RULES = CompactionRules(
    reserve_tokens=200,
    reserve_tokens_floor=0,
    keep_recent_tokens=50,
    memory_flush=MemoryFlush(enabled=False),
)
WINDOW = 1_000
LONG = "long " * 250  # 312 tokens


class Small(Scripted):
    """A scripted model with a small window, which sums up when it is asked to.

    It counts no tokens unless its script does: sizes are the runtime's own estimates.
    """

    context_window = WINDOW

    def __init__(
        self, lines: Sequence[Line | Pause], summaries: Sequence[Line | Pause] = ()
    ) -> None:
        super().__init__([])
        self._replies: Iterator[Line | Pause] = iter(lines)
        self._summaries: Iterator[Line | Pause] = iter(summaries)
        self.summed_up: list[str] = []

    def _next(self) -> Line | Pause:
        request = self.requests[-1]
        if request.purpose == "reply":
            line = next(self._replies, "the script has no more lines")
            return uncounted(line) if isinstance(line, str) else line
        (asked,) = request.messages
        self.summed_up.append(asked.text)
        return next(self._summaries, summary(f"no. {len(self.summed_up)}"))

    def replies_asked(self) -> list[Request]:
        return [request for request in self.requests if request.purpose == "reply"]


def summary(mark: str, *, is_split: bool = True) -> str:
    return "\n".join(f"{heading}\n{mark}" for heading in template.headings(is_split=is_split))


def uncounted(text: str, *calls: ToolCall) -> Reply:
    return replace(says(text, *calls), usage=Usage())


def counted(text: str, tokens: int, *calls: ToolCall) -> Reply:
    return replace(says(text, *calls), usage=Usage(input=tokens, output=1))


def runtime_with(
    model: Small,
    *,
    rules: CompactionRules = RULES,
    tools: Sequence[Tool] = (),
    workspace: Path | None = None,
    clock: ManualClock | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Runtime:
    agent = Agent(model=model, compaction=rules, tools=tools, workspace=workspace, limits=limits)
    return Runtime(agents=[agent], clock=clock)


async def said(runtime: Runtime, text: str = "hello") -> Turn:
    turn = await runtime.wait(await runtime.send(text))
    assert turn is not None
    return turn


async def compactions(runtime: Runtime) -> list[CompactionBody]:
    bodies = [entry.content() for entry in await runtime.entries()]
    return [body for body in bodies if isinstance(body, CompactionBody)]
