"""How long a model may take, and how much it takes: what we know of it while it is asked."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from wakeful.models.at_once import AtOnce
from wakeful.models.model import Closeable, Delta, Model, Piece, Request, asked, known_window
from wakeful.models.sight import Sight, fitted, refusal, sight_of
from wakeful.models.tariffs import Tariff, tariffs_of
from wakeful.models.windows import NOTHING_STATED, ModelSettings, Window, capped, tokens_of_request
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import Alarm, Clock
from wakeful.vocabulary.errors import ContextOverflow, ModelHung, Permanent, Transient

LOOK_AGAIN_S = 0.05  # when the time is over while nobody waits for the model
ROUNDS = 5  # of the loop, in which what has come is read and noted

log = logging.getLogger(__name__)


class TimedModel:
    """A model that is given up for now when it keeps us waiting, and whose window is known.

    `window` is what is stated about it; its refusals may teach a smaller one. It is given what it
    can see: by `sight`, or by what is known of it.
    """

    def __init__(
        self,
        model: Model,
        limits: Limits,
        clock: Clock,
        window: int | None = None,
        sight: Sight | None = None,
        stated: ModelSettings = NOTHING_STATED,
    ) -> None:
        self.sight = sight or sight_of(model)
        self._model = model
        self._limits = limits
        self._clock = clock
        self._window = Window(window, clock)
        self._at_once = AtOnce(clock)
        self._max_output = stated.max_output  # None: as much as it may
        self.cache_edges_ms = stated.edges_ms

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def tariffs(self) -> Sequence[Tariff]:
        """What it costs, and how much it says when it is asked by way of this."""
        most = self._max_output
        known = tariffs_of(self._model)
        return known if most is None else [replace(one, max_output=most) for one in known]

    @property
    def context_window(self) -> int | None:
        return self._window.tokens(known_window(self._model))

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        request = capped(fitted(request, self.sight), self._max_output)
        has_begun = False
        while True:
            tried = self._at_once.fitted(request)
            try:
                async with aclosing(self._stream(tried)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
                return
            except (Permanent, Transient) as error:
                if not has_begun and self._at_once.refused(error, tried):
                    log.info("%s takes fewer files at once; it is asked again", self.name)
                    continue
                refused = refusal(error, tried) or error
                if isinstance(refused, ContextOverflow):
                    self._window.refused(tokens_of_request(tried), refused.window)
                raise refused from error.__cause__

    async def _stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        async with (
            _Watch(self.name, self._limits, self._clock) as watch,
            asked(self._model, request) as pieces,
        ):
            async for piece in pieces:
                watch.note()
                if not isinstance(piece, Delta) or piece.text:
                    watch.is_waiting = False
                    yield piece
                    watch.is_waiting = True

    async def aclose(self) -> None:
        if isinstance(self._model, Closeable):
            await self._model.aclose()


class _Watch:
    """One alarm for a whole answer: a piece only notes the time, which costs next to nothing."""

    def __init__(self, name: str, limits: Limits, clock: Clock) -> None:
        self.is_waiting = True  # only then may the alarm cut in
        self._name = name
        self._limits = limits
        self._clock = clock
        self._started = clock.monotonic()
        self._seen: float | None = None
        self._scope = asyncio.timeout(None)
        self._alarm: Alarm | None = None

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        self._arm()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        try:
            await self._scope.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise ModelHung(f"{self._name} {self._why()}.") from None

    def note(self) -> None:
        self._seen = self._clock.monotonic()

    def _why(self) -> str:
        """Say which limit was reached."""
        limits = self._limits
        if self._clock.monotonic() - self._started >= limits.answer_s:
            return f"did not finish its answer in {limits.answer_s} seconds"
        if self._seen is None:
            return f"did not begin to answer in {limits.first_token_s} seconds"
        return f"fell silent for {limits.idle_s} seconds"

    def _left(self) -> float:
        limits, now = self._limits, self._clock.monotonic()
        next_due = (
            self._started + limits.first_token_s
            if self._seen is None
            else self._seen + limits.idle_s
        )
        return min(next_due, self._started + limits.answer_s) - now

    def _arm(self) -> None:
        self._alarm = self._clock.call_later(max(self._left(), LOOK_AGAIN_S), self._look)

    def _look(self, rounds: int = ROUNDS) -> None:
        loop = asyncio.get_running_loop()
        if self._left() > 0 or not self.is_waiting:
            self._arm()
        elif rounds:
            # It may be we who stood still: then what came meanwhile lies there, to be read first.
            self._alarm = loop.call_soon(self._look, rounds - 1)
        else:
            self._scope.reschedule(loop.time())
