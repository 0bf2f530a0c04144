"""Models that stand in for one another: the next is asked when one cannot answer for now."""

import logging
from collections.abc import AsyncGenerator, Sequence

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
from wakeful.vocabulary.errors import Garbled, Permanent, Transient
from wakeful.vocabulary.text import told

log = logging.getLogger(__name__)


class Fallback:
    """The first of several models that can answer.

    A failure that only a human can mend ends the question if it is the first model's: nobody
    should find out from the bill that another one has answered for weeks.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def context_window(self) -> int | None:
        return known_window(self._models[0])

    async def stream(self, request: Request) -> AsyncGenerator[Piece, None]:
        errors: list[Transient | Permanent] = []
        for model in self._models:
            if errors:
                yield Restart(model=model.name, failure=told(errors[-1]))
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
                log.warning("%s could not answer: %s", model.name, told(error))
                errors.append(error)
        raise _all_failed(errors)

    async def aclose(self) -> None:
        for model in self._models:
            if isinstance(model, Closeable):
                await model.aclose()


def _with_failures(piece: Piece, errors: Sequence[Exception]) -> Piece:
    if isinstance(piece, Reply) and errors:
        return replace(piece, failures=tuple(map(told, errors)))
    return piece


def _all_failed(errors: Sequence[Transient | Permanent]) -> Transient:
    """Return one error that says what each said; who may be asked soonest says when."""
    waits = [error.retry_after_s for error in errors if isinstance(error, Transient)]
    known = [wait for wait in waits if wait is not None]
    soonest = min(known) if len(known) == len(waits) else None
    return Transient(" ".join(map(told, errors)), retry_after_s=soonest)
