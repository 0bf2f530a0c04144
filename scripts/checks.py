"""Run the named checks, say how long each took, and fail when one fails or takes far too long.

The steps of one kind do not depend on each other and run at once; kinds follow one another. Tests
run in several processes, in a random order that SEED repeats, and share one PostgreSQL. SHARES=off
is for machines with something else to do, HOMES=disk puts the homes of the tests on a disk, and
REPORT names a file for the figures.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PLACES = ("src", "tests", "bench", "examples", "scripts")
SHARES = (  # seconds on two cores: 17 minutes in all
    (("check",), 120),
    (("conformance", "integration"), 420),
    (("acceptance",), 300),
    (("browser",), 180),
)
FAR_TOO_LONG = 2  # times the share
ON_POSTGRES = ("conformance", "integration", "acceptance")
WORKERS = {"unit": 1, "browser": 1}  # beside the checks; with one Chromium. The rest: `workers`
SLOWEST = 20
# Whoever has all of these skips no test.
NO_ENGINE = "no container engine runs here"
TOOLS = ("chromium", "curl", "ip", "openssl", "strace")
IN_MEMORY = Path("/dev/shm")
ROOM = 2 << 30  # bytes that must be free there for the homes of the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    command: list[str]
    results: Path | None = None  # what became of each test


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    name: str
    seconds: float
    skipped: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a step; of a kind with several steps there is one more, for all of them."""

    name: str
    code: int
    seconds: float
    cpu_seconds: float
    tests: list[Test] = field(default_factory=list[Test])


def main(names: list[str]) -> int:
    os.chdir(ROOT)
    seed = os.environ.get("SEED") or str(random.randrange(1 << 31))
    folder = Path(tempfile.mkdtemp(prefix="wakeful-checks-", dir=place_for_homes()))
    kinds: dict[str, list[Outcome]] = {}
    with postgres(names):
        for name in names:
            kinds[name] = run_kind(name, seed, folder)
    outcomes = [outcome for steps in kinds.values() for outcome in steps]
    failed = [outcome.name for outcome in outcomes if outcome.code]
    show_slowest(outcomes)
    complaints = [*show_times(kinds), *unexpected_skips(outcomes)]
    for complaint in complaints:
        print(complaint)
    print(f"seed {seed}; again in this order: make test SEED={seed}")
    if failed:
        print(f"FAILED: {', '.join(failed)}; what the tests left is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    has_failed = bool(failed) or any(line.startswith("FAILED") for line in complaints)
    write_report(seed, kinds, has_failed=has_failed)
    return int(has_failed)


def run_kind(name: str, seed: str, folder: Path) -> list[Outcome]:
    started = time.monotonic()
    outcomes = run_group(steps_of(name, seed, folder))
    if len(outcomes) == 1 and outcomes[0].name == name:
        return outcomes
    whole = Outcome(
        name=name,
        code=0,
        seconds=time.monotonic() - started,
        cpu_seconds=sum(outcome.cpu_seconds for outcome in outcomes),
    )
    return [*outcomes, whole]


def steps_of(name: str, seed: str, folder: Path) -> list[Step]:
    if name != "check":
        return tests(name, seed, folder)
    return [
        Step(name="format", command=module("ruff", "format", "--check", "--quiet", *present())),
        Step(name="lint", command=module("ruff", "check", "--quiet", *present())),
        Step(name="types", command=module("basedpyright", *present())),
        Step(name="imports", command=[str(BIN / "lint-imports"), "--no-cache", "--no-logo"]),
        *tests("unit", seed, folder),
    ]


def tests(kind: str, seed: str, folder: Path) -> list[Step]:
    """A kind of test that has no file yet is no step."""
    where = Path("tests", kind)
    if not any(where.rglob("test_*.py")):
        return []
    results = folder / f"{kind}.xml"
    count = WORKERS.get(kind, workers())
    command = module(
        *("pytest", "--quiet", "-rs", str(where), "--inline-snapshot=disable"),
        *(f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", "-p", "no:cacheprovider"),
        f"--basetemp={folder / kind}",
        *(() if kind == "integration" else ("-p", "no:schemathesis")),  # a second to load
        *(f"--junitxml={results}", "-o", "junit_duration_report=total"),
        *(("-n", str(count), "--dist", "worksteal") if count > 1 else ()),
    )
    return [Step(name=kind, command=command, results=results)]


def workers() -> int:
    """One more than there are processors: a test that waits for something needs none."""
    return (os.cpu_count() or 1) + 1


def module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def present() -> list[str]:
    return [place for place in PLACES if Path(place).exists()]


def place_for_homes() -> Path | None:
    """Return a folder in memory, where a sync costs nothing, or None for the usual one.

    What a killed process wrote is there all the same; power cuts and full disks are made by their
    own tests.
    """
    if os.environ.get("HOMES") == "disk" or not os.access(IN_MEMORY, os.W_OK):
        return None
    found = os.statvfs(IN_MEMORY)
    has_room = found.f_bavail * found.f_frsize >= ROOM
    return IN_MEMORY if has_room and not found.f_flag & os.ST_NOEXEC else None


@contextmanager
def postgres(names: list[str]) -> Generator[None, None, None]:
    """Have one PostgreSQL for all tests of the run."""
    if not set(names) & set(ON_POSTGRES):
        yield
        return
    command = module("tests.postgres_server")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            os.environ["WAKEFUL_TEST_POSTGRES"] = server.stdout.readline().decode().strip()
            yield
        finally:
            server.stdin.close()


def run_group(steps: list[Step]) -> list[Outcome]:
    if len(steps) == 1:
        return [run_alone(steps[0])]
    started = time.monotonic()
    running = {process.pid: (step, process, output) for step, process, output in map(start, steps)}
    outcomes: list[Outcome] = []
    while running:
        pid, status, used = os.wait4(-1, 0)
        if pid not in running:
            continue
        step, process, output = running.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        show(step, output)
        outcomes.append(
            Outcome(
                name=step.name,
                code=process.returncode,
                seconds=time.monotonic() - started,
                cpu_seconds=used.ru_utime + used.ru_stime,
                tests=read_results(step.results),
            )
        )
    return outcomes


def run_alone(step: Step) -> Outcome:
    print(f"== {step.name}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(step.command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Outcome(
        name=step.name,
        code=process.returncode,
        seconds=time.monotonic() - started,
        cpu_seconds=used.ru_utime + used.ru_stime,
        tests=read_results(step.results),
    )


def start(step: Step) -> tuple[Step, subprocess.Popen[bytes], IO[bytes]]:
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by show, after the process ended)
    process = subprocess.Popen(step.command, stdout=output, stderr=subprocess.STDOUT)
    return step, process, output


def show(step: Step, output: IO[bytes]) -> None:
    print(f"== {step.name}", flush=True)
    with output:
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.buffer.flush()


def read_results(path: Path | None) -> list[Test]:
    if path is None or not path.exists():
        return []
    return [
        Test(
            name=f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}",
            seconds=float(case.get("time", "0")),
            skipped=None if (skip := case.find("skipped")) is None else skip.get("message"),
        )
        for case in ElementTree.parse(path).iter("testcase")
    ]


