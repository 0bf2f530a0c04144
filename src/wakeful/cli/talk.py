"""`chat`, `send`: talking to an agent."""

import readline
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.cli.attachments import Files, read_files
from wakeful.cli.client import Frame, ServerClient, segment
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed, ExitCode, Unreachable
from wakeful.cli.output import DIM, safe, safe_lines
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.text import clean

HISTORY = "history"
LONGEST_HISTORY = 1000
LONGEST_WAIT_S = 120
GOODBYE = frozenset({"exit", "quit", "bye"})  # typed by a person who wants to leave
FINE = ("done", "open")  # how a turn may be when its stream ends
PUT_OFF = ("parked", "held")  # what a receipt says when nobody works now

Session = Annotated[str, typer.Option("--session", "-s", help="The session to talk in.")]
Text = Annotated[str, typer.Argument(help="What to say; - reads standard input.")]
Priority = Annotated[str, typer.Option(help="now, next or later.")]
QueueMode = Annotated[Mode | None, typer.Option(help="What to do if the agent is busy.")]
Wait = Annotated[
    float, typer.Option(min=0, max=LONGEST_WAIT_S, help="Seconds to wait for the answer.")
]
DedupKey = Annotated[
    str | None, typer.Option(help="A key: the same message with the same key counts once.")
]


# Each is an option; a person names the few that they need.
def send(  # noqa: PLR0913, PLR0917
    desk: CliContext,
    text: Text,
    session: Session = "main",
    priority: Priority = "next",
    mode: QueueMode = None,
    wait: Wait = 0,
    dedup_key: DedupKey = None,
    file: Files = None,
) -> None:
    """Give an agent a message; it is on disk when this returns."""
    body = _body(_said(text), file) | {"priority": priority}
    if mode is not None:
        body["mode"] = mode.value
    if dedup_key is not None:
        body["dedup_key"] = dedup_key
    receipt = desk.needed_server().post(
        f"/api/sessions/{segment(session)}/messages", body, wait=wait or None
    )
    turn = receipt.get("turn")
    is_command = receipt.get("outcome") == "command"
    lines = [safe_lines(receipt["reply"]) if is_command else _receipt_line(receipt)]
    if turn is not None:
        lines.append(safe_lines(turn.get("reply") or f"({turn.get('state')})"))
    desk.out.data(receipt, lines)
    if wait and turn is None and receipt.get("stimulus_id"):
        raise CommandFailed(
            f"no answer within {wait:g} s; the message is safe and will be answered"
        )


def chat(
    desk: CliContext,
    message: Annotated[str, typer.Argument(help="One message; without it, a conversation.")] = "",
    session: Session = "main",
    file: Files = None,
) -> None:
    """Talk to an agent and see it answer; Ctrl-C stops the turn, Ctrl-D ends the conversation."""
    conversation = Conversation(desk, desk.needed_server(), session)
    if message or file:
        if not conversation.say(_said(message), files=file):
            raise typer.Exit(ExitCode.FAILURE)
        return
    _load_history(desk)
    try:
        _converse(desk, conversation)
    finally:
        _save_history(desk)


class Conversation:
    """One session, spoken with over the API."""

    def __init__(self, desk: CliContext, server: ServerClient, session: str) -> None:
        self.when = desk.when
        self._out = desk.out
        self._server = server
        self._path = f"/api/sessions/{segment(session)}"

    def say(self, text: str, *, waits: bool = True, files: Sequence[Path] | None = None) -> bool:
        """Send a message and show the answer as it is written; True if the turn ended well.

        Without `waits` a message that is put off is left to be answered later.
        """
        answer = ShownAnswer(self)
        try:
            body = _body(text, files)
            with self._server.events("POST", f"{self._path}/stream", body=body) as frames:
                for frame in frames:
                    answer.show(frame)
                    if answer.is_put_off and not waits:
                        break
        except KeyboardInterrupt:
            self._server.post(f"{self._path}/stop")
            self.note("stopped", begins_line=answer.is_inside_line)
            raise
        except Unreachable:
            if answer.state is None and answer.receipt is None:
                raise
            self.note("the connection was lost; the message is safe", begins_line=True)
        return answer.state in FINE

    def write(self, text: str) -> None:
        if not self._out.is_json:
            self._out.words(safe_lines(text))

    def note(self, text: str, *, begins_line: bool) -> None:
        if not self._out.is_json:
            if begins_line:
                self._out.line()
            self._out.line(self._out.styled(f"({safe(text)})", DIM))

    def frame(self, frame: Frame) -> None:
        if self._out.is_json:
            self._out.item({"event": frame.kind, **frame.data}, "")


