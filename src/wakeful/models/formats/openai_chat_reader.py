"""OpenAI's Chat Completions: how the events of an answer are read."""

from typing import Any, cast

from msgspec import Struct

from wakeful.models.formats.format import (
    Finish,
    RefusedMidway,
    WireAnswer,
    arguments_of,
    call_id_of,
    cost_of,
    count_of,
    decoder,
    keepsake_of,
    model_of,
)
from wakeful.models.formats.tags import Tags
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import Block, Text, Thinking, ToolCall, Usage

DONE = b"[DONE]"
CONTENT = "content"  # thoughts that came between tags in the words
DETAILS = "reasoning_details"  # of a router: thoughts with what proves them to the model behind it
FIELDS = (  # where thoughts come from
    *(CONTENT, "reasoning", "reasoning_content", "reasoning_text", DETAILS),
)

LEAST_RUN = 256  # characters that even an empty one is worth

_SHOWN = ("text", "summary")
_GROWING = (*_SHOWN, "data")

_FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "content_filter"}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None  # text; some send the object itself


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Delta(Struct):
    content: Any = None  # text; with some a list of parts
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    error: Any = None


class _Details(Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None


class _Counts(Struct):
    """Numbers, of most; what else they are does not make an answer unreadable."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: Any = None
    cost: Any = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    model: Any = None
    usage: _Counts | None = None
    error: Any = None


_decode = decoder(_Chunk)


class _Run:
    """Words, thoughts or one call, while they are being written."""

    def __init__(self, kind: str, call_id: str | None = None) -> None:
        self.kind = kind  # "text", "call", or the field of thoughts
        self.pieces: list[str] = []
        self.id = call_id
        self.names: list[str] = []
        self.arguments: dict[str, Any] | None = None
        self.extra: Any = None
        self.detail: dict[str, Any] = {}
        self.growing: dict[str, list[str]] = {}  # fields of the detail that come in pieces

    def block(self) -> Block:
        text = "".join(self.pieces)
        if self.kind == "text":
            return Text(text=text)
        if self.kind == DETAILS:
            grown = {name: "".join(pieces) for name, pieces in self.growing.items()}
            detail = {**self.detail, **grown}
            return Thinking(text=text, keepsake=keepsake_of(self.kind, detail=detail))
        if self.kind != "call":
            return Thinking(text=text, keepsake=keepsake_of(self.kind))
        name = "".join(self.names)
        given = arguments_of(name, text) if self.arguments is None else self.arguments
        return ToolCall(
            id=call_id_of(self.id),
            name=name,
            arguments=given,
            keepsake=keepsake_of(None, extra_content=self.extra),
        )


class ChatReader:
    """Reads one answer."""

    def __init__(self) -> None:
        self.size = 0
        self._runs: list[_Run] = []
        self._calls: dict[int, _Run] = {}
        self._details: dict[tuple[str, int], _Run] = {}
        self._tags = Tags()
        self._model = ""
        self._reason: str | None = None
        self._is_refused = False
        self.is_over = False
        self._counts = _Counts()

    def take(self, data: bytes) -> str:
        if data == DONE:  # which some gateways say twice
            self.is_over = True
            return ""
        if self.is_over:
            raise Garbled("the answer went on after its end")
        chunk = _decode(data)
        if chunk.error is not None:
            raise RefusedMidway(chunk.error)
        self._model = self._model or model_of(chunk.model)
        self._counts = chunk.usage or self._counts
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        if choice.error is not None:
            raise RefusedMidway(choice.error)
        shown = "" if choice.delta is None else self._grow(choice.delta)
        if choice.finish_reason:
            if self._reason is None:
                shown += self._show(self._tags.end())
            self._reason = choice.finish_reason
        return shown

    @property
    def finish(self) -> Finish | None:
        if self._reason is None:
            return None
        return "content_filter" if self._is_refused else _FINISHES.get(self._reason, "stop")

    def answer(self) -> WireAnswer:
        counts = self._counts
        details = counts.prompt_tokens_details or _Details()
        return WireAnswer(
            content=tuple(run.block() for run in self._runs),
            usage=Usage(
                input=count_of(counts.prompt_tokens),
                output=count_of(counts.completion_tokens),
                cache_read=count_of(details.cached_tokens, counts.prompt_cache_hit_tokens),
                cache_write=count_of(details.cache_write_tokens),
            ),
            model=self._model,
            cost=cost_of(counts.cost),
        )

    def _grow(self, delta: _Delta) -> str:
        shown = ""
        if delta.reasoning_details:  # the same words come in the other fields, too
            for at, detail in enumerate(delta.reasoning_details):
                self._detail(detail, at)
        elif delta.reasoning or delta.reasoning_content:
            field = "reasoning" if delta.reasoning else "reasoning_content"
            self._add(field, delta.reasoning or delta.reasoning_content or "")
        if delta.content:
            for text, is_thought in _parts(delta.content):
                if is_thought:
                    self._add(CONTENT, text)
                else:
                    shown += self._show(self._tags.split(text))
        if delta.refusal:
            self._is_refused = True
        if delta.tool_calls:
            shown += self._show(self._tags.end())
            for call in delta.tool_calls:
                self._call(call)
        return shown

    def _show(self, pieces: list[tuple[str, bool]]) -> str:
        """Add words and thoughts that were told apart; return the words."""
        shown = ""
        for text, is_thought in pieces:
            self._add(CONTENT if is_thought else "text", text)
            shown += "" if is_thought else text
        return shown

    def _add(self, kind: str, text: str) -> None:
        self._refuse_more()
        self.size += len(text)
        if not self._runs or self._runs[-1].kind != kind:
            self._begin(_Run(kind))
        self._runs[-1].pieces.append(text)

    def _detail(self, delta: dict[str, Any], at: int) -> None:
        """Add a piece of a detail, which is known by its number and its type."""
        self._refuse_more()
        kind, number = str(delta.get("type")), delta.get("index")
        key = kind, number if isinstance(number, int) else at
        run = self._details.get(key)
        if run is None:
            run = self._details[key] = self._begin(_Run(DETAILS))
        for name, value in delta.items():
            if value is None:
                continue
            if name in _GROWING and isinstance(value, str):
                run.growing.setdefault(name, []).append(value)
                self.size += len(value)
                run.pieces += [value] if name in _SHOWN else []
            else:
                self.size += 0 if name in run.detail else len(name) + len(str(value))
                run.detail[name] = value

    def _call(self, delta: _CallDelta) -> None:
        self._refuse_more()
        run = self._run_of(delta)
        function = delta.function
        if function is None:
            return
        if function.name:
            run.names.append(function.name)
            self.size += len(function.name)
        if delta.extra_content:
            run.extra = delta.extra_content
            self.size += len(str(run.extra))
        if isinstance(function.arguments, str):
            run.pieces.append(function.arguments)
            self.size += len(function.arguments)
        elif isinstance(function.arguments, dict):
            run.arguments = cast("dict[str, Any]", function.arguments)
            self.size += len(str(run.arguments))

    def _run_of(self, delta: _CallDelta) -> _Run:
        """Return the call that a piece belongs to; some number none of them, or all the same."""
        index = len(self._calls) - 1 if delta.index is None else delta.index
        run = self._calls.get(index)
        if delta.index is None and delta.id and (run is None or run.id != delta.id):
            index, run = len(self._calls), None
        if run is not None and delta.id and run.id and delta.id != run.id:
            index, run = max(self._calls) + 1, None
        if run is None:
            run = self._calls[index] = self._begin(_Run("call", delta.id))
            self.size += len(delta.id or "")
        run.id = run.id or delta.id
        return run

    def _begin(self, run: _Run) -> _Run:
        self.size += LEAST_RUN
        self._runs.append(run)
        return run

    def _refuse_more(self) -> None:
        if self._reason is not None:
            raise Garbled("the answer went on after its end")


def _parts(content: Any) -> list[tuple[str, bool]]:
    """Return the texts of a delta, and whether each is a thought."""
    if isinstance(content, str):
        return [(content, False)]
    found: list[tuple[str, bool]] = []
    for part in cast("list[Any]", content) if isinstance(content, list) else []:
        match part:
            case {"type": "text", "text": str(text)}:
                found.append((text, False))
            case {"type": "thinking", "thinking": inner}:
                found += [(text, True) for text, _ in _parts(inner)]
            case _:
                pass
    return found
