"""The log of a process: a private file and standard error, behind one redaction."""

import logging
import logging.handlers
import re
import sys
import threading
from datetime import datetime
from pathlib import Path

from wakeful.telemetry.redaction import Redaction
from wakeful.vocabulary.text import REPLACEMENT

NAME = "wakeful.log"
LARGEST_LOG = 10 * 1024 * 1024
OLD_LOGS = 3
LONGEST_LINE = 100_000  # characters of one record: hiding secrets in more would hold up the loop
LONGEST_SECRET = 4096

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

log = logging.getLogger(__name__)


class Redacting(logging.Formatter):
    """Writes lines, tracebacks included, in which no secret stands and which nobody can forge."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._redaction = redaction

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return when it happened, with the offset of the machine's zone."""
        happened = datetime.fromtimestamp(record.created).astimezone()
        return happened.isoformat(sep=" ", timespec="milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        whole = super().format(record)
        text = self._redaction.hide(whole[:LONGEST_LINE])
        if len(whole) > LONGEST_LINE:
            # The end goes too: a secret cut in half there would no longer be recognised.
            text = f"{text[:-LONGEST_SECRET]}… [{len(whole) - LONGEST_LINE} more characters]"
        # Indented, so that what somebody sent cannot look like a record of its own.
        return _CONTROL.sub(REPLACEMENT, text).replace("\n", "\n  ")


def start(home: Path, level: str, redaction: Redaction) -> None:
    """Log to a private file in the home folder, and warnings to standard error too.

    What Python itself would print there, warnings and the errors of threads, is logged instead.
    """
    (home / NAME).touch(mode=0o600)
    file = logging.handlers.RotatingFileHandler(
        home / NAME, maxBytes=LARGEST_LOG, backupCount=OLD_LOGS, encoding="utf-8"
    )
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.WARNING)
    for handler in (file, terminal):
        handler.setFormatter(Redacting(redaction))
        handler.handleError = _tell_lost
    logging.basicConfig(level=level.upper(), handlers=[file, terminal], force=True)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread
    sys.unraisablehook = _log_unraisable


def _tell_lost(record: logging.LogRecord) -> None:
    """Say that a line could not be written; Python's own way shows its words as they are."""
    kind = sys.exc_info()[0]
    sys.stderr.write(f"a log line of {record.name} is lost: {kind.__name__ if kind else ''}\n")


def _log_thread(failed: threading.ExceptHookArgs) -> None:
    name = failed.thread.name if failed.thread else "a thread"
    log.error("%s failed", name, exc_info=failed.exc_value)


def _log_unraisable(failed: "sys.UnraisableHookArgs") -> None:
    log.error(
        "%s: %r",
        failed.err_msg or "an error that nobody could take",
        failed.object,
        exc_info=failed.exc_value,
    )
