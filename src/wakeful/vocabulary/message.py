"""Messages: what a model reads and writes, and nothing else."""

from typing import Any, Literal

import msgspec

from wakeful.vocabulary.record import Record


class Text(Record, tag="text"):
    text: str


class Thinking(Record, tag="thinking"):
    text: str
    signature: str | None = None


class ToolCall(Record, tag="tool_call"):
    id: str
    name: str
    arguments: dict[str, Any]


Block = Text | Thinking | ToolCall
StopReason = Literal["stop", "length", "tool_use", "aborted", "error", "limit"]


class Usage(Record):
    """What one reply cost, in tokens and money."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0


class UserMessage(Record, tag="user"):
    text: str


class AssistantMessage(Record, tag="assistant"):
    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolMessage(Record, tag="tool"):
    """The result of one tool call; a failure is a result too."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


Message = UserMessage | AssistantMessage | ToolMessage

encode_message = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Message).decode
