"""Messages: what a model reads and writes, and nothing else."""

from typing import Any, Literal

import msgspec

from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment

# What a provider wants back as it came, with its block: nobody here reads it.
Keepsake = dict[str, Any] | None


class Text(Record, tag="text", omit_defaults=True, gc=False):
    text: str
    keepsake: Keepsake = None


class Thinking(Record, tag="thinking", omit_defaults=True, gc=False):
    text: str
    signature: str | None = None
    keepsake: Keepsake = None


class ToolCall(Record, tag="tool_call", omit_defaults=True, gc=False):
    id: str
    name: str
    arguments: dict[str, Any]
    keepsake: Keepsake = None


Block = Text | Thinking | ToolCall
# A closure is said by the runtime: a scheduled turn that has nothing to say ends visibly, too.
StopReason = Literal["stop", "length", "tool_use", "aborted", "error", "limit", "closure"]


class Usage(Record, gc=False):
    """What one reply cost, in tokens and money."""

    input: int = 0  # everything read, whether or not it came from a cache
    output: int = 0
    cache_read: int = 0  # part of the input
    cache_write: int = 0  # part of the input
    cost: float | None = 0.0  # dollars; None: nobody knows the price


class UserMessage(Record, tag="user", omit_defaults=True, gc=False):
    text: str
    attachments: tuple[KeptAttachment, ...] = ()  # shown after the text


class AssistantMessage(Record, tag="assistant", gc=False):
    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    failures: tuple[str, ...] = ()  # of models that were asked before the one that answered

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def thought(self) -> str:
        return "\n\n".join(block.text for block in self.content if isinstance(block, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolMessage(Record, tag="tool", omit_defaults=True, gc=False):
    """The result of one tool call; a failure is a result too."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    attachments: tuple[KeptAttachment, ...] = ()  # shown after the text


Message = UserMessage | AssistantMessage | ToolMessage

encode_message = msgspec.json.Encoder().encode
