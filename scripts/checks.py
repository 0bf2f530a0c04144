"""Run the named checks, print how long each took, and fail when one of them fails.

The steps of one group do not depend on each other and run at once; groups follow one another.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PLACES = ("src", "tests", "bench", "examples", "scripts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    command: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    code: int
    seconds: float


def main(names: list[str]) -> int:
    os.chdir(ROOT)
    outcomes: list[Outcome] = []
    for name in names:
        outcomes += run_group(group(name))
    report(outcomes)
    return 1 if any(outcome.code for outcome in outcomes) else 0


def group(name: str) -> list[Step]:
    if name != "check":
        return tests(name)
    return [
        Step(name="format", command=module("ruff", "format", "--check", "--quiet", *present())),
        Step(name="lint", command=module("ruff", "check", "--quiet", *present())),
        Step(name="types", command=module("basedpyright", *present())),
        Step(name="imports", command=[str(BIN / "lint-imports"), "--no-cache", "--no-logo"]),
        *tests("unit"),
    ]


def tests(kind: str) -> list[Step]:
    """A kind of test that has no file yet is no step."""
    folder = Path("tests", kind)
    if not any(folder.rglob("test_*.py")):
        return []
    return [Step(name=kind, command=module("pytest", "--quiet", "-rs", str(folder)))]


def module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def present() -> list[str]:
    return [place for place in PLACES if Path(place).exists()]


def run_group(steps: list[Step]) -> list[Outcome]:
    if len(steps) == 1:
        return [run_alone(steps[0])]
    started = time.monotonic()
    running = [(step, *start(step)) for step in steps]
    waiting = list(running)
    outcomes: list[Outcome] = []
    while waiting:
        for entry in list(waiting):
            step, process, output = entry
            code = process.poll()
            if code is None:
                continue
            waiting.remove(entry)
            seconds = time.monotonic() - started
            outcomes.append(Outcome(name=step.name, code=code, seconds=seconds))
            show(step, output)
        time.sleep(0.02)
    return outcomes


def run_alone(step: Step) -> Outcome:
    print(f"== {step.name}", flush=True)
    started = time.monotonic()
    code = subprocess.run(step.command, check=False).returncode
    return Outcome(name=step.name, code=code, seconds=time.monotonic() - started)


def start(step: Step) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by show, after the process ended)
    process = subprocess.Popen(step.command, stdout=output, stderr=subprocess.STDOUT)
    return process, output


def show(step: Step, output: IO[bytes]) -> None:
    print(f"== {step.name}", flush=True)
    with output:
        output.seek(0)
        sys.stdout.buffer.write(output.read())
        sys.stdout.buffer.flush()


def report(outcomes: list[Outcome]) -> None:
    print()
    for outcome in outcomes:
        verdict = "ok" if outcome.code == 0 else f"FAILED ({outcome.code})"
        print(f"{outcome.name:<12} {outcome.seconds:7.1f} s  {verdict}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
