"""No secret stands in a log, whichever way it came there."""

import gc
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from wakeful.telemetry import log
from wakeful.telemetry.redaction import Redaction

SECRET = "s3cret-canary"


Begin = Callable[[], Path]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Start a log and return its file; afterwards everything is as it was."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level

    def start() -> Path:
        root.handlers[:] = []  # closed when another log starts, and not ours to close
        log.start(tmp_path, "info", Redaction([SECRET]))
        return tmp_path / log.NAME

    yield start
    logging.captureWarnings(False)
    for handler in root.handlers:
        if handler not in kept:
            handler.close()
    root.handlers[:] = kept
    root.setLevel(level)


def test_messages_arguments_and_exceptions_are_hidden(
    begin: Begin, capsys: pytest.CaptureFixture[str]
):
    written = begin()
    told = logging.getLogger("anybody")
    told.warning(f"in the message {SECRET}")
    told.warning("in the arguments %s %r", SECRET, {"token": SECRET})
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"in the exception {SECRET}") from error
    except ValueError:
        told.exception("failed")

    for text in (written.read_text(), capsys.readouterr().err):
        assert text.count("(hidden)") == 5
        assert "canary" not in text
        assert "Traceback" in text


@pytest.mark.parametrize("name", ["uvicorn", "uvicorn.error", "asyncio"])
def test_the_loggers_of_others_write_to_the_same_places(begin: Begin, name: str):
    written = begin()
    logging.getLogger(name).error("Authorization: Bearer canary-canary, %s", SECRET)

    assert "(hidden), (hidden)" in written.read_text()


def test_warnings_are_logged_and_hidden(begin: Begin):
    written = begin()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(f"old: {SECRET}", stacklevel=1)

    assert "old: (hidden)" in written.read_text()


def test_the_error_of_a_thread_is_logged_and_hidden(
    begin: Begin, capsys: pytest.CaptureFixture[str]
):
    written = begin()

    def fail() -> None:
        raise ValueError(SECRET)

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()

    assert "worker failed" in written.read_text()
    assert "ValueError: (hidden)" in written.read_text()
    assert "canary" not in capsys.readouterr().err


def test_an_error_that_nobody_can_take_is_logged_and_hidden(
    begin: Begin, capsys: pytest.CaptureFixture[str]
):
    written = begin()

    class Broken:
        def __del__(self) -> None:
            raise ValueError(SECRET)

    broken = Broken()
    del broken
    gc.collect()

    assert "ValueError: (hidden)" in written.read_text()
    assert "canary" not in capsys.readouterr().err


def test_a_log_is_private_and_says_as_much_as_it_is_told_to(begin: Begin):
    written = begin()
    logging.getLogger("wakeful").debug("quiet")
    logging.getLogger("wakeful").info("loud")

    assert "quiet" not in written.read_text()
    assert "loud" in written.read_text()
    assert written.stat().st_mode & 0o077 == 0


def test_a_line_that_cannot_be_written_is_told_without_its_words(
    begin: Begin, capsys: pytest.CaptureFixture[str]
):
    begin()
    logging.getLogger("anybody").error("%d %d", SECRET)

    assert capsys.readouterr().err.count("a log line of anybody is lost: TypeError\n") == 2


def test_a_line_tells_its_time_with_an_offset(begin: Begin):
    file = begin()

    logging.getLogger("wakeful.test").warning("here")

    assert datetime.fromisoformat(file.read_text()[:29]).utcoffset() is not None


def test_what_is_logged_cannot_pretend_to_be_another_line_or_steer_a_terminal(begin: Begin):
    written = begin()
    forged = "2026-01-01 00:00:00.000+00:00 INFO    wakeful: all is well"
    logging.getLogger("anybody").warning("said: %s", f"hello\n{forged}\r{forged}\x1b[2J\x9b2J")

    first, second = written.read_text().splitlines()
    assert first.endswith("said: hello")
    assert second.startswith(f"  {forged}")
    assert not set(second) & {"\r", "\x1b", "\x9b"}


def test_a_line_without_end_is_cut_and_no_part_of_a_secret_is_left(begin: Begin):
    written = begin()
    most = log.LONGEST_LINE
    for position in range(most - 80, most + 1, 9):
        logging.getLogger("anybody").warning("%s", "x" * (position - 60) + SECRET + "y" * most)

    for line in written.read_text().splitlines():
        assert len(line) < most + 100
        assert "s3c" not in line
        assert line.endswith("more characters]")
