"""`chat`, `send`: talking to an agent."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.cli.agent_lines import put_off_hint
from wakeful.cli.attachments import Files, read_files
from wakeful.cli.client import ServerClient, SseFrame
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed, ExitCode, Missing, Unreachable
from wakeful.cli.output import DIM, safe, safe_lines
from wakeful.cli.session_names import session_named, session_path, warn_of_namesake
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.text import clean

LONGEST_WAIT_S = 120
FINE = ("done", "open")  # how a turn may be when its stream ends
PUT_OFF = ("parked", "held")  # what a receipt says when nobody works now
AGAIN_AFTER_S = 1.0

Session = Annotated[str, typer.Option("--session", "-s", help="The session to talk in.")]
Text = Annotated[str, typer.Argument(help="What to say; - reads standard input.")]
Priority = Annotated[str, typer.Option(help="now, next or later.")]
QueueMode = Annotated[Mode | None, typer.Option(help="What to do if the agent is busy.")]
Wait = Annotated[
    float, typer.Option(min=0, max=LONGEST_WAIT_S, help="Seconds to wait for the answer.")
]
DedupKey = Annotated[
    str | None,
    typer.Option(help="A key: a message with it counts once, as long as the ledger keeps it."),
]
AgentName = Annotated[
    str | None, typer.Option("--agent", "-a", help="The agent to talk to; default: the first.")
]


# Each is an option of the command.
def send(  # noqa: PLR0913, PLR0917
    context: CliContext,
    text: Text,
    session: Session = "main",
    agent: AgentName = None,
    priority: Priority = "next",
    mode: QueueMode = None,
    wait: Wait = 0,
    dedup_key: DedupKey = None,
    file: Files = None,
) -> None:
    """Give an agent a message; it is on disk when this returns."""
    body = _body(given_text(text), file) | {"priority": priority}
    if mode is not None:
        body["mode"] = mode.value
    if dedup_key is not None:
        body["dedup_key"] = dedup_key
    server = context.needed_server()
    if agent is None:
        warn_of_namesake(context, server, session)
    receipt = server.post(f"{session_path(session, agent)}/messages", body, wait=wait or None)
    turn = receipt.get("turn")
    is_command = receipt.get("outcome") == "command"
    lines = [safe_lines(receipt["reply"]) if is_command else receipt_line(receipt)]
    if receipt.get("outcome") in PUT_OFF:
        lines.append(put_off_hint(context, receipt))
    if turn is not None:
        lines.append(safe_lines(turn.get("reply") or f"({turn.get('state')})"))
        lines += [safe(turn["usage_line"], 300)] if turn.get("usage_line") else []
    context.out.data(receipt, lines)
    if wait and turn is None and receipt.get("stimulus_id"):
        raise CommandFailed(
            f"no answer within {wait:g} s; the message is safe and will be answered"
        )


def chat(
    context: CliContext,
    message: Annotated[str, typer.Argument(help="One message; without it, a conversation.")] = "",
    session: Session = "main",
    agent: AgentName = None,
    file: Files = None,
) -> None:
    """Talk to an agent and see all that happens there; Ctrl-C stops the turn, Ctrl-D ends."""
    server = context.needed_server()
    if agent is None:
        warn_of_namesake(context, server, session)
    name = session_named(session, agent)
    if not message and not file and sys.stdin.isatty() and not context.out.is_json:
        # Loads what a terminal needs; whoever says one thing needs none of it.
        from wakeful.cli.live_chat import converse

        converse(context, name)
        return
    conversation = Conversation(context, server, name)
    if not message and not file:
        for text in _lines():
            # Who waited here could not even say `/resume`.
            conversation.say(text, waits=False)
    elif not conversation.say(given_text(message), files=file):
        raise typer.Exit(ExitCode.FAILURE)


class Conversation:
    """One session, spoken with over the API."""

    def __init__(self, context: CliContext, server: ServerClient, session: str) -> None:
        self.how_long = context.how_long
        self._context = context
        self._out = context.out
        self._server = server
        self._path = session_path(session)

    def say(self, text: str, *, waits: bool = True, files: Sequence[Path] | None = None) -> bool:
        """Send a message and show the answer as it is written; True if the turn ended well.

        Without `waits` a message that is put off is left to be answered later.
        """
        answer = ShownAnswer(self)
        was_read = self._is_read()
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
            self._catch_up(answer)
        if was_read and answer.state is not None:
            with suppress(CommandFailed):
                self._server.post(f"{self._path}/seen")
        return answer.state in FINE

    def _is_read(self) -> bool:
        """Tell whether nothing waits here to be read: then the answer is all there is to read."""
        try:
            return not self._server.get(self._path).get("unread")
        except Missing:
            return True  # the first message makes the session
        except CommandFailed:
            return False

    def _catch_up(self, answer: "ShownAnswer") -> None:
        """Wait until the server is back, and show what became of the message."""
        receipt = answer.receipt or {}
        path = f"/api/stimuli/{receipt.get('duplicate_of') or receipt.get('stimulus_id')}"
        while True:
            self._context.pause(AGAIN_AFTER_S)
            self._server = self._context.server() or self._server
            try:
                stimulus = self._server.get(path)
                if stimulus["turn_id"] is None:
                    if stimulus["settled_at"] is None:
                        continue
                    return
                turn = self._server.get(
                    f"/api/turns/{stimulus['turn_id']}/wait", timeout=LONGEST_WAIT_S
                )
            except Unreachable:
                continue
            if turn["state"] != "open":
                answer.show_again(turn)
                return

    def later(self, receipt: dict[str, Any]) -> str:
        """Tell until when a message waits that nobody works on now."""
        return f"; {put_off_hint(self._context, receipt)}"

    def write(self, text: str) -> None:
        if not self._out.is_json:
            self._out.words(safe_lines(text))

    def note(self, text: str, *, begins_line: bool) -> None:
        if not self._out.is_json:
            if begins_line:
                self._out.line()
            self._out.line(self._out.styled(f"({safe(text)})", DIM))

    def frame(self, frame: SseFrame) -> None:
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

    def show(self, frame: SseFrame) -> None:
        self._conversation.frame(frame)
        match frame.kind:
            case "receipt":
                self.receipt = frame.data
                if frame.data.get("outcome") not in ("started", "debouncing", "command"):
                    later = self._conversation.later(frame.data) if self.is_put_off else ""
                    self._note(f"{receipt_line(frame.data)}{later}")
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
                until = self._conversation.how_long(frame.data.get("until"))
                self._note(f"{frame.data.get('error')} Asked again {until}")
            case "put_off":
                self._show_put_off(frame.data)
            case "tool":
                self._show_tool(str(frame.data.get("name")), str(frame.data.get("phase")))
            case "turn":
                self._end(frame.data)
            case _:
                pass

    def _show_put_off(self, data: dict[str, Any]) -> None:
        self.receipt = (self.receipt or {}) | data | {"outcome": data.get("state")}
        self._note(f"{receipt_line(self.receipt)}{self._conversation.later(self.receipt)}")

    def _show_tool(self, name: str, phase: str) -> None:
        # What begins and ends in one commit is only told as done.
        if phase == "started" or (phase == "done" and self.is_inside_line):
            self._note(f"{name} …")
        elif phase != "done":
            self._note(f"{name}: {phase}")

    def show_again(self, turn: dict[str, Any]) -> None:
        """Show the end of a turn whose story was cut off, from its first word."""
        self._has_words = False
        self._conversation.frame(SseFrame(id="", kind="turn", data=turn))
        self._end(turn)

    def _end(self, turn: dict[str, Any]) -> None:
        self.state = str(turn.get("state"))
        reply = turn.get("reply")
        if reply and not self._has_words:
            self._write(str(reply))
        if self.is_inside_line:
            self._write("\n")
        if turn.get("usage_line"):
            self._note(str(turn["usage_line"]))
        if self.state not in FINE:
            self._note(str(turn.get("error") or self.state))

    def _write(self, text: str) -> None:
        if text:
            self._conversation.write(text)
            self.is_inside_line = not text.endswith("\n")

    def _note(self, text: str) -> None:
        self._conversation.note(text, begins_line=self.is_inside_line)
        self.is_inside_line = False


def _lines() -> Iterator[str]:
    """Yield what a program says, line by line."""
    for line in typer.get_text_stream("stdin"):
        if text := clean(line).strip():
            yield text


def given_text(text: str) -> str:
    words = typer.get_text_stream("stdin").read() if text == "-" else text
    return clean(words)


def _body(text: str, files: Sequence[Path] | None) -> dict[str, Any]:
    return {"text": text, "attachments": read_files(files)} if files else {"text": text}


def receipt_line(receipt: dict[str, Any]) -> str:
    parts = [str(receipt.get("outcome"))]
    if receipt.get("position") is not None:
        parts.append(f"position {receipt['position']}")
    if receipt.get("reason"):
        parts.append(str(receipt["reason"]))
    if receipt.get("duplicate_of"):
        parts.append(f"the same as {receipt['duplicate_of']}")
    return safe(f"{', '.join(parts)}: {receipt.get('stimulus_id')}")
