"""What `wakeful logs --json` says of each line of the log."""

import logging
from datetime import datetime

from wakeful.cli.logs import LogLine, parsed
from wakeful.telemetry.log import Redacting
from wakeful.telemetry.redaction import Redaction


def test_a_line_of_the_log_is_told_part_by_part() -> None:
    record = logging.LogRecord("wakeful.x", logging.WARNING, "", 0, "a: b\nmore", None, None)

    first, second = Redacting(Redaction()).format(record).splitlines()

    line = parsed(first)
    assert (line.level, line.name, line.text) == ("warning", "wakeful.x", "a: b")
    assert line.at is not None
    assert datetime.fromisoformat(line.at).utcoffset() is not None
    assert parsed(second) == LogLine(text="  more")
