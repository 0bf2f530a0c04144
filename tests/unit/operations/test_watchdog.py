"""The watchdog complains of a silence, and its exit code is one that the commands know."""

import logging
import subprocess
import sys
import threading

import pytest

from wakeful.cli.exits import ExitCode
from wakeful.operations.watchdog import STALLED, Watchdog
from wakeful.telemetry.metrics import Metrics
from wakeful.vocabulary.clock import SystemClock


def sample(metrics: Metrics, name: str) -> float:
    value = metrics.registry.get_sample_value(name)
    assert value is not None
    return value


async def test_a_silence_that_ends_in_time_is_told_with_its_stacks_and_counted_once(
    caplog: pytest.LogCaptureFixture,
):
    clock, metrics = SystemClock(), Metrics()
    watchdog = Watchdog(clock, metrics, limit_s=3.0)
    watchdog.start()
    try:
        with caplog.at_level(logging.CRITICAL):
            while not sample(metrics, "wakeful_loop_stalls_total"):
                threading.Event().wait(0.01)  # the event loop hangs meanwhile
            while sample(metrics, "wakeful_loop_lag_seconds") < 0.5:
                await clock.sleep(0.01)
    finally:
        watchdog.stop()

    assert sample(metrics, "wakeful_loop_stalls_total") == 1
    assert "test_watchdog.py" in caplog.text
    assert "answers again" in caplog.text


_NO_THREADS = """
import asyncio, threading, time
from wakeful.operations.watchdog import Watchdog
from wakeful.telemetry.metrics import Metrics
from wakeful.vocabulary.clock import SystemClock

def refused(thread):
    raise RuntimeError("can't start new thread")

async def main():
    Watchdog(SystemClock(), Metrics(), limit_s=0.5).start()
    threading.Thread.start = refused
    time.sleep(15)

asyncio.run(main())
"""


def test_a_process_that_hangs_is_ended_even_if_no_thread_can_be_started():
    ended = subprocess.run([sys.executable, "-c", _NO_THREADS], capture_output=True)

    assert ended.returncode == STALLED


def test_the_exit_code_of_a_stalled_server_is_one_that_the_commands_know():
    assert STALLED == ExitCode.STALLED