def show_slowest(outcomes: list[Outcome]) -> None:
    every = [test for outcome in outcomes for test in outcome.tests]
    if not every:
        return
    print(f"\nthe {SLOWEST} slowest of {len(every)} tests")
    for test in sorted(every, key=lambda test: -test.seconds)[:SLOWEST]:
        print(f"{test.seconds:7.1f} s  {test.name}")


def show_times(kinds: dict[str, list[Outcome]]) -> list[str]:
    """Print how long everything took; return what is to be said about it."""
    print(f"\n{'':<12} {'time':>9} {'processors':>12}")
    for steps in kinds.values():
        for outcome in steps:
            verdict = "ok" if outcome.code == 0 else f"FAILED ({outcome.code})"
            used = f"{outcome.seconds:7.1f} s {outcome.cpu_seconds:10.1f} s"
            print(f"{outcome.name:<12} {used}  {verdict}")
    if os.environ.get("SHARES") == "off":
        return []
    return [line for names, share in SHARES if (line := over_its_share(kinds, names, share))]


def over_its_share(
    kinds: dict[str, list[Outcome]], names: tuple[str, ...], share: int
) -> str | None:
    took = sum(kinds[name][-1].seconds for name in names if kinds.get(name))
    if took <= share:
        return None
    verdict = "FAILED: " if took > FAR_TOO_LONG * share else ""
    return f"{verdict}{' and '.join(names)} took {took:.0f} s of {share} s"


def unexpected_skips(outcomes: list[Outcome]) -> list[str]:
    """Say what was skipped; where nothing is missing, nothing may be."""
    skips = [test for outcome in outcomes for test in outcome.tests if test.skipped is not None]
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    excused = missing or os.geteuid() != 0 or sys.platform != "linux"
    lines = [f"skipped: {test.name}: {test.skipped}" for test in skips]
    # A container engine needs a daemon: no script can install one everywhere.
    unexcused = [test for test in skips if NO_ENGINE not in (test.skipped or "")]
    if unexcused and not excused:
        lines.append(f"FAILED: {len(unexcused)} skipped, though every tool is here")
    return lines


def write_report(seed: str, kinds: dict[str, list[Outcome]], *, has_failed: bool) -> None:
    if not (path := os.environ.get("REPORT")):
        return
    told = {
        name: [asdict(step) | {"tests": len(step.tests)} for step in kinds[name]] for name in kinds
    }
    Path(path).write_text(json.dumps({"seed": seed, "failed": has_failed, "kinds": told}, indent=1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
