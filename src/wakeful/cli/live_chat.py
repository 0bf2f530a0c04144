"""A conversation at a terminal: you type while it talks, and see all that happens there."""

import asyncio
import io
import os
import shutil
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, cast

from wakeful.cli.agent_lines import put_off_hint
from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed, Missing
from wakeful.cli.follow import Back, Lost, SessionLink
from wakeful.cli.output import BOLD, DIM, RED, counted, safe, safe_lines
from wakeful.cli.session_names import session_path
from wakeful.cli.story import PieceKind, ShownPiece, Story, note
from wakeful.vocabulary.text import clean

if TYPE_CHECKING:
    from prompt_toolkit import Application, PromptSession
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.formatted_text import AnyFormattedText

HISTORY = "history"
GOODBYE = frozenset({"exit", "quit", "bye"})  # typed by a person who wants to leave
REFRESH_S = 1.0  # for what counts down
SPARE_ROWS = 6  # of the screen, beside the words that are being written

# What a receipt means that does not say "started".
OUTCOMES = {
    "steered": "it hears this at its next step",
    "queued": "this waits for its turn",
    "parked": "",  # until when, and what helps, is in the receipt
    "held": "",
    "suppressed": "this is not answered",
    "duplicate": "this was said before",
}
PUT_OFF = frozenset({"stimulus.parked", "stimulus.held"})
ENDED = frozenset({"command", "parked", "held", "suppressed", "duplicate"})  # nobody works on it


def converse(context: CliContext, session: str) -> None:
    """Talk until the person leaves."""
    asyncio.run(LiveChat(context, session).run())


