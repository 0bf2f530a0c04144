"""How many files one request to a model may have, and of what size: its refusals teach it.

A conversation grows picture by picture, and what a provider takes at once is written nowhere: one
picture or twenty, a megabyte or thirty. The newest go along; the others are named at their place.
"""

import re
from collections.abc import Mapping

from msgspec.structs import replace

from wakeful.models.model import Request
from wakeful.models.windows import LEARNED_FOR_S, SAID_FOR_S
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import ContextOverflow, Permanent, Transient
from wakeful.vocabulary.message import Message, ToolMessage, UserMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import KeptAttachment

_FILES = r"(?:images?|documents?|files?|attachments?|media)\b"
# The words of vLLM, Groq, Mistral, Together, Google, Bedrock, vLLM again and Ollama, in order.
_TOO_MANY = re.compile(
    rf"at most (?P<a>\d+) {_FILES}"
    rf"|too many {_FILES}.{{0,80}}?(?:up to|maximum(?: number)?(?: is| of)?:?) (?P<b>\d+)"
    rf"|(?:up to|maximum of|more than|limit of) (?P<c>\d+) {_FILES}"
    rf"|(?:maximum )?number of {_FILES} exceeded: (?P<d>\d+)"
    rf"|fewer than (?P<e>\d+) {_FILES}"
    rf"|too many {_FILES}.{{0,60}}?> (?P<f>\d+)"
    r"|you set image=(?P<g>\d+)"
    r"|only supports? (?:a single|one) image"
    rf"|too many {_FILES}",
    re.IGNORECASE | re.DOTALL,
)
_FEWER_THAN = "e"


class FilesTaken(Record):
    """What a model takes in one request."""

    files: int | None = None  # None: as many as there are
    size: int | None = None  # characters of base64, of all of them together


class AtOnce:
    """What the refusals of one model taught; lost with the process, as its window is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken = FilesTaken()
        self._until = 0.0  # on the monotonic clock

    def fitted(self, request: Request) -> Request:
        """Return a request with the newest files that it may have; without any it stays as it is.

        Messages that keep all of theirs stay the very objects that they were.
        """
        taken = self._in_force()
        if not request.contents or taken == FilesTaken():
            return request
        room = _Room(taken, request.contents)
        messages = [room.fitted(message) for message in reversed(request.messages)][::-1]
        used = {one.hash for message in messages for one in _attached(message)}
        contents = {name: data for name, data in request.contents.items() if name in used}
        return replace(request, messages=tuple(messages), contents=contents)

    def refused(self, error: Permanent | Transient, request: Request) -> bool:
        """Note what a refusal teaches; False if it is about something else."""
        sizes = [len(request.contents[one]) for one in _shown(request)]
        if not sizes:
            return False
        before = self._in_force()
        if isinstance(error, ContextOverflow):
            if not error.is_in_bytes:
                return False
            self._learn(replace(before, size=sum(sizes) // 2), LEARNED_FOR_S)
            return True
        found = _TOO_MANY.search(str(error))
        if found is None or not error.is_free:
            return False
        said = _number(found)
        most = len(sizes) // 2 if said is None or said >= len(sizes) else said
        self._learn(replace(before, files=most), LEARNED_FOR_S if said is None else SAID_FOR_S)
        return True

    def _learn(self, taken: FilesTaken, for_s: float) -> None:
        self._taken, self._until = taken, self._clock.monotonic() + for_s

    def _in_force(self) -> FilesTaken:
        return self._taken if self._clock.monotonic() < self._until else FilesTaken()


class _Room:
    """What is left for files, from the newest message to the oldest."""

    def __init__(self, taken: FilesTaken, contents: Mapping[str, str]) -> None:
        self._files, self._size = taken.files, taken.size
        self._contents = contents

    def fitted(self, message: Message) -> Message:
        attached = _attached(message)
        kept = [one for one in reversed(attached) if self._takes(one)][::-1]
        if len(kept) == len(attached) or not isinstance(message, UserMessage | ToolMessage):
            return message
        left_out = "".join(f"\n{_unseen(one)}" for one in attached if one not in kept)
        return replace(message, text=message.text + left_out, attachments=tuple(kept))

    def _takes(self, attachment: KeptAttachment) -> bool:
        size = len(self._contents[attachment.hash])
        if self._files == 0 or (self._size is not None and size > self._size):
            return False
        self._files = None if self._files is None else self._files - 1
        self._size = None if self._size is None else self._size - size
        return True


def _shown(request: Request) -> list[str]:
    return [one.hash for message in request.messages for one in _attached(message)]


def _attached(message: Message) -> tuple[KeptAttachment, ...]:
    return tuple(message.attachments) if isinstance(message, UserMessage | ToolMessage) else ()


def _number(found: re.Match[str]) -> int | None:
    """Return how many files a refusal says are taken; None if it does not say."""
    if found.lastgroup is None:
        return 1 if found[0].lower().startswith("only support") else None
    number = int(found[found.lastgroup])
    return max(0, number - 1) if found.lastgroup == _FEWER_THAN else number


def _unseen(attachment: KeptAttachment) -> str:
    return (
        f"[attachment {attachment.id} is not shown: it is more than this model takes at once; "
        "read_attachment shows it as the newest]"
    )
