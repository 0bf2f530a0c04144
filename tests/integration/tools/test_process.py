"""Commands that hang, hide, flood and hold on."""

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.children import die_with_parent
from wakeful.tools import process
from wakeful.tools.process import Finished
from wakeful.tools.supervised import CLEANUP_LIMIT_S
from wakeful.vocabulary.clock import Alarm, Clock, ManualClock, SystemClock
from wakeful.vocabulary.errors import InvalidInput, Permanent

GIBIBYTE = 1024**3


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """A word in the command line of everything a test starts, which also says when it is ready."""
    os.mkfifo(tmp_path / "ready")
    return f"mark{abs(hash(str(tmp_path))):x}"


async def run(
    script: str,
    folder: Path,
    *,
    clock: Clock | None = None,
    timeout_s: float = 15,
    output_limit: int = process.OUTPUT_LIMIT,
) -> Finished:
    return await process.run(
        ["/bin/sh", "-c", script],
        folder=folder,
        clock=clock or SystemClock(),
        timeout_s=timeout_s,
        key=f"tn_1:1:{folder}",
        output_limit=output_limit,
    )


async def run_out_of_time(script: str, folder: Path) -> Finished:
    """Run a script that writes to `ready` when it has done its worst, then let its time pass."""
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(script, folder, clock=clock, timeout_s=60))
        await ready(folder)
        clock.advance(60)
    return task.result()


async def ready(folder: Path) -> list[int]:
    """Wait until a process says that it is ready, and return the ids it gives."""
    # Not in a thread: one that waits for a writer that never comes would outlive its test.
    pipe = os.open(folder / "ready", os.O_RDONLY | os.O_NONBLOCK)
    readable, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(pipe, readable.set)
    try:
        await readable.wait()
        return [int(word) for word in os.read(pipe, 4096).split()]
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


async def gone(process_id: int) -> None:
    """Wait until a process has ended, whoever's child it is."""
    try:
        watch = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(watch, ended.set)
    await ended.wait()
    loop.remove_reader(watch)
    os.close(watch)


class NotingClock(ManualClock):
    """A manual clock that tells when somebody waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.ordered = asyncio.Event()

    def call_later(self, seconds: float, act: Callable[[], object]) -> Alarm:
        self.ordered.set()
        return super().call_later(seconds, act)


def alive(mark: str) -> dict[int, str]:
    """Return the command lines of living processes that carry a mark."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in line and int(folder.name) != os.getpid():
                found[int(folder.name)] = line
    return found


def zombies() -> list[int]:
    """Return the children of this process that have ended and that nobody asked about."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(folder.name))
    return found


def sleeper(mark: str, *, before: str = "pass") -> str:
    """Return the shell words of a process that lives long and can be recognised."""
    program = (
        f"import os, signal, time; {before}; "
        "print(os.getpid(), file=open('ready', 'w'), flush=True); time.sleep(600)"
    )
    return f'{shlex.quote(sys.executable)} -I -S -c "{program}" {mark}'


async def test_a_command_ends_with_its_code_and_both_streams(tmp_path: Path) -> None:
    finished = await run("echo out; echo err >&2; pwd; exit 3", tmp_path)

    assert finished == Finished(exit_code=3, output=f"out\nerr\n{tmp_path}\n", dropped_bytes=0)


async def test_a_command_reads_nothing(tmp_path: Path) -> None:
    assert (await run("cat; echo end", tmp_path)).output == "end\n"


async def test_a_command_that_died_by_a_signal_says_which(tmp_path: Path) -> None:
    assert (await run("kill -SEGV $$", tmp_path)).exit_code == 128 + 11


async def test_a_command_is_given_its_key_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary")

    finished = await run("env; cat /proc/$PPID/environ", tmp_path)

    assert f"WAKEFUL_CALL=tn_1:1:{tmp_path}" in finished.output
    assert "canary" not in finished.output


async def test_a_command_that_sleeps_is_ended_when_its_time_is_up(
    tmp_path: Path, mark: str
) -> None:
    finished = await run_out_of_time(f"echo before; {sleeper(mark)}", tmp_path)

    assert (finished.exit_code, finished.output) == (None, "before\n")
    assert alive(mark) == {}
    assert zombies() == []


async def test_a_command_is_asked_to_end_before_it_is_killed(tmp_path: Path, mark: str) -> None:
    asked = "signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(1, b'asked')))"

    finished = await run_out_of_time(f"exec {sleeper(mark, before=asked)}", tmp_path)

    assert finished.output == "asked"


async def test_a_command_that_ignores_being_asked_is_killed(tmp_path: Path, mark: str) -> None:
    ignoring = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"

    finished = await run_out_of_time(f"trap '' TERM; {sleeper(mark, before=ignoring)}", tmp_path)

    assert finished.exit_code is None
    assert alive(mark) == {}
    assert zombies() == []


@pytest.mark.parametrize("wrapper", ["", "env -i "], ids=["marked", "without environment"])
async def test_a_double_fork_into_another_session_is_found(
    tmp_path: Path, mark: str, wrapper: str
) -> None:
    """F24: whatever a tool leaves behind is ended."""
    hiding = "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"
    ignoring = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); {hiding}"

    finished = await run_out_of_time(
        f"{wrapper}{sleeper(mark, before=ignoring)}; sleep 600", tmp_path
    )

    assert finished.exit_code is None
    assert alive(mark) == {}


async def test_nothing_runs_on_after_a_command_that_ended_well(tmp_path: Path, mark: str) -> None:
    script = f"setsid {sleeper(mark)} & cat ready > seen; echo done"

    finished = await run(script, tmp_path)

    assert (finished.exit_code, finished.output) == (0, "done\n")
    assert alive(mark) == {}


async def test_a_grandchild_that_keeps_the_pipe_does_not_hold_the_call(
    tmp_path: Path, mark: str
) -> None:
    # With its supervisor dead and its environment gone it cannot be found; the call ends anyway.
    script = f"env -i setsid {sleeper(mark)} & cat ready > seen; echo last words; kill -KILL $PPID"

    finished = await run(script, tmp_path)

    assert finished.output == "last words\n"
    (escaped,) = alive(mark)
    os.kill(escaped, signal.SIGKILL)


async def test_a_command_that_kills_its_supervisor_is_found_by_its_mark(
    tmp_path: Path, mark: str
) -> None:
    script = f"setsid {sleeper(mark)} & cat ready > seen; kill -KILL $PPID; sleep 600"

    finished = await run(script, tmp_path)

    assert finished.exit_code == 128 + 9
    await gone(int((tmp_path / "seen").read_text()))


async def test_a_command_that_stops_its_supervisor_is_ended_all_the_same(
    tmp_path: Path, mark: str
) -> None:
    clock = NotingClock()

    async with asyncio.TaskGroup() as group:
        script = f"kill -STOP $PPID; {sleeper(mark)}"
        task = group.create_task(run(script, tmp_path, clock=clock, timeout_s=60))
        (process_id,) = await ready(tmp_path)
        clock.ordered.clear()
        clock.advance(60)
        await clock.ordered.wait()
        clock.advance(CLEANUP_LIMIT_S)

    assert task.result().exit_code is None
    await gone(process_id)


async def test_a_cancelled_call_leaves_nothing(tmp_path: Path, mark: str) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(sleeper(mark), tmp_path))
        await ready(tmp_path)
        task.cancel()

    assert task.cancelled()
    assert alive(mark) == {}
    assert zombies() == []


async def test_a_call_cancelled_twice_is_still_cleaned_up(tmp_path: Path, mark: str) -> None:
    stubborn = f"trap '' TERM; {sleeper(mark, before='signal.signal(15, signal.SIG_IGN)')}"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(stubborn, tmp_path))
        await ready(tmp_path)
        started = alive(mark)
        task.cancel()
        await asyncio.sleep(0)  # lets it begin to clean up
        task.cancel()

    assert task.cancelled()
    for process_id in started:
        await gone(process_id)
    assert zombies() == []


async def test_a_runtime_that_dies_takes_its_commands_along(tmp_path: Path, mark: str) -> None:
    program = f"""