class ShownAnswer:
    """What has been shown of one answer."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self.receipt: dict[str, Any] | None = None
        self.state: str | None = None
        self.is_inside_line = False
        self._has_words = False

    @property
    def is_put_off(self) -> bool:
        """Whether nobody knows when the answer comes: the agent is halted, or sleeps."""
        return (self.receipt or {}).get("outcome") in PUT_OFF

    def show(self, frame: Frame) -> None:
        self._conversation.frame(frame)
        match frame.kind:
            case "receipt":
                self.receipt = frame.data
                if frame.data.get("outcome") not in ("started", "debouncing", "command"):
                    later = (
                        "; it is kept, and answered when that is over" if self.is_put_off else ""
                    )
                    self._note(f"{_receipt_line(frame.data)}{later}")
                if frame.data.get("outcome") == "command":
                    self._write(str(frame.data.get("reply", "")) + "\n")
                    self.state = "done"
            case "delta":
                self._has_words = True
                self._write(str(frame.data.get("text", "")))
            case "restart":
                self._has_words = False
                self._note(f"{frame.data.get('failure')} {frame.data.get('model')} answers instead")
            case "waiting":
                self._has_words = False
                until = self._conversation.when(frame.data.get("until"))
                self._note(f"{frame.data.get('error')} Waiting for the model until {until}")
            case "tool" if frame.data.get("phase") == "started":
                self._note(f"{frame.data.get('name')} …")
            case "tool" if frame.data.get("phase") not in ("started", "done"):
                self._note(f"{frame.data.get('name')}: {frame.data.get('phase')}")
            case "turn":
                self._end(frame.data)
            case _:
                pass

    def _end(self, turn: dict[str, Any]) -> None:
        self.state = str(turn.get("state"))
        reply = turn.get("reply")
        if reply and not self._has_words:
            self._write(str(reply))
        if self.is_inside_line:
            self._write("\n")
        if self.state not in FINE:
            self._note(str(turn.get("error") or self.state))

    def _write(self, text: str) -> None:
        if text:
            self._conversation.write(text)
            self.is_inside_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        self._conversation.note(text, begins_line=self.is_inside_line)
        self.is_inside_line = False


def _converse(desk: CliContext, conversation: Conversation) -> None:
    is_person = sys.stdin.isatty()
    if is_person:
        desk.out.note("Ctrl-C stops the agent, Ctrl-D ends the conversation, /help lists commands.")
    for text in _lines(desk, is_person=is_person):
        try:
            # Who waited here could not even say `/resume`.
            conversation.say(text, waits=False)
        except KeyboardInterrupt:
            continue
        except CommandFailed as error:
            if not is_person:
                raise
            desk.out.complain(f"wakeful: {error}")


def _lines(desk: CliContext, *, is_person: bool) -> Iterator[str]:
    """Yield what is typed until its end, or until a person says goodbye."""
    while True:
        try:
            text = clean(input("> " if is_person else "")).strip()
        except EOFError:
            if is_person:
                desk.out.line()
            return
        except KeyboardInterrupt:
            desk.out.line()
            continue
        if is_person and text.lower().lstrip("/") in GOODBYE:
            return
        if text:
            yield text


def _said(text: str) -> str:
    words = typer.get_text_stream("stdin").read() if text == "-" else text
    return clean(words)


def _body(text: str, files: Sequence[Path] | None) -> dict[str, Any]:
    return {"text": text, "attachments": read_files(files)} if files else {"text": text}


def _receipt_line(receipt: dict[str, Any]) -> str:
    parts = [str(receipt.get("outcome"))]
    if receipt.get("position") is not None:
        parts.append(f"position {receipt['position']}")
    if receipt.get("reason"):
        parts.append(str(receipt["reason"]))
    if receipt.get("duplicate_of"):
        parts.append(f"the same as {receipt['duplicate_of']}")
    return safe(f"{', '.join(parts)}: {receipt.get('stimulus_id')}")


def _load_history(desk: CliContext) -> None:
    file = desk.home / HISTORY
    if file.exists():
        readline.read_history_file(file)
    readline.set_history_length(LONGEST_HISTORY)


def _save_history(desk: CliContext) -> None:
    file = desk.home / HISTORY
    if desk.home.is_dir():
        file.touch(mode=0o600)
        readline.write_history_file(file)
        file.chmod(0o600)
