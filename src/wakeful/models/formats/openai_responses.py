"""OpenAI's Responses: what is sent."""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from msgspec import Raw

from wakeful.models.call_ids import with_legal_ids
from wakeful.models.families import gpt
from wakeful.models.formats.format import (
    NO_TEXT,
    AnswerReader,
    Disowned,
    Remembered,
    arguments_text,
    as_failed,
    data_url,
    encode,
    file_name,
    kept_detail,
    kept_id,
)
from wakeful.models.formats.openai_chat_reader import FIELDS
from wakeful.models.formats.openai_responses_reader import ResponsesReader
from wakeful.models.formats.schemas import closed, is_strict
from wakeful.models.model import Request, ToolSpec
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.media import DOCUMENT
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

# What it had said comes from another account, is not kept any more, or lacks what belonged to it.
_OWN_REFUSED = re.compile(
    r"encrypted.content|item (?:with id )?'\w+'.{0,80}(?:not found|without its required)",
    re.IGNORECASE | re.DOTALL,
)


class OpenAIResponses:
    """How a model is spoken to over Responses."""

    path = "/responses"

    def __init__(self, model: str, provider: str) -> None:
        self._model = model
        self._provider = provider
        self._family = gpt(model)
        self._tools = Remembered()
        self._messages = Remembered()
        self._disowned = Disowned()
        self.levels = self._family.levels

    def headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, level: ThinkingLevel | None) -> bytes:
        head: dict[str, Any] = {"model": self._model, "stream": True}
        if request.max_tokens is not None:
            head["max_output_tokens"] = request.max_tokens
        if self._family.reasons:
            head["include"] = ["reasoning.encrypted_content"]
        if reasoning := self._reasoning(level):
            head["reasoning"] = reasoning
        if request.tools:
            tools = self._tools.each(request.tools, _tool)
            head["tools"] = Raw(b"[%b]" % b",".join(tools))
            head["tool_choice"] = "auto"
        contents, messages = request.contents, with_legal_ids(request.messages)
        encoded = self._messages.each(messages, lambda one: self._items(one, contents))
        items = list(filter(None, encoded))
        if request.system and self._family.has_breakpoints:
            head["prompt_cache_options"] = {"mode": "implicit", "ttl": "30m"}
            items.insert(0, _marked_system(request.system))
        elif request.system:
            head["instructions"] = request.system
        return encode(head)[:-1] + b',"input":[%b]}' % b",".join(items)

    def mended_body(self, request: Request, level: ThinkingLevel | None, said: str) -> bytes | None:
        """Once it refused what it had said itself, tell it the words without what it calls them."""
        if _OWN_REFUSED.search(said) is None:
            return None
        own = (one for one in request.messages if isinstance(one, AssistantMessage))
        if not self._disowned.add(one for message in own for one in self._own_ids(message)):
            return None
        self._messages = Remembered()
        return self.body(request, level)

    def _own_ids(self, message: AssistantMessage) -> list[str]:
        """Return by what names the provider may know an answer: only with its own thoughts."""
        if message.provider != self._provider or not self._family.reasons:
            return []
        return [one for block in message.content if (one := kept_id(block)) is not None]

    def reader(self) -> AnswerReader:
        return ResponsesReader()

    def _reasoning(self, level: ThinkingLevel | None) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if level is not None:
            fields["effort"] = "none" if level is ThinkingLevel.OFF else level.value
        if self._family.has_context:
            fields["context"] = "all_turns"
        return fields

    def _items(self, message: Message, contents: Mapping[str, str]) -> bytes:
        """Return the items of one message."""
        if isinstance(message, AssistantMessage):
            own = self._own_ids(message)
            is_own = bool(own) and not any(one in self._disowned for one in own)
            runs = groupby(message.content, lambda block: (type(block), kept_id(block)))
            items = [item for _, run in runs for item in _answered(list(run), is_own)]
        else:
            fields = _content_of(message, contents)
            if isinstance(message, ToolMessage):
                kind = "function_call_output"
                items = [{"type": kind, "call_id": message.call_id, "output": fields}]
            else:
                items = [{"role": "user", "content": fields}]
        return encode(items)[1:-1]


def _content_of(message: UserMessage | ToolMessage, contents: Mapping[str, str]) -> Any:
    """Return a text, with what goes along with it if there is anything."""
    text = message.text if message.text.strip() else NO_TEXT
    if isinstance(message, ToolMessage) and message.is_error:
        text = as_failed(text)
    if not message.attachments:
        return text
    parts: list[Any] = [{"type": "input_text", "text": text}]
    for one in message.attachments:
        url = data_url(one, contents)
        if one.media_type == DOCUMENT:
            parts.append({"type": "input_file", "file_data": url, "filename": file_name(one)})
        else:
            parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
    return parts


def _marked_system(text: str) -> bytes:
    mark = {"mode": "explicit"}
    block = {"type": "input_text", "text": text, "prompt_cache_breakpoint": mark}
    return encode({"role": "system", "content": [block]})


def _tool(spec: ToolSpec) -> bytes:
    return encode(
        {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": closed(spec.parameters),
            "strict": is_strict(spec.parameters),
        }
    )


def _answered(blocks: list[Block], is_own: bool) -> list[dict[str, Any]]:
    """Return the items of blocks of one kind that came as one, or at least with one name."""
    first, item_id = blocks[0], kept_id(blocks[0]) if is_own else None
    match first:
        case ToolCall():
            return [_called(block, is_own) for block in blocks if isinstance(block, ToolCall)]
        case Thinking():
            thoughts = [block for block in blocks if isinstance(block, Thinking)]
            if item_id is None or item_id in FIELDS:
                return []
            return [_thought(item_id, thoughts)]
        case Text():
            texts = [block.text for block in blocks if isinstance(block, Text)]
            texts = [text for text in texts if text.strip()]
            if item_id is None:
                return [{"role": "assistant", "content": text} for text in texts]
            return [_said(item_id, texts, first)] if texts else []


def _called(call: ToolCall, is_own: bool) -> dict[str, Any]:
    item_id = kept_id(call) if is_own else None
    fields = {
        "type": "function_call",
        "name": call.name,
        "arguments": arguments_text(call),
        "call_id": call.id,
    }
    return {**fields, "id": item_id} if item_id is not None else fields


def _thought(item_id: str, thoughts: list[Thinking]) -> dict[str, Any]:
    sealed = next((one.signature for one in thoughts if one.signature), None)
    summary = [{"type": "summary_text", "text": one.text} for one in thoughts if one.text]
    fields: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary}
    return {**fields, "encrypted_content": sealed} if sealed is not None else fields


def _said(item_id: str, texts: list[str], first: Text) -> dict[str, Any]:
    phase = kept_detail(first, "phase")
    fields: dict[str, Any] = {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []} for text in texts],
    }
    return {**fields, "phase": phase} if phase else fields
