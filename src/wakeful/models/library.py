"""The one adapter to pydantic-ai: asks a provider's model and reads its answer as it comes.

Importing this module takes seconds; nobody does before a model is asked for the first time.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.settings import ModelSettings

from wakeful.models.choosing import Chosen
from wakeful.models.formats.format import count_of, model_of
from wakeful.models.formats.openai_chat_reader import LEAST_RUN
from wakeful.models.model import LONGEST_REPLY, Delta, Piece, Reply, Request
from wakeful.models.prices import is_priced, price_of
from wakeful.models.rehearsal import rehearse
from wakeful.models.sorting import sorted_error, unusable
from wakeful.models.thinking import levels, nearest
from wakeful.models.thoughts import takes_back
from wakeful.models.translation import (
    content,
    has_ended,
    history,
    is_usable,
    parameters,
    stop_reason,
)
from wakeful.models.transport import provider_of, takes_client
from wakeful.models.windows import NOTHING_STATED, tokens_of_request
from wakeful.models.windows import ModelSettings as Stated
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import Garbled, NoAnswer, WakefulError
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.text import clean

SIGN_OF_LIFE = Delta(text="")
ENDLESS = ("snowflake",)  # providers that do not say when an answer is over

log = logging.getLogger(__name__)


class LibraryConnection:
    """One model of a provider, and the connections to it; made in a thread, used on the loop."""

    def __init__(
        self, name: str, chosen: Chosen | None = None, stated: Stated = NOTHING_STATED
    ) -> None:
        self._name = name
        self._stated = stated
        try:
            self._model: Model = infer_model(name, partial(provider_of, chosen=chosen))
        except Exception as error:
            raise unusable(error, name) from error
        provider = name.partition(":")[0]
        if takes_client(provider):
            with suppress(Exception):  # most of them do not understand the answer
                asyncio.run(rehearse(name))
        self._takes = takes_back(self._model)
        self._levels = levels(self._model.profile)
        self._warned: set[str] = set()  # warnings that were given already
        _retry_nothing(self._model)
        if provider not in ENDLESS:
            _expect_an_end(self._model)

    @property
    def context_window(self) -> int | None:
        return self._model.context_window

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        """Ask; whatever goes wrong leaves here as an error of ours."""
        response: ModelResponse | None = None
        try:
            async with model_request_stream(
                self._model,
                await self._history(request),
                model_settings=self._settings(request),
                model_request_parameters=parameters(request),
            ) as streamed:
                size = 0
                async for event in streamed:
                    text, length = _grown(event)
                    size += length
                    if size > LONGEST_REPLY:
                        raise Garbled(f"the answer of {self._name} does not end")
                    yield Delta(text=clean(text)) if text else SIGN_OF_LIFE
                response = streamed.get()
        except WakefulError:
            raise
        except Exception as error:
            raise sorted_error(error, self._name, tokens_of_request(request)) from error
        yield self._reply(response)

    async def _history(self, request: Request) -> list[ModelMessage]:
        if request.contents:  # megabytes that the library wants decoded
            return await asyncio.to_thread(history, request, self._takes)
        return history(request, self._takes)

    async def aclose(self) -> None:
        provider = self._model.provider
        client = None if provider is None else provider.client
        close = getattr(client, "close", None) or getattr(client, "aclose", None)
        if close is not None and (closing := close()) is not None:
            await closing

    def _settings(self, request: Request) -> ModelSettings:
        settings = ModelSettings(cache=True)
        if request.max_tokens is not None:
            settings["max_tokens"] = request.max_tokens
        level = None if request.thinking is None else self._level(request.thinking)
        if level is not None:
            settings["thinking"] = False if level is ThinkingLevel.OFF else level.value
        return settings

    def _level(self, wanted: ThinkingLevel) -> ThinkingLevel | None:
        level = nearest(wanted, self._levels)
        if level is not wanted and wanted is not ThinkingLevel.OFF:
            self._warn_once("%s cannot think at the level %s; it gets %s", wanted, level or "none")
        return level

    def _reply(self, response: ModelResponse) -> Reply:
        if not has_ended(response):
            raise Garbled(f"the answer of {self._name} broke off")
        if response.finish_reason == "length" and not is_usable(response):
            raise Garbled(f"the answer of {self._name} grew too long before it said anything whole")
        blocks = content(response)
        if response.finish_reason == "content_filter" and not any(blocks):
            raise NoAnswer(f"{self._name} refuses to answer this.")
        return Reply(
            content=blocks,
            stop_reason=stop_reason(response),
            usage=self._usage(response),
            provider=response.provider_name or "",
            model=model_of(response.model_name),
        )

    def _usage(self, response: ModelResponse) -> Usage:
        usage = response.usage
        counted = Usage(
            input=count_of(usage.input_tokens),
            output=count_of(usage.output_tokens),
            cache_read=count_of(usage.cache_read_tokens),
            cache_write=count_of(usage.cache_write_tokens),
        )
        return replace(counted, cost=self._cost(response, counted))

    def _cost(self, response: ModelResponse, usage: Usage) -> float | None:
        if is_priced(self._stated):
            provider, model = response.provider_name or "", response.model_name or ""
            price = price_of(provider, model, self._stated)
            if price is not None:
                return price.cost(usage)
        try:
            return max(0.0, float(response.cost().total_price))
        except (LookupError, ValueError, AssertionError):
            self._warn_once("nobody knows the price of %s; only its turns count against the budget")
            return None

    def _warn_once(self, sentence: str, *words: object) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning(sentence, self._name, *words)


def _retry_nothing(model: Model) -> None:
    """Keep the vendor's client from asking again on its own: every question is on record here."""
    client: Any = None if model.provider is None else model.provider.client
    if isinstance(getattr(client, "max_retries", None), int):
        client.max_retries = 0


def _expect_an_end(model: Model) -> None:
    """Let no stream of Chat Completions that just stops pass for a whole answer."""
    profile: dict[str, Any] = model.profile  # pyright: ignore[reportAssignmentType]
    profile["openai_chat_streaming_requires_finish_reason"] = True


def _grown(event: ModelResponseStreamEvent) -> tuple[str, int]:
    """Return the words that an event adds to the answer, and by how much it grew in all."""
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text, len(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text, len(text)
        case PartStartEvent(part=ThinkingPart(content=text)):
            return "", len(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text, signature_delta=seal)):
            return "", len(text or "") + len(seal or "")
        case PartStartEvent(part=ToolCallPart(tool_name=name, args=args)):
            return "", LEAST_RUN + len(name) + (len(args) if isinstance(args, str) else 0)
        case PartDeltaEvent(delta=ToolCallPartDelta(tool_name_delta=name, args_delta=args)):
            return "", len(name or "") + (len(args) if isinstance(args, str) else 0)
        case _:
            return "", 0
