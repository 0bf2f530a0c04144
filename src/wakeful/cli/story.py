"""The story of a session: what its events mean to somebody who reads along."""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from wakeful.cli.client import SseFrame
from wakeful.vocabulary.record import Record

FINE = ("done", "open")  # how a turn may be when its story ends

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)", re.MULTILINE)


class PieceKind(StrEnum):
    WORDS = "words"  # of an answer: a whole block of Markdown
    NOTE = "note"  # of the runtime


class ShownPiece(Record):
    """Something to show, for good."""

    kind: PieceKind
    text: str


def note(text: str) -> ShownPiece:
    return ShownPiece(kind=PieceKind.NOTE, text=text)


class Story:
    """Follows one session: what to show for good, what is being written, what is waited for."""

    def __init__(self, how_long: Callable[[Any], str]) -> None:
        self.turn_id: str | None = None  # of the turn that is under way
        self.tool: str | None = None  # that runs now
        self.waits_until: Any = None  # when the model is asked again
        self._how_long = how_long
        self._words = ""  # of the step that is being written
        self._shown = 0  # characters of them that were given out
        self._step: int | None = None
        self._has_gap = False

    @property
    def pending(self) -> str:
        """The words of the block that is being written."""
        return self._words[self._shown :]

    def take(self, frame: SseFrame) -> list[ShownPiece]:
        """Return what an event adds; a turn's words come block by block."""
        data = frame.data
        match frame.kind:
            case "turn.started" | "turn.resumed":
                return self._begin(frame.kind, data)
            case "turn.delta":
                return self._write(data)
            case "turn.tool":
                return self._use(data)
            case "turn.left":
                return self._leave(data)
            case "turn.finished":
                return self._finish(data)
            case "gap":
                self._has_gap = True
                return []
            case _:
                return self._tell(frame.kind, data)

    def _tell(self, kind: str, data: dict[str, Any]) -> list[ShownPiece]:
        match kind:
            case "session.reset":
                return [note("a new conversation begins here")]
            case "session.compacted":
                return [note("what was said before is a summary now")]
            case "session.deleted":
                return [note("this session was deleted")]
            case "stimulus.suppressed" | "stimulus.expired" | "stimulus.failed":
                what = kind.removeprefix("stimulus.")
                return [note(f"a message was {what}: {data.get('reason') or 'no reason is known'}")]
            case _:
                return []

    def _begin(self, kind: str, data: dict[str, Any]) -> list[ShownPiece]:
        self.turn_id, self.waits_until = data.get("turn_id"), None
        pieces = [*self._flush()]
        self._forget_words()
        if kind == "turn.resumed" and data.get("attempt", 1) > 1:
            pieces.append(note("the turn goes on from its last commit"))
        return pieces

    def _write(self, data: dict[str, Any]) -> list[ShownPiece]:
        self.turn_id = data.get("turn_id") or self.turn_id
        if "restarted" in data:
            self._forget_words()
            return [note(f"{data.get('failure')} {data['restarted']} answers instead")]
        pieces: list[ShownPiece] = []
        if data.get("step") != self._step:
            pieces = self._flush()
            self._forget_words()
            self._step = data.get("step")
        self._words += str(data.get("text", ""))
        end = whole_blocks(self.pending)
        if end:
            pieces.append(self._give(end))
        return pieces

    def _use(self, data: dict[str, Any]) -> list[ShownPiece]:
        name, phase = str(data.get("name")), str(data.get("phase"))
        self.turn_id = data.get("turn_id") or self.turn_id
        if phase == "started":
            self.tool = name
            return self._flush()
        self.tool = None
        return [*self._flush(), note(f"used {name}" if phase == "done" else f"{name}: {phase}")]

    def _leave(self, data: dict[str, Any]) -> list[ShownPiece]:
        self.tool, self.waits_until = None, data.get("resume_at")
        error = data.get("error")
        if data.get("reason") == "budget":
            return [note("waits for money that other answers have set aside")]
        if error is None:
            return []
        self._forget_words()
        return [note(f"{error} Asked again {self._how_long(self.waits_until)}")]

    def _finish(self, data: dict[str, Any]) -> list[ShownPiece]:
        pieces: list[ShownPiece] = []
        reply, state = str(data.get("reply") or ""), str(data.get("state"))
        if self._has_gap or not reply.startswith(self._words):
            if reply and reply != self._words:
                self._words, self._shown = reply, 0
        else:
            self._words = reply
        pieces += self._flush()
        if data.get("usage_line"):
            pieces.append(note(str(data["usage_line"])))
        if state not in FINE:
            error: dict[str, Any] = data.get("error") or {}
            pieces.append(note(str(error.get("message") or state)))
        self.turn_id = self.tool = self.waits_until = None
        self._forget_words()
        return pieces

    def _flush(self) -> list[ShownPiece]:
        pending = self.pending
        given = [self._give(len(pending))] if pending else []
        return [piece for piece in given if piece.text.strip()]

    def _give(self, length: int) -> ShownPiece:
        block = self.pending[:length]
        self._shown += length
        return ShownPiece(kind=PieceKind.WORDS, text=block)

    def _forget_words(self) -> None:
        self._words, self._shown, self._step, self._has_gap = "", 0, None, False


def whole_blocks(text: str) -> int:
    """Return how much of a text is whole blocks of Markdown: up to the last empty line.

    An empty line inside a fence of code ends nothing.
    """
    end, fence = 0, ""
    position = 0
    for line in text.splitlines(keepends=True):
        position += len(line)
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        elif not fence and not line.strip() and line.endswith("\n") and text[:position].strip():
            end = position
    return end
