"""A model that was chosen and cannot be asked: it says why, as the answer to every question."""

from collections.abc import AsyncIterator

from wakeful.models.model import Piece, Request
from wakeful.vocabulary.errors import Permanent


class Unusable:
    """Stands for a model that is gone: its provider, its key or its package."""

    def __init__(self, name: str, why: str) -> None:
        self._name = name
        self._why = why

    @property
    def name(self) -> str:
        return self._name

    def stream(self, request: Request) -> AsyncIterator[Piece]:
        raise Permanent(f"the model {self._name!r} cannot be used: {self._why}")
