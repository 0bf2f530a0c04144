"""Ledgers keep every whole line, whatever happened to the process that wrote them."""

from pathlib import Path

from wakeful.testing import ledger
from wakeful.testing.ledger import Ledger


def test_what_was_noted_is_read_in_order(tmp_path: Path) -> None:
    lines = Ledger(tmp_path / "lines.jsonl", life="life1")
    lines.note("begun", key="a")
    lines.note("ended", key="a")
    lines.close()

    found = ledger.read(tmp_path / "lines.jsonl")

    assert [(line["what"], line["key"], line["life"]) for line in found] == [
        ("begun", "a", "life1"),
        ("ended", "a", "life1"),
    ]


def test_a_line_that_a_kill_cut_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    first = Ledger(path)
    first.note("whole", number=1)
    first.close()
    path.write_bytes(path.read_bytes() + b'{"what":"cu')

    second = Ledger(path)
    second.note("whole", number=2)
    second.close()

    assert [line["number"] for line in ledger.read(path)] == [1, 2]


def test_a_ledger_that_nobody_wrote_is_empty(tmp_path: Path) -> None:
    assert ledger.read(tmp_path / "none.jsonl") == []
