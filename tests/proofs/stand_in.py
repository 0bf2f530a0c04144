"""A stand-in model: does what the plan in a message says, and refuses what real ones refuse."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from tests.proofs.gates import Gates
from tests.proofs.plans import LAST_WORD, Planned, Situation, shown_marks, situation
from wakeful.gate.money import dollars, nano
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import says
from wakeful.models.tariffs import Tariff
from wakeful.prompts.compaction import headings
from wakeful.testing import ledger
from wakeful.testing.checker.marks import digest, digest_of_reply
from wakeful.testing.ledger import Ledger
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import ContextOverflow, Permanent, Transient
from wakeful.vocabulary.message import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    Usage,
    encode_message,
)

WINDOW = 3_000  # tokens: small, so that conversations must be compacted
SLOW_PIECES = 5
PIECE_S = 0.01
LONG_REPLY = 20_000  # characters
RETRY_AFTER_S = 0.01
TAKES = "STAND_IN_TAKES"  # a variable: so many tokens it really takes, fewer than it says

TOKEN = 10_000  # what it takes for each that it writes, in billionths of a dollar
PAID = Tariff(price=Price(output=Rate(base=10.0)), max_output=2_000)

_TOOLS = {"tell": "send_message", "nap": "sleep", "check": "check_inbox"}
NAP_MS = 60_000
_DEATHS = {"die": 1, "die-twice": 2, "poison": 1_000}  # how often a manner ends the process


class StandIn:
    """A model whose answers depend on what it is sent and on nothing else.

    Its ledger has a line before each answer begins and one after it was given; it survives kills,
    so that "only the first time" means the first time ever.
    """

    def __init__(self, lines: Ledger, gates: Gates, clock: Clock) -> None:
        self._lines = lines
        self._gates = gates
        self._clock = clock
        self._takes = int(os.environ.get(TAKES) or 1_000_000)
        self._stands_in = False
        self._asked: Counter[tuple[str, int]] = Counter(
            (line["turn"], line["step"])
            for line in ledger.read(lines.path)
            if line["what"] == "asked"
        )

    def substitute(self) -> "StandIn":
        """Return a model that is asked where this one broke off."""
        other = StandIn(self._lines, self._gates, self._clock)
        other._stands_in, other._asked = True, self._asked
        return other

    @property
    def name(self) -> str:
        return "substitute" if self._stands_in else "stand-in"

    @property
    def tariffs(self) -> Sequence[Tariff]:
        return (PAID,)

    @property
    def context_window(self) -> int:
        return WINDOW

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        if request.purpose == "summary":
            self._note_asked(request, Situation(marks=(), step=LAST_WORD))
            self._refuse_too_long(request)
            yield self._summary(request)
            return
        wanted = situation(request.messages)
        self._note_asked(request, wanted)
        self._refuse_too_long(request)
        problem = unpaired(request.messages)
        if problem is not None:
            self._lines.note("refused", turn=request.turn_id, step=request.step, why=problem)
            raise Permanent(f"400: {problem}")
        usage = _usage(request, request.max_tokens or 1 if "dear" in wanted.step.manners else 1)
        reply = replace(_reply(request, wanted), usage=usage)
        async for piece in self._behave(request, wanted.step.manners):
            yield piece
        if "garbled" in wanted.step.manners and self._is_first(request):
            reply = Reply(content=())
        if "broken" not in wanted.step.manners or not self._is_first(request):
            self._note_answered(request, reply)
            yield reply
        else:
            self._lines.note("charged", turn=request.turn_id, step=request.step, cost=TOKEN)

    def _note_answered(self, request: Request, reply: Reply) -> None:
        """Note an answer, and what it costs, whether or not anybody hears of it."""
        usage = reply.usage
        cost = nano(usage.cost or 0.0)
        self._lines.note(
            "answered",
            turn=request.turn_id,
            step=request.step,
            digest=digest_of_reply(reply),
            usage={"input": usage.input, "output": usage.output, "cost": cost},
            cost=cost,
        )

    def _note_asked(self, request: Request, wanted: Situation) -> None:
        self._asked[request.turn_id, request.step] += 1
        self._lines.note(
            "asked",
            turn=request.turn_id,
            step=request.step,
            marks=wanted.marks,
            # Whoever sums a message up has not worked on it.
            shown=[] if request.purpose == "summary" else shown_marks(request.messages),
            digest=digest(request.messages),
            max_tokens=request.max_tokens,
            stands_in=self._stands_in,
        )

    def _refuse_too_long(self, request: Request) -> None:
        if _tokens(request) > self._takes:
            self._lines.note("overflowed", turn=request.turn_id, step=request.step)
            raise ContextOverflow("400: too long")

    def _summary(self, request: Request) -> Reply:
        text = "\n".join(f"{heading}\nnone" for heading in headings(is_split=True))
        reply = replace(says(text), usage=_usage(request, 7))
        self._note_answered(request, reply)
        return reply

    def _is_first(self, request: Request) -> bool:
        return self._asked[request.turn_id, request.step] == 1

    async def _behave(self, request: Request, manners: Sequence[str]) -> AsyncIterator[Delta]:
        for manner in manners:
            if manner == "slow":
                for number in range(SLOW_PIECES):
                    yield Delta(text=f"{number} ")
                    await self._clock.sleep(PIECE_S)
            elif manner.startswith("gate="):
                yield Delta(text="waiting ")
                await self._gates.wait(manner.removeprefix("gate="))
            elif manner == "deaf" and self._is_first(request):
                await self._gates.stay("deaf")
            elif manner == "transient" and self._is_first(request):
                raise Transient("529: overloaded", retry_after_s=RETRY_AFTER_S)
            elif manner == "cut" and self._is_first(request):
                yield Delta(text="half of ")
                self._lines.note("charged", turn=request.turn_id, step=request.step, cost=TOKEN)
                raise Transient("connection lost")
            elif manner == "refuse":
                raise Permanent("403: no")
            elif self._asked[request.turn_id, request.step] <= _DEATHS.get(manner, 0):
                os.kill(os.getpid(), signal.SIGKILL)


def unpaired(messages: Sequence[Message]) -> str | None:
    """Return what a real provider would refuse: a call without its one result directly after it."""
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.call_id not in open_calls:
                return f"message {at}: the result {message.call_id!r} answers no open call"
            open_calls.remove(message.call_id)
            continue
        if open_calls:
            return f"message {at}: the calls {open_calls!r} have no result"
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.tool_calls]
    return f"the last calls {open_calls!r} have no result" if open_calls else None


def _usage(request: Request, output: int) -> Usage:
    cost = dollars(output * TOKEN)
    return Usage(input=_tokens(request), output=output, cost=cost)


def _tokens(request: Request) -> int:
    """Count as a real model would: everything it is shown."""
    return sum(len(encode_message(message)) for message in request.messages) // 4


def _reply(request: Request, wanted: Situation) -> Reply:
    step = wanted.step
    if step.calls:
        calls = [_call(request, at, planned) for at, planned in enumerate(step.calls)]
        return says(f"step {request.step}", *calls)
    if "silent" in step.manners:
        return says("NO_REPLY")
    text = f"answer to {' '.join(wanted.marks) or 'all'} in {request.turn_id}"
    return says(text.ljust(LONG_REPLY, ".") if "long" in step.manners else text)


def _call(request: Request, at: int, planned: Planned) -> ToolCall:
    name = _TOOLS.get(planned.tool, planned.tool)
    call_id = f"{request.turn_id[-12:]}.{request.step}.{at}"
    if name == "send_message":
        return ToolCall(id=call_id, name=name, arguments={"text": f"told by {call_id}"})
    if name == "sleep":
        return ToolCall(id=call_id, name=name, arguments={"duration_ms": NAP_MS, "reason": "rest"})
    if name == "dare":
        arguments = {"how": planned.how, "which": call_id}
        return ToolCall(id=call_id, name=name, arguments=arguments)
    if name == "check_inbox":
        floor = {"priority_floor": planned.how} if planned.how else {}
        return ToolCall(id=call_id, name=name, arguments=floor)
    return ToolCall(id=call_id, name=name, arguments={"how": planned.how})
