"""The starter: a process that has imported everything, and forks itself into whatever is wanted.

Importing the package takes half a second of a processor, and tests of real processes start a
thousand of them. A fork is a real process too: it has its own environment, folder, signals and
descriptors, is killed and waited for like any other, and differs only in having its imports behind
it. What must differ before its imports (to be traced, measured, or short of memory) is started by
hand; `children.py` decides.

`python -m tests.starter DESCRIPTOR [libraries]` reads jobs from a socket and ends with it. Between
the starter and each child stands a keeper, which tells how the child ended.
"""

import ctypes
import gc
import os
import runpy
import signal
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import msgspec

from wakeful.vocabulary import failpoints

PRELOADED = (
    *("wakeful.cli.reference", "wakeful.doors.http.door", "wakeful.testing.kit"),
    *("wakeful.cli.care", "wakeful.cli.look", "wakeful.cli.offline", "wakeful.cli.talk"),
    *("wakeful.cli.up", "wakeful.cli.config", "typer._adapters"),
    *("wakeful.store.postgres", "uvloop", "tests.proofs.rig"),
)
LIBRARIES = (  # that take seconds, for children that will need them
    *("wakeful.models.direct", "wakeful.tools.mcp.connection"),
)
LONGEST_JOB = 1 << 18
_PR_SET_PDEATHSIG = 1


class Job(msgspec.Struct):
    """What a child is to be."""

    arguments: list[str]  # as they stand after `python`
    environ: dict[str, str]
    folder: str
    umask: int = -1  # -1: the starter's


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in (*PRELOADED, *(LIBRARIES if "libraries" in sys.argv else ())):
        with suppress(ModuleNotFoundError):  # then each child loads what there is instead
            import_module(name)
    gc.collect()
    gc.freeze()  # what is here now is shared with every child and never looked through again
    job = next_job(control)
    if job is not None:
        run(job.arguments)


def next_job(control: socket.socket) -> Job | None:
    """Return a job in the child that is to do it; None in the starter when nobody asks any more."""
    while True:
        message, files, _, _ = socket.recv_fds(control, LONGEST_JOB, 4)
        reap(0 if not message else os.WNOHANG)
        if not message:
            return None
        starter = os.getpid()
        if os.fork() == 0:
            control.close()
            die_with(starter)
            keeper, job = os.getpid(), msgspec.json.decode(message, type=Job)
            child = os.fork()
            if child:
                keep(child, files)
            die_with(keeper)
            become(job, files)
            return job
        for file in files:
            os.close(file)


def reap(how: int) -> None:
    """Bury the keepers that have ended, or all: only then is counted what their children used."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, how) != (0, 0):
            pass


def keep(child: int, files: list[int]) -> None:
    """Tell the number of the child, and how it ended."""
    status = socket.socket(fileno=files[0])
    for file in files[1:]:
        os.close(file)
    status.send(str(child).encode())
    _, ended = os.waitpid(child, 0)
    with suppress(BrokenPipeError):  # nobody wants to know
        status.send(str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def become(job: Job, files: list[int]) -> None:
    """Be as a process is that was started by hand."""
    os.setsid()
    for target, file in enumerate(files[1:]):
        os.dup2(file, target)
    for file in files:
        os.close(file)
    os.chdir(job.folder)
    if job.umask >= 0:
        os.umask(job.umask)
    os.environ.clear()
    os.environ.update(job.environ)
    time.tzset()
    default_signals()
    failpoints.arm(job.environ)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - these live as long as the process
    sys.stdout = open(1, "w", 1 if os.isatty(1) else -1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def default_signals() -> None:
    """Heed signals as Python does at its start."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def run(arguments: list[str]) -> None:
    """Do what `python ARGUMENTS` does: `-m MODULE …` or `SCRIPT …`."""
    if arguments[0] == "-m":
        name = arguments[1]
        sys.argv = arguments[1:]
        sys.modules.pop(name if name.startswith("tests.") else f"{name}.__main__", None)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).parent)
    runpy.run_path(arguments[0], run_name="__main__")


def die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


if __name__ == "__main__":
    main()
