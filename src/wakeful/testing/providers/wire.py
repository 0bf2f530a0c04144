"""A wire: one way of speaking to a provider, what a question holds, how an answer is written."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from wakeful.testing.providers.plan import Step
from wakeful.vocabulary.record import Record

Body = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class Frame(Record):
    """One server-sent event."""

    kind: str
    data: bytes


class Question(Record):
    """What a stand-in reads from a request, whatever its wire."""

    said: list[str]  # by people, oldest first
    problem: str | None  # why a real provider would refuse it


class StandInWire(Protocol):
    """One way of speaking."""

    path: str  # of the requests

    def read(self, body: Body) -> Question: ...

    def write(self, body: Body, step: Step, new_id: str) -> list[Frame]:
        """Return the events of an answer, in order."""
        ...

    def refusal(self, status: int, message: str) -> Body:
        """Return the body of an error."""
        ...


def frame(kind: str, **data: Any) -> Frame:
    """Return an event that is named on the wire."""
    encoded = _encode({"type": kind, **data})
    return Frame(kind=kind, data=b"event: %b\ndata: %b\n\n" % (kind.encode(), encoded))


def unnamed(kind: str, data: Any) -> Frame:
    """Return an event without a name; `kind` is for the plan alone."""
    return Frame(kind=kind, data=b"data: %b\n\n" % _encode(data))


def unpaired(calls_and_results: Sequence[tuple[list[str], list[str]]]) -> str | None:
    """Return what is wrong with calls and the results that stand right after them."""
    open_calls: list[str] = []
    for at, (calls, results) in enumerate(calls_and_results):
        stray = [result for result in results if result not in open_calls]
        if stray or len(set(results)) != len(results):
            return f"message {at}: the results {results!r} answer no open calls"
        open_calls = [call for call in open_calls if call not in results]
        if open_calls and not results:
            return f"message {at}: the calls {open_calls!r} have no result right after them"
        if calls:
            if open_calls:
                return f"message {at}: the calls {open_calls!r} have no result"
            open_calls = list(calls)
    return f"the last calls {open_calls!r} have no result" if open_calls else None
