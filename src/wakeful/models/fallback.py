"""Models that stand in for one another: the next is asked when one cannot answer for now."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from wakeful.models.model import (
    Closeable,
    Delta,
    Model,
    Piece,
    Reply,
    Request,
    Restart,
    asked,
    cache_edges,
    known_window,
)
from wakeful.models.sight import Sight, sight_of
from wakeful.models.tariffs import Tariff, lost_cost, tariffs_of
from wakeful.models.windows import tokens_read
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import ContextOverflow, Garbled, ModelHung, Permanent, Transient
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import error_text

LONGEST_REST_S = 86_400.0  # whoever names a later time is asked after a day
EARLY_S = 0.1  # who comes back at the time that was named may be early by so much
HUNG_S = 60.0  # how long a model is passed over that kept us waiting; twice as long each time
LONGEST_HUNG_S = 600.0
LONG_REST_S = 300.0  # a longer one is not waited for: the conversation must fit the next model

log = logging.getLogger(__name__)


class Rest(Record):
    """Why a model is passed over, and until when."""

    until: float  # on the monotonic clock
    said: str
    hung: int = 0  # how often it kept us waiting in a row


class Fallback:
    """The first of several models that can answer.

    A failure that only a human can mend ends the question if it is the first model's: nobody
    should find out from the bill that another one has answered for weeks. A model that said when
    to come back is passed over until then. One that kept us waiting is passed over for a while,
    too, and then asked by one question alone, while others still pass it over: its time-out is
    paid once, not in every step.
    """

    def __init__(self, models: Sequence[Model], clock: Clock) -> None:
        self._models = tuple(models)
        self._clock = clock
        self._rests: dict[int, Rest] = {}
        self._tried: set[int] = set()  # models that hung, and that one question tries again

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def context_window(self) -> int | None:
        """The window of the first model that may be asked before long."""
        left = (self._left_s(at) for at in range(len(self._models)))
        at = next((at for at, left_s in enumerate(left) if left_s <= LONG_REST_S), 0)
        return known_window(self._models[at])

    @property
    def cache_edges_ms(self) -> tuple[int, int]:
        return cache_edges(self._models[0])

    @property
    def tariffs(self) -> Sequence[Tariff]:
        """What each of them costs: any may be the one who answers."""
        return [tariff for model in self._models for tariff in tariffs_of(model)]

    @property
    def sight(self) -> Sight:
        """What any of them can see; each is given what it takes."""
        each = [sight_of(model) for model in self._models]
        return Sight(
            images=any(sight.images for sight in each),
            documents=any(sight.documents for sight in each),
        )

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        errors: list[Transient | Permanent] = []
        lost = 0.0  # dollars that answers cost which broke off
        for at, model in enumerate(self._models):
            resting = self._resting(at)
            if resting is not None:
                errors.append(resting)
                continue
            if errors:
                failure = error_text(errors[-1])
                yield Restart(model=model.name, failure=failure, lost=lost)
            seen, lost = 0, 0.0
            is_try = self._begin_try(at)
            try:
                async with asked(model, request) as pieces:
                    async for piece in pieces:
                        seen += len(piece.text) if isinstance(piece, Delta) else 0
                        yield _with_failures(piece, errors)
                self._rests.pop(at, None)
                return
            except Garbled:
                self._rests.pop(at, None)
                raise  # it answered; it is asked once more
            except (Transient, Permanent) as error:
                if isinstance(error, Permanent) and (not errors or self._must_fit(at, error)):
                    raise
                log.warning("%s could not answer: %s", model.name, error_text(error))
                errors.append(error)
                self._note(at, error)
                if not error.is_free:
                    lost = lost_cost(tariffs_of(model)[0], tokens_read(request), seen)
            finally:
                if is_try:
                    self._tried.discard(at)
        raise _all_failed(errors)

    async def aclose(self) -> None:
        async with AsyncExitStack() as closing:  # all of them, also after one that fails
            for model in self._models:
                if isinstance(model, Closeable):
                    closing.push_async_callback(model.aclose)

    def _begin_try(self, at: int) -> bool:
        """Let others pass a model over that hung, while this question tries it again."""
        rest = self._rests.get(at)
        if rest is None or not rest.hung:
            return False
        self._tried.add(at)
        return True

    def _note(self, at: int, error: Transient | Permanent) -> None:
        """Remember until when a model that failed is passed over."""
        now, said, before = self._clock.monotonic(), error_text(error), self._rests.pop(at, None)
        if isinstance(error, ModelHung):
            hung = 1 if before is None else before.hung + 1
            wait_s = min(HUNG_S * 2 ** (hung - 1), LONGEST_HUNG_S)
            said = f"{said} It is passed over for a while."
            self._rests[at] = Rest(until=now + wait_s, said=said, hung=hung)
        elif isinstance(error, Transient) and error.retry_after_s is not None:
            until = now + min(error.retry_after_s, LONGEST_REST_S)
            self._rests[at] = Rest(until=until, said=said)

    def _resting(self, at: int) -> Transient | None:
        """Return why a model is not asked now, or None if it is."""
        rest, left_s = self._rests.get(at), self._left_s(at)
        if rest is None or (left_s <= EARLY_S and at not in self._tried):
            return None
        return Transient(rest.said, retry_after_s=max(left_s, EARLY_S), is_free=True)

    def _left_s(self, at: int) -> float:
        rest = self._rests.get(at)
        return 0.0 if rest is None else rest.until - self._clock.monotonic()

    def _must_fit(self, at: int, error: Permanent) -> bool:
        """Tell whether a conversation must fit this model: nobody before it answers before long."""
        return isinstance(error, ContextOverflow) and all(
            self._left_s(before) > LONG_REST_S for before in range(at)
        )


def _with_failures(piece: Piece, errors: Sequence[Exception]) -> Piece:
    if isinstance(piece, Reply) and errors:
        return replace(piece, failures=tuple(map(error_text, errors)))
    return piece


def _all_failed(errors: Sequence[Transient | Permanent]) -> Transient:
    """Return one error that says what each said; who may be asked soonest says when."""
    waits = [error.retry_after_s for error in errors if isinstance(error, Transient)]
    known = [wait for wait in waits if wait is not None]
    soonest = min(known) if len(known) == len(waits) else None
    is_free = errors[-1].is_free  # what was lost before has been told
    said = " ".join(map(error_text, errors))
    return Transient(said, retry_after_s=soonest, is_free=is_free)
