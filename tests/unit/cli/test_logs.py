"""No secret stands in a log, whichever way it came there."""

import logging
import sys
from pathlib import Path

import pytest

from wakeful.cli import logs
from wakeful.cli.logs import Redacting

SECRET = "s3cret-canary"


@pytest.fixture(autouse=True)
def quiet():
    """Leave the root logger as it was."""
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in kept:
            handler.close()
    root.handlers[:] = kept
    root.setLevel(level)


def test_messages_arguments_and_tracebacks_are_redacted():
    formatter = Redacting([SECRET, "", f"{SECRET}-longer"])
    try:
        raise ValueError(f"token {SECRET}")
    except ValueError:
        record = logging.LogRecord(
            "x",
            logging.ERROR,
            "",
            1,
            "with %s and %s",
            (SECRET, f"{SECRET}-longer"),
            sys.exc_info(),
        )

    line = formatter.format(record)

    assert "canary" not in line
    assert "longer" not in line
    assert "ValueError: token (hidden)" in line


def test_a_log_is_private_and_its_level_can_change(tmp_path: Path):
    logs.start(tmp_path, "warning", [SECRET])
    logging.getLogger("wakeful").info("quiet")
    logs.change_level("info")
    logging.getLogger("wakeful").info("loud %s", SECRET)

    written = (tmp_path / logs.NAME).read_text()

    assert "quiet" not in written
    assert "loud (hidden)" in written
    assert (tmp_path / logs.NAME).stat().st_mode & 0o077 == 0
