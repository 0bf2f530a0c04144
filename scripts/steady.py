"""Run `make test` five times in a row, each in another order and in other weather; all must pass.

Twice as it is; on a busy machine, where the shares of time do not count; as a background job that
ignores SIGINT; and from a clone in a folder with a space, under umask 000, in another zone and
locale, with homes on the disk and every process started by hand. What was printed is kept.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SPINNERS_PER_CORE = 2
ELSEWHERE = "a clone with spaces"
# Not for ever: whoever started it may be killed.
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
OTHER_ZONE, OTHER_LOCALE = "Pacific/Chatham", "tr_TR.UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way to run everything."""

    name: str
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    prepare: Callable[[], None] | None = None  # in the child, before it runs
    is_busy: bool = False
    is_elsewhere: bool = False


def ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def open_to_all() -> None:
    os.umask(0)


RUNS = (
    Run(name="plain"),
    Run(name="busy", environ={"SHARES": "off"}, is_busy=True),
    Run(name="SIGINT ignored", prepare=ignore_interrupts),
    Run(
        name="elsewhere",
        environ={
            "TZ": OTHER_ZONE,
            "LC_ALL": OTHER_LOCALE,
            "WAKEFUL_TEST_BY_HAND": "1",
            "HOMES": "disk",
            "SHARES": "off",
        },
        prepare=open_to_all,
        is_elsewhere=True,
    ),
    Run(name="plain again"),
)


def main(only: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="wakeful-steady-"))
    commit = git("rev-parse", "--short", "HEAD") + (
        "-dirty" if git("status", "--porcelain") else ""
    )
    print(f"commit {commit}; what is printed is kept in {folder}", flush=True)
    reports = [
        run(wanted, folder, number)
        for number, wanted in enumerate(RUNS, 1)
        if not only or wanted.name in only
    ]
    print(f"\ncommit {commit}")
    for line in reports:
        print(line)
    return 1 if any("FAILED" in line for line in reports) else 0


def run(wanted: Run, folder: Path, number: int) -> str:
    """Run everything once and return a line about it."""
    seed = str(random.SystemRandom().randrange(1 << 31))
    report, log = folder / f"{number}.json", folder / f"{number}.log"
    environ = {**os.environ, **wanted.environ, "SEED": seed, "REPORT": str(report)}
    print(f"{number}. {wanted.name}: seed {seed}, {log}", flush=True)
    with where(wanted, folder) as place, spinning(wanted), log.open("wb") as output:
        code = subprocess.run(
            ["make", "test"],
            cwd=place,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=wanted.prepare,
        ).returncode
    verdict = "ok" if code == 0 else f"FAILED ({code}): {log}"
    return f"{number}. {wanted.name:<15} seed {seed:<10}  {times(report)}  {verdict}"


def times(report: Path) -> str:
    if not report.exists():
        return "no figures"
    kinds: dict[str, list[dict[str, Any]]] = json.loads(report.read_text())["kinds"]
    took = {name: steps[-1]["seconds"] for name, steps in kinds.items() if steps}
    told = " ".join(f"{name} {seconds:.0f}" for name, seconds in took.items())
    return f"{sum(took.values()):5.0f} s ({told})"


@contextmanager
def where(wanted: Run, folder: Path) -> Generator[Path, None, None]:
    if not wanted.is_elsewhere:
        yield ROOT
        return
    clone = folder / ELSEWHERE
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    yield clone
    shutil.rmtree(clone, ignore_errors=True)


@contextmanager
def spinning(wanted: Run) -> Generator[None, None, None]:
    """Keep every core busy with two processes that do nothing else."""
    count = SPINNERS_PER_CORE * (os.cpu_count() or 1) if wanted.is_busy else 0
    spinners = [
        subprocess.Popen([sys.executable, "-S", "-c", SPIN, str(os.getpid())]) for _ in range(count)
    ]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
