"""A model that is spoken to directly, in one of the wire formats that nearly everybody uses."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cached_property, partial
from http import HTTPStatus
from typing import TypeVar

from msgspec.structs import replace

from wakeful.models.events import EventReader
from wakeful.models.formats.format import AnswerReader, Finish, Format, RefusedMidway, WireAnswer
from wakeful.models.model import LONGEST_REPLY, Delta, Piece, Reply, Request
from wakeful.models.prices import Price, price_of
from wakeful.models.statuses import (
    UNREACHABLE,
    Refusal,
    quoted,
    read_refusal,
    refusal_within,
    shown_text,
    sorted_refusal,
)
from wakeful.models.tariffs import Tariff, tariff_of
from wakeful.models.thinking import nearest
from wakeful.models.windows import (
    NOTHING_STATED,
    ModelSettings,
    stated_window,
    tokens_of_request,
    tokens_read,
)
from wakeful.net.addresses import allow
from wakeful.net.exchange import BROKE_OFF, AddressRefused, OutOfReach, StreamedAnswer
from wakeful.net.proxies import Proxy
from wakeful.net.streamed import StreamingClient
from wakeful.net.target import parse
from wakeful.telemetry.redaction import SHORTEST
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.clock import Clock, SystemClock
from wakeful.vocabulary.errors import Garbled, NoAnswer, Permanent, Transient, WakefulError
from wakeful.vocabulary.message import StopReason, Thinking, ToolCall, Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import clean

SIGN_OF_LIFE = Delta(text="")
END_S = 1.0  # from the last word to the end of the connection; then it is broken
MOST_MENDS = 3  # of one request
LARGEST_REFUSAL = 64 * 1024  # bytes that are read of an answer that is none
LARGEST_ANSWER = 256 * 1024 * 1024  # bytes, with everything around what is said
# What events come as; a gateway may call them by less than their name.
STREAMS = ("text/event-stream", "text/plain", "application/octet-stream")
CHARACTERS_PER_TOKEN = 4
MOST_NAMES = 100  # of one model that are remembered

log = logging.getLogger(__name__)
Body = TypeVar("Body", bytes, bytes | None)


class ModelEndpoint(Record):
    """Where a model is, and who it is there."""

    name: str  # the whole one, `provider:model`
    provider: str  # under which its thoughts are kept, and its prices are listed
    model: str
    base_url: str
    key: str = ""
    proxy: Proxy | None = None
    headers: Mapping[str, str] = {}  # that go along with every question
    stated: ModelSettings = NOTHING_STATED  # by the operator


class DirectModel:
    """One model of a provider, and the connections to it."""

    def __init__(self, endpoint: ModelEndpoint, form: Format, clock: Clock) -> None:
        base_url = endpoint.base_url.rstrip("/")
        if form.path.startswith("/v1/"):  # whoever is used to other formats names it twice
            base_url = base_url.removesuffix("/v1")
        target = parse(f"{base_url}{form.path}", "base_url")
        self._endpoint = endpoint
        self._format = form
        self._clock = clock
        self._path = target.path
        # The operator chose this host: private addresses are fine, reserved ones are not.
        allowed = allow([target.host])
        self._client = StreamingClient(target, clock, allowed=allowed, proxy=endpoint.proxy)
        self._prices: dict[str, Price | None] = {}  # by the names that the provider calls it
        self._warned: set[str] = set()  # warnings that were given already
        # A server of one's own is often told a word as its key, which may stand in any sentence.
        known = (endpoint.key, *endpoint.headers.values())
        self._secrets = [one for one in known if len(one) >= SHORTEST]

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def context_window(self) -> int | None:
        return stated_window(self.name)

    @cached_property
    def tariffs(self) -> Sequence[Tariff]:
        endpoint = self._endpoint
        return (tariff_of(endpoint.provider, endpoint.model, endpoint.stated),)

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        """Ask; words that come together are shown together."""
        level = None if request.thinking is None else self._level(request.thinking)
        reader, events = self._format.reader(), EventReader()
        with self._translated(request):
            async with self._asked(request, level) as answer:
                came = 0
                while chunk := await self._more(answer, reader):
                    came += len(chunk)
                    if came > LARGEST_ANSWER:
                        raise Garbled(f"it has more than {LARGEST_ANSWER} bytes")
                    yield self._shown(reader, events.feed(chunk))
                yield self._shown(reader, events.end())
        yield self._reply(reader, request)

    async def aclose(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def _asked(
        self, request: Request, level: ThinkingLevel | None
    ) -> AsyncGenerator[StreamedAnswer, None]:
        """Give an answer that has begun; a request that is known how to mend is sent again."""
        form, mends = self._format, 0
        body = await _written(request, partial(form.body, request, level))
        while True:
            async with self._post(body) as answer:
                if _is_stream(answer):
                    yield answer
                    return
                refusal = await self._refusal(answer)
            if mends == MOST_MENDS:
                raise self._sorted(refusal, request)
            # Some wrap what they say in lists, or in the refusal of somebody behind them.
            said = f"{refusal.said}\n{refusal.body}"
            mended = await _written(request, partial(form.mended_body, request, level, said))
            if mended is None:
                raise self._sorted(refusal, request)
            log.info("%s refused a request that is known how to mend", self.name)
            body, mends = mended, mends + 1

    def _post(self, body: bytes) -> AbstractAsyncContextManager[StreamedAnswer]:
        more = self._endpoint.headers
        own = {name.lower() for name in more}  # the operator's word counts, in any spelling
        said = self._format.headers(self._endpoint.key).items()
        headers = {**{name: value for name, value in said if name.lower() not in own}, **more}
        return self._client.post(self._path, headers, body)

    async def _more(self, answer: StreamedAnswer, reader: AnswerReader) -> bytes:
        """Return what came; once all is said, the connection has to end but not to be waited for.

        Whoever forgets to end it would else make a whole answer one of a model that hangs.
        """
        if not reader.is_over:
            return await answer.read()
        answer.end_within(self._clock, END_S)
        try:
            return await answer.read()
        except OutOfReach:
            return b""

    def _shown(self, reader: AnswerReader, events: list[bytes]) -> Delta:
        """Read events and return the words that they add."""
        text = "".join([reader.take(data) for data in events])
        if reader.size > LONGEST_REPLY:
            raise Garbled(f"the answer of {self.name} does not end")
        return Delta(text=clean(text)) if text else SIGN_OF_LIFE

    @contextmanager
    def _translated(self, request: Request) -> Generator[None]:
        """Say of whatever goes wrong whose fault it was."""
        try:
            yield
        except Garbled as error:
            raise Garbled(f"{self.name} answered with something unreadable: {error}") from error
        except RefusedMidway as error:
            raise self._sorted(refusal_within(error.error), request) from None
        except OutOfReach as error:
            why = "" if str(error).endswith(BROKE_OFF) else f" {self._line(str(error))}."
            sentence = f"{self.name} {UNREACHABLE}.{why}"
            raise Transient(sentence, is_free=error.is_early) from error
        except AddressRefused as error:
            raise Permanent(f"{self.name} cannot be used: {error}") from error

    async def _refusal(self, answer: StreamedAnswer) -> Refusal:
        body = bytearray()
        while len(body) < LARGEST_REFUSAL and (chunk := await answer.read()):
            body += chunk
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise self._no_stream(answer, bytes(body))
        after = answer.headers.get("retry-after")
        if answer.is_packed:
            body.clear()  # its status must do
        return read_refusal(answer.status, bytes(body), after, SystemClock().now())

    def _no_stream(self, answer: StreamedAnswer, body: bytes) -> Exception:
        """Return what an answer means that is none: many a gateway refuses with a success."""
        refusal = read_refusal(answer.status, body, None, 0)
        if refusal.error is not None:
            return RefusedMidway(refusal.error)
        kind = self._line(answer.headers.get("content-type", "nothing"))
        said = quoted(refusal.said, self._secrets)
        return Garbled(f"it is no stream of events but {kind!r}.{said}")

    def _sorted(self, refusal: Refusal, request: Request) -> WakefulError:
        tokens = tokens_of_request(request)
        return sorted_refusal(refusal, self.name, tokens, self._secrets)

    def _line(self, text: str) -> str:
        return shown_text(text, self._secrets)

    def _reply(self, reader: AnswerReader, request: Request) -> Reply:
        if reader.finish is None:
            raise Garbled(f"the answer of {self.name} broke off")
        if reader.finish == "length" and not _is_usable(reader):
            raise Garbled(f"the answer of {self.name} grew too long before it said anything whole")
        answer = reader.answer()
        if reader.finish == "content_filter" and not answer.content:
            raise NoAnswer(f"{self.name} refuses to answer this.")
        is_calling = any(isinstance(block, ToolCall) for block in answer.content)
        return Reply(
            content=answer.content,
            stop_reason=_stop_reason(reader.finish, is_calling),
            usage=replace(answer.usage, cost=self._cost(answer, request, reader.size)),
            provider=self._endpoint.provider,
            model=answer.model or self._endpoint.model,
        )

    def _cost(self, answer: WireAnswer, request: Request, size: int) -> float | None:
        """Return what an answer cost, None if nobody knows; who counted nothing is estimated."""
        model = answer.model or self._endpoint.model
        if model not in self._prices:
            if len(self._prices) >= MOST_NAMES:
                self._prices.clear()
            self._prices[model] = price_of(self._endpoint.provider, model, self._endpoint.stated)
        price, usage = self._prices[model], answer.usage
        if price is not None and not usage.input and not usage.output and answer.cost is None:
            written = size // CHARACTERS_PER_TOKEN
            return price.cost(Usage(input=tokens_read(request), output=written))
        if price is not None:
            return price.cost(usage)
        if answer.cost is not None:
            return answer.cost
        self._warn_once("nobody knows the price of %s; only its turns count against the budget")
        return None

    def _level(self, wanted: ThinkingLevel) -> ThinkingLevel | None:
        level = nearest(wanted, self._format.levels)
        if level is not wanted and wanted is not ThinkingLevel.OFF:
            self._warn_once("%s cannot think at the level %s; it gets %s", wanted, level or "none")
        return level

    def _warn_once(self, sentence: str, *words: object) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            log.warning(sentence, self.name, *words)


async def _written(request: Request, write: Callable[[], Body]) -> Body:
    """Return a body; pictures are megabytes, which are not for the loop."""
    return await asyncio.to_thread(write) if request.contents else write()


def _is_stream(answer: StreamedAnswer) -> bool:
    """Tell whether an answer has begun that is one."""
    kind = answer.headers.get("content-type", STREAMS[0]).lower()
    return answer.status == HTTPStatus.OK and kind.startswith(STREAMS)


def _stop_reason(finish: Finish, is_calling: bool) -> StopReason:
    if is_calling:
        return "tool_use"
    return "length" if finish == "length" else "stop"


def _is_usable(reader: AnswerReader) -> bool:
    """Tell whether anything but thoughts was said before the answer was cut off."""
    try:
        blocks = reader.answer().content
    except Garbled:
        return False
    return any(not isinstance(block, Thinking) for block in blocks)