import asyncio
from pathlib import Path
from wakeful.tools import process
from wakeful.vocabulary.clock import SystemClock

folder = Path({str(tmp_path)!r})
script = {f"setsid {sleeper(mark)} & sleep 600"!r}
asyncio.run(
    process.run(
        ["/bin/sh", "-c", script], folder=folder, clock=SystemClock(), timeout_s=60, key="k"
    )
)
"""
    runtime = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), preexec_fn=die_with_parent
    )
    (process_id,) = await ready(tmp_path)

    runtime.kill()
    await runtime.wait()

    await gone(process_id)


async def test_a_flood_is_cut_and_counted_in_bounded_memory(tmp_path: Path) -> None:
    """F24: output is cut and marked."""
    before = new_peak_bytes()

    finished = await run(f"head -c {GIBIBYTE} /dev/zero", tmp_path, output_limit=100_000)

    assert finished.exit_code == 0
    assert len(finished.output) == 100_000
    assert finished.dropped_bytes == GIBIBYTE - 100_000
    assert peak_bytes() - before < 32 * 1024 * 1024


async def test_an_endless_flood_is_ended_when_its_time_is_up(tmp_path: Path, mark: str) -> None:
    finished = await run_out_of_time("yes & echo > ready; wait", tmp_path)

    assert finished.exit_code is None
    assert finished.output[:4] in ("", "y\ny\n")
    assert len(finished.output) <= process.OUTPUT_LIMIT


async def test_output_that_is_no_text_is_marked(tmp_path: Path) -> None:
    assert (await run(r"printf 'a\377\000b'", tmp_path)).output == "a\ufffd\ufffdb"


async def test_a_program_that_does_not_exist_is_told(tmp_path: Path) -> None:
    finished = await process.run(
        ["no-such-program"], folder=tmp_path, clock=SystemClock(), timeout_s=15, key="k"
    )

    assert finished.exit_code == 127
    assert finished.output == "no-such-program: No such file or directory\n"


@pytest.mark.parametrize("word", ["a\0b", "\ud800", "x" * 4_000_000], ids=["nul", "text", "long"])
async def test_words_that_no_command_can_have_are_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(InvalidInput, match="argv"):
        await run(word, tmp_path)


async def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="no process could be started"):
        await run("true", tmp_path / "missing")


async def test_many_commands_leave_no_descriptor_behind(tmp_path: Path) -> None:
    await run("true", tmp_path)
    before = len(os.listdir("/proc/self/fd"))

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(run("echo x", tmp_path))
    with pytest.raises(InvalidInput):
        await run("\0", tmp_path)

    assert len(os.listdir("/proc/self/fd")) == before
    assert zombies() == []


def new_peak_bytes() -> int:
    Path("/proc/self/clear_refs").write_text("5")  # begins the peak anew
    return peak_bytes()


def peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
