"""What every wire format has in common: it writes a request and reads the events of an answer."""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from wakeful.models.model import Request
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import Block, Keepsake, ToolCall, Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment
from wakeful.vocabulary.text import clean, clean_json, one_line

NO_TEXT = "[no text]"  # providers refuse a message that says nothing
MOST_REMEMBERED = 16 * 1024 * 1024  # bytes of encoded messages, for each model
MOST_TOKENS = 100_000_000  # of one answer; who counts more cannot count
MOST_COST = 10_000.0  # dollars of one answer, in the words of its provider
LONGEST_MODEL = 200  # characters of the name that a provider calls a model
MOST_DISOWNED = 10_000
LARGEST_REMEMBERED = 256 * 1024  # of one of them: what is larger is mostly pictures

Finish = Literal["stop", "length", "content_filter"]
T = TypeVar("T")

encode = msgspec.json.Encoder().encode


class WireAnswer(Record):
    """A whole answer as a format has read it."""

    content: tuple[Block, ...]
    usage: Usage
    model: str  # as the provider calls it; empty if it does not
    cost: float | None = None  # as the provider tells it


class RefusedMidway(Exception):
    """An error that came in the middle of an answer."""

    def __init__(self, error: Any) -> None:
        super().__init__()
        self.error = error


class AnswerReader(Protocol):
    """Reads one answer."""

    size: int  # characters that are kept so far, thoughts and calls too

    @property
    def is_over(self) -> bool:
        """Whether the last event has come."""
        ...

    @property
    def finish(self) -> Finish | None:
        """Why the model stopped; None if it never said that it did."""
        ...

    def take(self, data: bytes) -> str:
        """Read an event and return the words that it adds; raise Refused if it is an error."""
        ...

    def answer(self) -> WireAnswer:
        """Return what was said; raise Garbled if nobody could read it."""
        ...


class Format(Protocol):
    """One way of speaking to a provider; one for each model, since it remembers what it wrote."""

    path: str  # behind the base address
    levels: frozenset[ThinkingLevel]  # that the model tells apart

    def headers(self, key: str) -> Mapping[str, str]: ...

    def body(self, request: Request, level: ThinkingLevel | None) -> bytes:
        """Write a request; the same messages always give the same bytes."""
        ...

    def reader(self) -> AnswerReader: ...

    def mended_body(self, request: Request, level: ThinkingLevel | None, said: str) -> bytes | None:
        """Return what to send instead of what was refused with these words, if that is known."""
        ...


class Disowned:
    """Names of what a provider refused though it had said it itself: sealed for another account,
    or forgotten. It goes back as anybody else's words do, lest the talk be refused for ever.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def add(self, names: Iterable[str]) -> bool:
        """Note names; False if all of them were known."""
        new = set(names) - self._names
        if len(self._names) > MOST_DISOWNED:
            self._names.clear()  # rare, and the next refusal tells them again
        self._names |= new
        return bool(new)

    def __contains__(self, name: str) -> bool:
        return name in self._names


class Remembered:
    """Encoded forms of objects that do not change, each by the very object."""

    def __init__(self, most_bytes: int = MOST_REMEMBERED) -> None:
        self._kept: dict[int, tuple[object, bytes]] = {}
        self._size = 0
        self._most_bytes = most_bytes

    def each(self, things: Iterable[T], write: Callable[[T], bytes]) -> list[bytes]:
        """Return the encoded form of each, written only if it was not before."""
        kept, found = self._kept, list[bytes]()
        for thing in things:
            one = kept.get(id(thing))
            if one is None or one[0] is not thing:
                one = self._keep(thing, write(thing))
            found.append(one[1])
        return found

    def _keep(self, thing: object, encoded: bytes) -> tuple[object, bytes]:
        if len(encoded) > LARGEST_REMEMBERED:
            return thing, encoded
        if self._size + len(encoded) > self._most_bytes:
            self._kept.clear()  # rare, and all of it can be written again
            self._size = 0
        self._size += len(encoded)
        self._kept[id(thing)] = one = (thing, encoded)
        return one


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Return a function that reads events of a type, and mends letters that are no letters."""
    plain = msgspec.json.Decoder(kind).decode

    def decode(data: bytes) -> T:
        try:
            if not data.isascii():
                data.decode()  # also where nobody looks: an answer that is half garbage is garbage
            return plain(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            try:
                return msgspec.convert(clean_json(json.loads(data)), kind)
            except (ValueError, RecursionError):
                why = one_line(str(error), 200)
                raise Garbled(f"an event of the answer cannot be read: {why}") from error

    return decode


def arguments_of(name: str, written: str) -> dict[str, Any]:
    """Return the arguments of a call, or raise Garbled if they are no JSON object."""
    if not written.strip():
        return {}
    try:
        found: Any = json.loads(written)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Garbled(f"the model called {name[:80]!r} with broken arguments")
    return found  # pyright: ignore[reportUnknownVariableType]


def count_of(*given: Any) -> int:
    """Return the first number of tokens that makes sense; 0 if none does."""
    for number in given:
        is_whole = type(number) is int or (type(number) is float and number.is_integer())
        if is_whole and 0 < number <= MOST_TOKENS:
            return int(number)
    return 0


def cost_of(given: Any) -> float | None:
    """Return what a provider says an answer cost, if that makes sense."""
    is_number = type(given) in (int, float)
    return float(given) if is_number and 0 <= given <= MOST_COST else None


def model_of(given: Any) -> str:
    """Return the name that a provider calls a model; empty if that is none."""
    return clean(given[:LONGEST_MODEL]) if isinstance(given, str) else ""


def call_id_of(given: str | None) -> str:
    """Return the id of a call; some providers give none."""
    return given or f"call_{secrets.token_hex(8)}"


def keepsake_of(part_id: str | None, **details: Any) -> Keepsake:
    """Return what a provider wants back with a block."""
    kept: dict[str, Any] = {}
    if part_id is not None:
        kept["id"] = part_id
    if known := {name: value for name, value in details.items() if value is not None}:
        kept["details"] = known
    return kept or None


def kept_id(block: Block) -> str | None:
    return (block.keepsake or {}).get("id")


def kept_detail(block: Block, name: str) -> Any:
    details: dict[str, Any] = (block.keepsake or {}).get("details") or {}
    return details.get(name)


def data_url(attachment: KeptAttachment, contents: Mapping[str, str]) -> str:
    """Return an attachment as an address that holds it."""
    return f"data:{attachment.media_type};base64,{contents[attachment.hash]}"


def file_name(attachment: KeptAttachment) -> str:
    """Return a name for a document; the one that somebody gave it may say anything."""
    return f"{attachment.id}.pdf"


def as_failed(text: str) -> str:
    """Return the result of a tool that failed, for formats that have no other way to say so."""
    return encode({"error": text}).decode()


def arguments_text(call: ToolCall) -> str:
    return encode(call.arguments).decode()
