"""OpenAI's Chat Completions, as OpenAI and its many likenesses speak it: what is sent."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from msgspec import Raw
from msgspec.structs import replace

from wakeful.models.call_ids import legal_name, short_id
from wakeful.models.families import chat_levels, gpt
from wakeful.models.formats.alternation import USER_FIRST, alternating
from wakeful.models.formats.dialects import Dialect
from wakeful.models.formats.format import (
    NO_TEXT,
    AnswerReader,
    Remembered,
    arguments_text,
    as_failed,
    data_url,
    encode,
    file_name,
    kept_detail,
    kept_id,
)
from wakeful.models.formats.openai_chat_reader import CONTENT, DETAILS, FIELDS, ChatReader
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

_CACHED = {"type": "ephemeral", "ttl": "5m"}
_NEWER_LIMIT = "max_completion_tokens"
_REFUSED = (
    r"(?:unsupported|not (?:supported|permitted|allowed)|unknown|unrecogni[sz]ed|unexpected"
    r"|extra|additional)"
)
_FIELD = r"\breasoning(?:_content|_text|_details)?\b"
_NO_SYSTEM = re.compile(
    r"system role (?:is )?not supported|only user and assistant roles are supported", re.IGNORECASE
)
_THOUGHTS_REFUSED = re.compile(
    rf"messages?\b.{{0,80}}{_FIELD}.{{0,60}}{_REFUSED}|{_REFUSED}.{{0,60}}messages?\b.{{0,80}}{_FIELD}",
    re.IGNORECASE | re.DOTALL,
)
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")


class OpenAIChat:
    """How a model is spoken to over Chat Completions."""

    path = "/chat/completions"

    def __init__(self, model: str, provider: str, dialect: Dialect) -> None:
        self._model = model
        self._provider = provider
        self._dialect = dialect
        self._is_marked = provider == "openrouter" and model.startswith("anthropic/")
        # Takes its thoughts back as words, and drops even those unless it is told to keep them.
        self._drops_thoughts = False  # they were refused
        self._limit = dialect.limit
        self._alternates = False  # people and the model take turns, as a template wants it
        self._has_no_system = False  # the template knows no system message
        self._is_aloud = dialect.thinking == "kept" and model.startswith("zai")
        self._has_breakpoints = provider == "openai" and gpt(model).has_breakpoints
        self._tools = Remembered()
        self._messages = Remembered()
        self._thoughtless = Remembered()  # the same, with an empty field where thoughts are missing
        self.levels: frozenset[ThinkingLevel] = chat_levels(provider, model)

    def headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, level: ThinkingLevel | None) -> bytes:
        head: dict[str, Any] = {"model": self._model, "stream": True}
        if self._dialect.has_stream_options:
            head["stream_options"] = {"include_usage": True}
        if request.max_tokens is not None:
            head[self._limit] = request.max_tokens
        if self._has_breakpoints:
            head["prompt_cache_options"] = {"mode": "implicit", "ttl": "30m"}
        head.update(self._thinking(level))
        if request.tools:
            tools = self._tools.each(request.tools, self._tool)
            head["tools"] = Raw(b"[%b]" % b",".join(tools))
            head["tool_choice"] = "auto"
        return encode(head)[:-1] + b',"messages":[%b]}' % self._said(request, level)

    def mended_body(self, request: Request, level: ThinkingLevel | None, said: str) -> bytes | None:
        """Once thoughts were refused in the very field they came in, leave them out from then on;
        call the longest answer as somebody wants it called, and take turns as a template wants it.
        """
        if _THOUGHTS_REFUSED.search(said) and not self._drops_thoughts:
            self._drops_thoughts, self._messages = True, Remembered()
        elif _NEWER_LIMIT in said and self._limit != _NEWER_LIMIT:
            self._limit = _NEWER_LIMIT
        elif USER_FIRST.search(said) and not self._alternates:
            self._alternates = True
        elif _NO_SYSTEM.search(said) and not self._has_no_system:
            self._alternates = self._has_no_system = True
        else:
            return None
        return self.body(request, level)

    def reader(self) -> AnswerReader:
        return ChatReader()

    def _said(self, request: Request, level: ThinkingLevel | None) -> bytes:
        request = self._in_turns(request)
        contents = request.contents
        said = self._messages.each(request.messages, lambda one: self._message(one, contents))
        if self._dialect.thoughts_in:
            said = self._with_thoughts(request, level, said)
        if self._is_marked and request.messages:
            said[-1] = self._marked(request.messages[-1], contents) or said[-1]
        if contents:
            said = _with_results(request, said)
        if request.system:
            said.insert(0, encode({"role": self._system_role, "content": self._system(request)}))
        return b",".join(filter(None, said))

    def _in_turns(self, request: Request) -> Request:
        """Return a request whose messages take turns, if they have to."""
        if self._has_no_system and request.system:
            instructions = UserMessage(text=request.system)
            request = replace(request, system="", messages=(instructions, *request.messages))
        if self._alternates:
            request = replace(request, messages=alternating(request.messages))
        return request

    def _with_thoughts(
        self, request: Request, level: ThinkingLevel | None, said: list[bytes]
    ) -> list[bytes]:
        """Return the messages, none of whose calls lacks the field of thoughts.

        Such a provider refuses a call without it, be it that another model made the call; and a
        turn that is refused once is refused for ever. Before the first thought nothing changes.
        """
        thinks = bool(self.levels) and level is not ThinkingLevel.OFF
        is_due = self._dialect.always_thoughts and thinks
        found: list[bytes] = []
        for message, encoded in zip(request.messages, said, strict=True):
            if isinstance(message, AssistantMessage):
                has_thoughts = any(self._is_own_thought(one, message) for one in message.content)
                is_due = is_due or has_thoughts
                if is_due and not has_thoughts and message.tool_calls:
                    (encoded,) = self._thoughtless.each([message], self._without_thoughts)
            found.append(encoded)
        return found

    def _without_thoughts(self, message: AssistantMessage) -> bytes:
        return encode({**(self._answer(message) or {}), self._dialect.thoughts_in: ""})

    def _is_own_thought(self, block: Block, message: AssistantMessage) -> TypeGuard[Thinking]:
        return (
            isinstance(block, Thinking)
            and not self._drops_thoughts
            and message.provider == self._provider
            and kept_id(block) in FIELDS
        )

    @property
    def _system_role(self) -> str:
        return "user" if self._model.startswith("o1-mini") else "system"

    def _system(self, request: Request) -> Any:
        if self._is_marked:
            return [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        if self._has_breakpoints:
            mark = {"mode": "explicit"}
            return [{"type": "text", "text": request.system, "prompt_cache_breakpoint": mark}]
        return request.system

    def _marked(self, message: Message, contents: Mapping[str, str]) -> bytes:
        """Return the newest message with a mark: up to here it will be read again."""
        if isinstance(message, AssistantMessage):
            return b""
        fields = self._message_of(message, contents)
        content: Any = fields["content"]
        parts: list[Any] = [{"type": "text", "text": content}]
        if not isinstance(content, str):
            parts = content
        parts[-1] = {**parts[-1], "cache_control": _CACHED}
        return encode({**fields, "content": parts})

    def _message(self, message: Message, contents: Mapping[str, str]) -> bytes:
        """Return one message; nothing of an answer of which nothing is left."""
        if isinstance(message, AssistantMessage):
            answer = self._answer(message)
            return b"" if answer is None else encode(answer)
        return encode(self._message_of(message, contents))

    def _message_of(
        self, message: UserMessage | ToolMessage, contents: Mapping[str, str]
    ) -> dict[str, Any]:
        text = message.text if message.text.strip() else NO_TEXT
        if isinstance(message, UserMessage):
            parts = [{"type": "text", "text": text}, *_files(message, contents)]
            return {"role": "user", "content": parts if message.attachments else text}
        lines = [as_failed(text) if message.is_error else text]
        lines += [f"See file {one.id}." for one in message.attachments]
        call_id = self._id(message.call_id)
        return {"role": "tool", "tool_call_id": call_id, "content": "\n".join(lines)}

    def _answer(self, message: AssistantMessage) -> dict[str, Any] | None:
        texts = list(self._words(message))
        calls = [self._call(one) for one in message.content if isinstance(one, ToolCall)]
        if not texts and not calls:
            return None
        answer: dict[str, Any] = {"role": "assistant", **self._thoughts(message)}
        answer["content"] = "\n\n".join(texts) if texts else None
        if calls:
            answer["tool_calls"] = calls
        return answer

    def _words(self, message: AssistantMessage) -> Iterator[str]:
        """Yield what was said, with the thoughts that go back as words."""
        for block in message.content:
            if isinstance(block, Text) and block.text.strip():
                yield block.text
            elif self._is_own_thought(block, message) and self._is_word(block):
                yield f"<think>\n{block.text}\n</think>"

    def _thoughts(self, message: AssistantMessage) -> dict[str, Any]:
        """Return the thoughts that go back in the field they came in."""
        found: dict[str, list[str]] = {}
        details: list[Any] = []
        for block in message.content:
            if not self._is_own_thought(block, message) or self._is_word(block):
                continue
            if kept_id(block) == DETAILS:
                details.append(kept_detail(block, "detail"))
            else:
                found.setdefault(kept_id(block) or "", []).append(block.text)
        fields: dict[str, Any] = {field: "\n\n".join(said) for field, said in found.items()}
        return {**fields, DETAILS: details} if details else fields

    def _is_word(self, thought: Thinking) -> bool:
        return kept_id(thought) == CONTENT or self._is_aloud

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": legal_name(call.name), "arguments": arguments_text(call)}
        fields: dict[str, Any] = {
            "id": self._id(call.id),
            "type": "function",
            "function": function,
        }
        extra = kept_detail(call, "extra_content")
        return {**fields, "extra_content": extra} if extra else fields

    def _id(self, call_id: str) -> str:
        if not self._dialect.has_short_ids or _SHORT_ID.fullmatch(call_id):
            return short_id(call_id)
        return hashlib.sha256(call_id.encode()).hexdigest()[:9]

    def _tool(self, spec: ToolSpec) -> bytes:
        function: dict[str, Any] = {
            "name": spec.name,
            "description": spec.description,
            "parameters": closed(spec.parameters),
        }
        if self._dialect.is_strict and is_strict(spec.parameters):
            function["strict"] = True
        return encode({"type": "function", "function": function})

    def _thinking(self, level: ThinkingLevel | None) -> dict[str, Any]:
        is_off = level is ThinkingLevel.OFF
        if self._dialect.thinking == "switched":
            fields = {} if level is None else {"type": "disabled" if is_off else "enabled"}
            return {"thinking": {**fields, "clear_thinking": False}} if self.levels else {}
        if self._is_aloud:  # it thinks unless it must not
            kept: dict[str, Any] = {"clear_thinking": False}
            return {**kept, "reasoning_effort": "none"} if is_off else kept
        if level is None:
            return {}
        effort = "none" if is_off else level.value
        if self._dialect.thinking == "default" and ThinkingLevel.OFF in self.levels:
            effort = "none" if is_off else "default"  # such a model knows no grades
        if self._dialect.thinking == "routed":
            effort = "high" if level is ThinkingLevel.XHIGH else effort
            return {"reasoning": {"effort": effort} | ({} if is_off else {"enabled": True})}
        if self._dialect.thinking == "disabled" and is_off:
            return {"thinking": {"type": "disabled"}}
        return {"reasoning_effort": effort}


def _files(message: UserMessage | ToolMessage, contents: Mapping[str, str]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for one in message.attachments:
        url = data_url(one, contents)
        if one.media_type == DOCUMENT:
            file = {"filename": file_name(one), "file_data": url}
            parts.append({"type": "file", "file": file})
        else:
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def _with_results(request: Request, said: list[bytes]) -> list[bytes]:
    """Return the messages with the files of results right behind them, as if a person showed them.

    A result itself is a text, and nothing may stand between results of one reply.
    """
    found: list[bytes] = []
    shown: list[dict[str, Any]] = []
    for message, encoded in zip(request.messages, said, strict=True):
        if shown and not isinstance(message, ToolMessage):
            found.append(encode({"role": "user", "content": shown}))
            shown = []
        found.append(encoded)
        if isinstance(message, ToolMessage):
            for one, part in zip(
                message.attachments, _files(message, request.contents), strict=True
            ):
                shown += [{"type": "text", "text": f"File {one.id}, from a tool:"}, part]
    return [*found, encode({"role": "user", "content": shown})] if shown else found
