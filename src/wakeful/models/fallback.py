"""Models that stand in for one another: the next is asked when one cannot answer for now."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack

from msgspec.structs import replace

from wakeful.models.model import (
    Closeable,
    Model,
    Piece,
    Reply,
    Request,
    Restart,
    asked,
    known_window,
)
from wakeful.models.sight import Sight, sight_of
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Garbled, Permanent, Transient
from wakeful.vocabulary.text import error_text

LONGEST_REST_S = 86_400.0  # whoever names a later time is asked after a day
EARLY_S = 0.1  # who comes back at the time that was named may be early by so much

log = logging.getLogger(__name__)


class Fallback:
    """The first of several models that can answer.

    A failure that only a human can mend ends the question if it is the first model's: nobody
    should find out from the bill that another one has answered for weeks. A model that said when
    to come back is passed over until then.
    """

    def __init__(self, models: Sequence[Model], clock: Clock) -> None:
        self._models = tuple(models)
        self._clock = clock
        self._rests: dict[int, tuple[float, str]] = {}  # until when, and what was said

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def context_window(self) -> int | None:
        return known_window(self._models[0])

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
        for at, model in enumerate(self._models):
            resting = self._resting(at)
            if resting is not None:
                errors.append(resting)
                continue
            if errors:
                yield Restart(model=model.name, failure=error_text(errors[-1]))
            try:
                async with asked(model, request) as pieces:
                    async for piece in pieces:
                        yield _with_failures(piece, errors)
                return
            except Garbled:
                raise  # it answered; it is asked once more
            except (Transient, Permanent) as error:
                if isinstance(error, Permanent) and not errors:
                    raise
                log.warning("%s could not answer: %s", model.name, error_text(error))
                errors.append(error)
                self._note(at, error)
        raise _all_failed(errors)

    async def aclose(self) -> None:
        async with AsyncExitStack() as closing:  # all of them, also after one that fails
            for model in self._models:
                if isinstance(model, Closeable):
                    closing.push_async_callback(model.aclose)

    def _note(self, at: int, error: Transient | Permanent) -> None:
        wait_s = error.retry_after_s if isinstance(error, Transient) else None
        if wait_s is not None:
            until = self._clock.monotonic() + min(wait_s, LONGEST_REST_S)
            self._rests[at] = (until, error_text(error))

    def _resting(self, at: int) -> Transient | None:
        """Return what a model said that does not want to be asked yet."""
        until, said = self._rests.get(at, (0.0, ""))
        left_s = until - self._clock.monotonic()
        return Transient(said, retry_after_s=left_s) if said and left_s > EARLY_S else None


def _with_failures(piece: Piece, errors: Sequence[Exception]) -> Piece:
    if isinstance(piece, Reply) and errors:
        return replace(piece, failures=tuple(map(error_text, errors)))
    return piece


def _all_failed(errors: Sequence[Transient | Permanent]) -> Transient:
    """Return one error that says what each said; who may be asked soonest says when."""
    waits = [error.retry_after_s for error in errors if isinstance(error, Transient)]
    known = [wait for wait in waits if wait is not None]
    soonest = min(known) if len(known) == len(waits) else None
    return Transient(" ".join(map(error_text, errors)), retry_after_s=soonest)