class LiveChat:
    """One session on the screen, and one line to type in."""

    def __init__(self, context: CliContext, session: str) -> None:
        self._context = context
        self._path = session_path(session)
        self._link = SessionLink(context, session)
        self._story = Story(context.how_long)
        self._sending = asyncio.Lock()  # an event of our own message waits for its receipt
        self._tasks: asyncio.TaskGroup  # while it runs; what was said is sent before it ends
        self._own: set[str] = set()
        self._connected = asyncio.Event()
        self._is_awaited = False  # an answer to what was sent, whose turn may not be known yet

    async def run(self) -> None:
        from prompt_toolkit.patch_stdout import patch_stdout

        prompt = self._prompt_session()
        try:
            with patch_stdout(raw=True):
                async with asyncio.TaskGroup() as self._tasks:
                    following = self._tasks.create_task(self._follow(prompt), name="events")
                    await self._read(prompt)
                    following.cancel()
        except* CommandFailed as failed:
            # The server will not have us here: a wrong name, or a token that was revoked.
            raise failed.exceptions[0] from None

    async def _read(self, prompt: "PromptSession[str]") -> None:
        """Take what is typed until the person says goodbye."""
        hint = "Ctrl-C stops the agent, Ctrl-D ends the conversation, /help lists commands."
        self._print(self._context.out.styled(hint, DIM))
        await self._connected.wait()  # whoever types sees all that happens from then on
        with suppress(EOFError, KeyboardInterrupt):
            await prompt.prompt_async()

    def _entered(self, app: "Application[Any]", buffer: "Buffer") -> None:
        """Send a line; the prompt stays, so that no key is lost meanwhile."""
        text = clean(buffer.text).strip()
        buffer.append_to_history()
        buffer.reset()
        if text.lower().lstrip("/") in GOODBYE:
            app.exit(result="")
        elif text:
            self._print(f"> {safe_lines(text)}")
            self._tasks.create_task(self._send(text, buffer))

    async def _send(self, text: str, buffer: "Buffer") -> None:
        self._is_awaited = True
        try:
            async with self._sending:  # in the order in which it was said
                receipt = await self._link.post(f"{self._path}/messages", {"text": text})
                self._own.add(receipt.get("stimulus_id", ""))
        except CommandFailed as error:
            self._is_awaited = False
            self._print(self._context.out.styled(f"wakeful: {safe(str(error))}", RED))
            if not buffer.text:
                buffer.text = text
            return
        outcome = receipt.get("outcome")
        if outcome in ENDED:
            self._is_awaited = False
        if outcome == "command":
            self._print(safe_lines(str(receipt.get("reply", ""))))
        elif outcome in OUTCOMES:
            reason = f"{receipt['reason']}: " if receipt.get("reason") else ""
            meaning = OUTCOMES[outcome] or put_off_hint(self._context, receipt)
            self._show(note(f"{reason}{meaning}"))

    async def _stop(self) -> None:
        try:
            await self._link.post(f"{self._path}/stop")
            self._show(note("stopped"))
        except CommandFailed as error:
            self._print(self._context.out.styled(f"wakeful: {safe(str(error))}", RED))

    async def _follow(self, prompt: "PromptSession[str]") -> None:
        async for event in self._link.follow():
            match event:
                case Back(is_first=is_first):
                    await self._look(is_first=is_first)
                case Lost():
                    self._show(note("the connection is lost; what was sent is safe"))
                case _:
                    if event.kind == "stimulus.accepted":
                        await self._show_others(event.data)
                    elif event.kind in PUT_OFF:
                        await self._show_put_off(event.data)
                    for piece in self._story.take(event):
                        self._show(piece)
                    if event.kind == "turn.finished":
                        self._is_awaited = False
                        self._tasks.create_task(self._see())
            self._connected.set()  # or told that it is not
            prompt.app.invalidate()

    async def _see(self) -> None:
        """Note that what was shown was read."""
        with suppress(CommandFailed):
            await self._link.post(f"{self._path}/seen")

    async def _look(self, *, is_first: bool) -> None:
        """Learn whether somebody is talking already, and whether something was not read yet."""
        if not is_first:
            self._show(note("the server is back"))
        try:
            session: dict[str, Any] = await self._link.get(self._path)
        except Missing:
            return  # the first message makes the session
        except CommandFailed:
            return
        lane: dict[str, Any] = session.get("lane") or {}
        if is_first and session.get("unread"):
            answers = counted(session["unread"], "answer", "answers")
            name = session["key"]
            self._show(note(f"{answers} not read yet here; `wakeful sessions show {name}`"))
        if is_first and lane.get("turn_id"):
            self._story.turn_id = lane["turn_id"]
            self._show(note("a turn is under way here"))

    async def _show_others(self, data: dict[str, Any]) -> None:
        """Show what somebody said in another window, or what else woke the agent here."""
        async with self._sending:
            is_own = data.get("stimulus_id") in self._own
        if is_own:
            return
        try:
            stimulus = await self._link.get(f"/api/stimuli/{data.get('stimulus_id')}")
        except CommandFailed:
            return
        who = self._context.out.styled(f"{safe(str(stimulus['source']), 80)}:", BOLD)
        self._print(f"{who} {safe_lines(stimulus['text'])}")

    async def _show_put_off(self, data: dict[str, Any]) -> None:
        """Show that nobody works on what was said here, though its receipt said otherwise."""
        async with self._sending:
            is_own = data.get("stimulus_id") in self._own
        if is_own:
            self._is_awaited = False
            self._show(note(f"{data.get('reason')}: {put_off_hint(self._context, data)}"))

    def _show(self, piece: ShownPiece) -> None:
        if piece.kind is PieceKind.NOTE:
            self._print(self._context.out.styled(f"({safe(piece.text)})", DIM))
            return
        width = shutil.get_terminal_size().columns
        has_colours = self._context.out.has_colours
        self._print(rendered(piece.text, width, has_colours=has_colours).rstrip("\n"))

    def _print(self, text: str) -> None:
        print(text, file=sys.stdout, flush=True)  # above the line that is typed in

    def _message(self) -> "AnyFormattedText":
        """Return what stands before the cursor: the words that come, what is waited for."""
        from prompt_toolkit.formatted_text import ANSI

        rows = max(3, shutil.get_terminal_size().lines - SPARE_ROWS)
        lines = safe_lines(self._story.pending).splitlines()[-rows:]
        if self._story.tool is not None:
            lines.append(self._context.out.styled(f"({safe(self._story.tool, 80)} …)", DIM))
        elif self._story.waits_until is not None:
            until = self._context.how_long(self._story.waits_until)
            lines.append(self._context.out.styled(f"(asks the model again {until})", DIM))
        return ANSI("\n".join((*lines, "> ")))

    def _prompt_session(self) -> "PromptSession[str]":
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.input import create_input

        history = InMemoryHistory()
        if self._context.home.is_dir():
            file = self._context.home / HISTORY
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            file.chmod(0o600)
            history = FileHistory(str(file))
        source = create_input()
        # What is shown above the prompt would else be shown in a mode in which the terminal itself
        # heeds keys, and a Ctrl-D of that moment would be lost.
        cast("Any", source).cooked_mode = nullcontext
        return PromptSession(
            self._message,
            input=source,
            history=history,
            key_bindings=self._keys(),
            refresh_interval=REFRESH_S,
        )

    def _keys(self) -> Any:
        from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

        keys = KeyBindings()

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            if self._story.turn_id is not None or self._is_awaited:
                self._tasks.create_task(self._stop())
            elif event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=EOFError)

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.text_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                self._entered(event.app, buffer)

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return keys


def rendered(text: str, width: int, *, has_colours: bool) -> str:
    """Return Markdown as lines for a terminal."""
    # Loaded on first use: it takes a tenth of a second.
    from rich.console import Console
    from rich.markdown import Markdown

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, 20),
        force_terminal=has_colours,
        color_system="standard" if has_colours else None,
        legacy_windows=False,
        highlight=False,
    )
    # Addresses are shown, since a link that hides its own could lead anywhere.
    console.print(Markdown(safe_lines(text), hyperlinks=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
