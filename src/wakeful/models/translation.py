"""Our messages in the words of pydantic-ai, and its answers in ours.

The same messages always give the same words: a provider's cache lives on an unchanged beginning.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from wakeful.models.call_ids import legal_name
from wakeful.models.model import Request, ToolSpec
from wakeful.models.thoughts import Takes
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    Keepsake,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

NO_TEXT = "[no text]"  # providers refuse a message that says nothing

_THEN = datetime.fromtimestamp(0, UTC)  # what was said when is not told to the model
_STOP_REASONS: dict[str | None, StopReason] = {"length": "length", "tool_call": "tool_use"}


def parameters(request: Request) -> ModelRequestParameters:
    """Return the tools of a request."""
    return ModelRequestParameters(function_tools=[_tool(spec) for spec in request.tools])


def history(request: Request, takes: Takes) -> list[ModelMessage]:
    """Return the messages of a request; what people and tools say in a row goes out together.

    Thoughts that the model does not take back are left out.
    """
    said: list[ModelMessage] = []
    heard: list[ModelRequestPart] = []
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            if parts := _answer(message, takes):
                _close(said, heard, request.system)
                said.append(_response(message, parts))
        else:
            heard.append(_heard(message, request.contents))
    _close(said, heard, request.system)
    return said


def content(response: ModelResponse) -> tuple[Block, ...]:
    """Return what a model answered; parts that are no words of ours are left out."""
    blocks = (_block(part) for part in response.parts)
    return tuple(block for block in blocks if block is not None)


def has_ended(response: ModelResponse) -> bool:
    """Tell whether the model said that it is done, be it for a reason that nobody here knows."""
    said = (response.provider_details or {}).get("finish_reason")
    return response.finish_reason is not None or bool(said)


def is_usable(response: ModelResponse) -> bool:
    """Tell whether what a model said before it was cut off is of any use."""
    try:
        blocks = content(response)
    except Garbled:
        return False
    return any(not isinstance(block, Thinking) for block in blocks)


def stop_reason(response: ModelResponse) -> StopReason:
    """Return why a model stopped."""
    if any(isinstance(part, ToolCallPart) for part in response.parts):
        return "tool_use"
    return _STOP_REASONS.get(response.finish_reason, "stop")


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name, description=spec.description, parameters_json_schema=spec.parameters
    )


def _close(said: list[ModelMessage], heard: list[ModelRequestPart], system: str) -> None:
    if heard:
        parts: Sequence[ModelRequestPart] = tuple(heard)
        said.append(ModelRequest(parts=parts, instructions=system or None))
        heard.clear()


def _heard(message: UserMessage | ToolMessage, contents: Mapping[str, str]) -> ModelRequestPart:
    said = message.text or NO_TEXT
    content = [said, *_files(message, contents)] if message.attachments else said
    if isinstance(message, UserMessage):
        return UserPromptPart(content=content, timestamp=_THEN)
    return ToolReturnPart(
        tool_name=legal_name(message.name),
        content=content,
        tool_call_id=message.call_id,
        timestamp=_THEN,
        outcome="failed" if message.is_error else "success",
    )


def _files(message: UserMessage | ToolMessage, contents: Mapping[str, str]) -> list[BinaryContent]:
    """Return what goes along with a message; its identifier is the one that the text names."""
    return [
        BinaryContent(
            data=b64decode(contents[one.hash]), media_type=one.media_type, identifier=one.id
        )
        for one in message.attachments
    ]


def _answer(message: AssistantMessage, takes: Takes) -> list[ModelResponsePart]:
    blocks = (
        block
        for block in message.content
        if not isinstance(block, Thinking) or takes(message, block)
    )
    parts = (_part(block, message.provider or None) for block in blocks)
    return [part for part in parts if part is not None]


def _response(message: AssistantMessage, parts: Iterable[ModelResponsePart]) -> ModelResponse:
    return ModelResponse(
        parts=tuple(parts),
        model_name=message.model or None,
        timestamp=_THEN,
        provider_name=message.provider or None,
    )


def _part(block: Block, provider: str | None) -> ModelResponsePart | None:
    kept: dict[str, Any] = block.keepsake or {}
    part_id, details = kept.get("id"), kept.get("details")
    match block:
        case Text(text=text):
            if not text.strip():  # providers refuse it
                return None
            return TextPart(
                content=text, id=part_id, provider_name=provider, provider_details=details
            )
        case Thinking(text=text, signature=signature):
            return ThinkingPart(
                content=text,
                id=part_id,
                signature=signature,
                provider_name=provider,
                provider_details=details,
            )
        case ToolCall(id=call_id, name=name, arguments=arguments):
            return ToolCallPart(
                tool_name=legal_name(name),
                args=arguments,
                tool_call_id=call_id,
                id=part_id,
                provider_name=provider,
                provider_details=details,
            )


def _block(part: ModelResponsePart) -> Block | None:
    match part:
        case TextPart():
            return Text(text=part.content, keepsake=_keepsake(part))
        case ThinkingPart():
            return Thinking(
                text=part.content, signature=part.signature or None, keepsake=_keepsake(part)
            )
        case ToolCallPart():
            return ToolCall(
                id=part.tool_call_id,
                name=part.tool_name,
                arguments=_arguments(part),
                keepsake=_keepsake(part),
            )
        case _:
            return None


def _keepsake(part: TextPart | ThinkingPart | ToolCallPart) -> Keepsake:
    kept: dict[str, Any] = {}
    if part.id is not None:
        kept["id"] = part.id
    if part.provider_details:
        kept["details"] = part.provider_details
    return kept or None


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call, or raise Garbled if they are no JSON object."""
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError) as error:
        raise Garbled(f"the model called {call.tool_name[:80]!r} with broken arguments") from error
