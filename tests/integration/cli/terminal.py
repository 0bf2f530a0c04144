"""A terminal with a person at it: a real one, whose screen is heard and whose keys are pressed."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager

from tests.children import die_with_parent
from tests.integration.cli.shell import COMMAND, PATIENCE_S, Home

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])|[\r\x00-\x08]")
_FORWARD = re.compile(r"\x1b\[(\d*)C")
ROWS, COLUMNS = 40, 100


class Terminal:
    """What is shown, without colours; what came too early is heard next time."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self._descriptor = descriptor
        self.process = process
        self._raw = b""
        self._heard = 0

    @property
    def shown(self) -> str:
        raw = self._raw.decode(errors="ignore")
        text = _FORWARD.sub(lambda moved: " " * int(moved[1] or 1), raw)
        return _ESCAPES.sub("", text)

    def heard(self, *words: str) -> None:
        """Wait until all these words are shown, in whichever order; go on after them."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            shown = self.shown
            ends = [shown.find(one, self._heard) + len(one) for one in words]
            missing = [one for one in words if one not in shown[self._heard :]]
            if not missing:
                self._heard = max(ends)
                return
            left = deadline - time.monotonic()
            is_ready = left > 0 and select.select([self._descriptor], [], [], left)[0]
            assert is_ready, f"not shown: {missing}; shown: {shown[self._heard :]!r}"
            self._raw += os.read(self._descriptor, 65536)

    def types(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def pastes(self, text: str) -> None:
        self.types(f"\x1b[200~{text}\x1b[201~")

    def leaves(self) -> int:
        """Press Ctrl-D and wait for the end."""
        self.types("\x04")
        return self.ends()

    def ends(self) -> int:
        """Wait for the end; what is shown meanwhile must be read, or the end never comes."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            left = deadline - time.monotonic()
            is_ready = left > 0 and select.select([self._descriptor], [], [], left)[0]
            assert is_ready, f"it goes on; shown: {self.shown!r}"
            try:
                self._raw += os.read(self._descriptor, 65536)
            except OSError:  # nobody has the terminal any more
                return self.process.wait(PATIENCE_S)


@contextmanager
def terminal(home: Home, *arguments: str) -> Generator[Terminal, None, None]:
    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    # A question about the cursor is answered by a screen, and there is none.
    environ = {**home.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env={**environ, "COLUMNS": str(COLUMNS), "LINES": str(ROWS)},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        preexec_fn=die_with_parent,
    )
    os.close(inside)
    try:
        yield Terminal(outside, process)
    finally:
        process.kill()
        process.wait()
        os.close(outside)
