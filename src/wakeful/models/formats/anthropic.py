"""Anthropic's Messages: what is sent."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from wakeful.models.call_ids import with_legal_ids
from wakeful.models.families import Claude, claude
from wakeful.models.formats.alternation import USER_FIRST, alternating
from wakeful.models.formats.anthropic_reader import REDACTED, AnthropicReader
from wakeful.models.formats.format import (
    NO_TEXT,
    AnswerReader,
    Disowned,
    Remembered,
    encode,
    kept_id,
)
from wakeful.models.formats.schemas import cleaned
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

MAKER = "anthropic"
VERSION = "2026-10-21"  # of the interface, as its maker speaks it
USUAL_VERSION = "2023-06-01"  # as everybody else has spoken it for years
BINDING = "thinking-binding-controls-2026-08-01"  # the beta in which thoughts may be dropped
STALE_THOUGHT = "The block is bound to a different conversation"
_OWN_REFUSED = re.compile(
    r"invalid `(?:signature|data)` in `|`(?:redacted_)?thinking` blocks .{0,60}cannot be modified",
    re.IGNORECASE,
)
_MISSED = "must start with a thinking block"
LEAST_BUDGET = 1024  # tokens to think, where a model is given a number
ROOM_TO_ANSWER = 4096

_CACHED = {"type": "ephemeral", "ttl": "5m"}
_BUDGETS = {"low": 2048, "medium": 10_000, "high": 16_384, "xhigh": 32_768}


class AnthropicMessages:
    """How one of Anthropic's models is spoken to."""

    path = "/v1/messages"

    def __init__(self, model: str, provider: str) -> None:
        self._model = model
        self._provider = provider
        self._family: Claude = claude(model)
        self._drops_stale = False
        self._alternates = False
        self._disowned = Disowned()
        self._tools = Remembered()
        self._messages = Remembered()
        self.levels = self._family.levels

    def headers(self, key: str) -> Mapping[str, str]:
        said = {"anthropic-version": VERSION if self._provider == MAKER else USUAL_VERSION}
        if key:
            said["x-api-key"] = key
        if self._drops_stale:
            said["anthropic-beta"] = BINDING
        return said

    def body(self, request: Request, level: ThinkingLevel | None) -> bytes:
        thinking, effort = self._thinking(level, request.max_tokens)
        head: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens or self._most_output(thinking),
            "stream": True,
            "cache_control": _CACHED,
        }
        if thinking is not None:
            head["thinking"] = thinking
        if effort is not None:
            head["output_config"] = {"effort": effort}
        if request.tools:
            tools = self._tools.each(request.tools[:-1], _tool)
            last = _tool(request.tools[-1], cached=True)
            head["tools"] = Raw(b"[%b]" % b",".join([*tools, last]))
            head["tool_choice"] = {"type": "auto"}
        if request.system:
            head["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        return encode(head)[:-1] + b',"messages":[%b]}' % self._said(request)

    def mended_body(self, request: Request, level: ThinkingLevel | None, said: str) -> bytes | None:
        """Once thoughts were refused since what came before them has changed, have them dropped.

        Thoughts that it does not know as its own are left out; and where it misses the thought
        before a call, which somebody else has made, it is asked not to think.
        """
        if USER_FIRST.search(said) and not self._alternates:
            self._alternates = True
            return self.body(request, level)
        if self._family.binds_thoughts and STALE_THOUGHT in said and not self._drops_stale:
            self._drops_stale = True
            return self.body(request, level)
        if _OWN_REFUSED.search(said) and self._disowned.add(self._seals(request)):
            self._messages = Remembered()
            # The others would miss a thought before the last calls.
            return self.body(request, level if self._family.is_adaptive else None)
        return self.body(request, None) if level is not None and _MISSED in said else None

    def _seals(self, request: Request) -> list[str]:
        own = (one for one in request.messages if isinstance(one, AssistantMessage))
        return [
            block.signature
            for message in own
            if message.provider == self._provider
            for block in message.content
            if isinstance(block, Thinking) and block.signature is not None
        ]

    def reader(self) -> AnswerReader:
        return AnthropicReader()

    def _said(self, request: Request) -> bytes:
        """Return the messages; what people and tools say in a row goes out together."""
        contents, messages = request.contents, with_legal_ids(request.messages)
        messages = alternating(messages) if self._alternates else messages
        blocks = self._messages.each(messages, lambda message: self._blocks(message, contents))
        said: list[bytes] = []
        heard: list[bytes] = []
        for message, encoded in zip(messages, blocks, strict=True):
            if not isinstance(message, AssistantMessage):
                heard.append(encoded)
            elif encoded:  # an answer of which nothing is left goes unsaid
                if heard:
                    said.append(b'{"role":"user","content":[%b]}' % b",".join(heard))
                    heard.clear()
                said.append(b'{"role":"assistant","content":[%b]}' % encoded)
        if heard:
            said.append(b'{"role":"user","content":[%b]}' % b",".join(heard))
        return b",".join(said)

    def _blocks(self, message: Message, contents: Mapping[str, str]) -> bytes:
        """Return the blocks of one message."""
        if isinstance(message, AssistantMessage):
            is_own = message.provider == self._provider
            blocks = [
                None if _is_sealed(block, self._disowned) else _block(block, is_own)
                for block in message.content
            ]
        elif isinstance(message, ToolMessage):
            blocks = [
                {
                    "tool_use_id": message.call_id,
                    "type": "tool_result",
                    "content": _blocks_of(message, contents),
                    "is_error": message.is_error,
                }
            ]
        else:
            blocks = _blocks_of(message, contents)
        return encode([block for block in blocks if block is not None])[1:-1]

    def _thinking(
        self, level: ThinkingLevel | None, most: int | None
    ) -> tuple[dict[str, Any] | None, str | None]:
        """Return how the model is told to think, and with how much effort."""
        thinking, effort = self._asked_thinking(level, most)
        if self._drops_stale and (thinking is None or thinking["type"] == "adaptive"):
            binding = {"prefix_mismatch_behavior": "drop_block"}
            thinking = {"type": "adaptive", **(thinking or {}), "block_binding": binding}
        return thinking, effort

    def _asked_thinking(
        self, level: ThinkingLevel | None, most: int | None
    ) -> tuple[dict[str, Any] | None, str | None]:
        family = self._family
        if level is None:
            return None, None
        if level is ThinkingLevel.OFF:
            if not family.thinks_unasked:
                return None, None
            return {"type": "between_tools" if family.rests_between_tools else "disabled"}, None
        effort = level.value if family.has_effort else None
        if family.is_adaptive:
            return {"type": "adaptive"}, effort
        budget = _BUDGETS[level.value]
        if most is not None:
            budget = min(budget, most - LEAST_BUDGET)
        if budget < LEAST_BUDGET:
            return None, effort
        return {"type": "enabled", "budget_tokens": budget}, effort

    def _most_output(self, thinking: dict[str, Any] | None) -> int:
        budget: int = (thinking or {}).get("budget_tokens", 0)
        return max(self._family.most_output, budget + ROOM_TO_ANSWER if budget else 0)


def _tool(spec: ToolSpec, *, cached: bool = False) -> bytes:
    fields: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": cleaned(spec.parameters),
    }
    return encode({**fields, "cache_control": _CACHED} if cached else fields)


def _blocks_of(message: UserMessage | ToolMessage, contents: Mapping[str, str]) -> list[Any]:
    """Return a text and what goes along with it."""
    text = message.text if message.text.strip() else NO_TEXT
    blocks: list[Any] = [{"text": text, "type": "text"}]
    for one in message.attachments:
        source = {"type": "base64", "media_type": one.media_type, "data": contents[one.hash]}
        kind = "document" if one.media_type == DOCUMENT else "image"
        blocks.append({"type": kind, "source": source})
    return blocks


def _is_sealed(block: Block, disowned: Disowned) -> bool:
    return isinstance(block, Thinking) and (block.signature or "") in disowned


def _block(block: Block, is_own: bool) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            return {"text": text, "type": "text"} if text.strip() else None
        case Thinking(text=text, signature=signature):
            if not is_own or signature is None:  # nobody else's, and none that is not signed
                return None
            if kept_id(block) == REDACTED:
                return {"type": REDACTED, "data": signature}
            return {"thinking": text, "signature": signature, "type": "thinking"}
        case ToolCall():
            return {
                "id": block.id,
                "type": "tool_use",
                "name": block.name,
                "input": block.arguments,
            }
