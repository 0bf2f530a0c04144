"""Run one command and outlive everything it starts; a program of its own, run by `supervised`.

It is a subreaper: whoever loses a parent below it becomes its child, so nothing that the command
started can hide from it, not even behind a new session, a double fork and an empty environment.
Its standard input is a lifeline. When that ends, because the time is up or the runtime is gone,
the command is ended. What the command reads instead is the descriptor that the first argument
names, or nothing (`-`). It imports little and nothing of the runtime: each command waits for it.
"""

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress

GRACE_S = 1.0  # between asking and killing
GIVE_UP_S = 5.0  # what cannot be killed by then is stuck in the kernel
LOOK_AGAIN_S = 0.05
CANNOT_RUN = 127

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_LIFELINE = 0
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def main(argv: list[str]) -> int:
    """Return the command's exit code, or 128 and the number of the signal that ended it."""
    _control(_SET_CHILD_SUBREAPER, 1)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    children = _Children()
    command = _start(argv[1:], None if argv[0] == "-" else int(argv[0]))
    if not children.wait_for(command):
        _signal_group(command, signal.SIGTERM)
        children.wait_for_all(_now() + GRACE_S)
    _kill_all(children)
    return children.code_of(command)


class _Children:
    """Waits for children and reaps them, also those it inherited."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}
        self._signalled, write = os.pipe()
        os.set_blocking(self._signalled, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        self._poll = select.poll()
        self._poll.register(self._signalled, select.POLLIN)

    def wait_for(self, child: int) -> bool:
        """Wait for a child to end; False if the lifeline ended first."""
        self._poll.register(_LIFELINE, select.POLLIN)
        while self.reap() and child not in self._codes:
            if self._is_cut_off(None):
                self._poll.unregister(_LIFELINE)
                return False
        return True

    def wait_for_all(self, until: float) -> None:
        """Wait until no child is left, though not past an instant."""
        while self.reap() and (left_s := until - _now()) > 0:
            self._is_cut_off(round(left_s * 1000) + 1)

    def reap(self) -> bool:
        """Collect every child that has ended; tell whether any is left."""
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if child == 0:
                return True
            self._codes[child] = os.waitstatus_to_exitcode(status)

    def code_of(self, child: int) -> int:
        code = self._codes.get(child, -signal.SIGKILL)
        return code if code >= 0 else 128 - code

    def _is_cut_off(self, timeout_ms: int | None) -> bool:
        """Wait for a signal or the end of the lifeline; tell whether it was the lifeline."""
        ready = dict(self._poll.poll(timeout_ms))
        if self._signalled in ready:
            os.read(self._signalled, 65536)
        return _LIFELINE in ready


def _wake(_number: int, _frame: object) -> None:
    """Do nothing: that a handler exists makes the signal end a wait."""


def _start(argv: list[str], read_from: int | None) -> int:
    # fork is safe here: this process has one thread.
    child = os.fork()
    if child:
        if read_from is not None:
            os.close(read_from)  # whoever writes to the command must see it end
        return child
    try:
        # If the command kills its supervisor, it dies with it.
        _control(_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for number in (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        source = os.open(os.devnull, os.O_RDONLY) if read_from is None else read_from
        os.dup2(source, 0)
        os.close(source)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT_RUN)


def _kill_all(children: _Children) -> None:
    """Kill every descendant, however far away, and reap them."""
    deadline = _now() + GIVE_UP_S
    while children.reap() and _now() < deadline:
        for child in _frozen():
            _signal(child, signal.SIGKILL)
        # Orphans of the killed come to us within moments, and wake nobody when they arrive.
        children.wait_for_all(min(deadline, _now() + LOOK_AGAIN_S))


def _frozen() -> set[int]:
    """Stop every descendant and return them: none can start another while we look."""
    stopped: set[int] = set()
    while new := _descendants() - stopped:
        for child in new:
            _signal(child, signal.SIGSTOP)
        stopped |= new
    return stopped


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent(name)) is not None:
            parents[int(name)] = parent
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The second field is the command in parentheses, and may hold any byte itself.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return None  # it has ended


def _signal(child: int, number: int) -> None:
    with suppress(OSError):  # gone, or not ours to end
        os.kill(child, number)


def _signal_group(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except OSError:
        _signal(child, number)


def _control(option: int, value: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _now() -> float:
    return time.monotonic()  # noqa: TID251 (a process of its own has no injected clock)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
