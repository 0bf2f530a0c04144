"""Data is JSON when asked for; a terminal is never made to obey what somebody wrote."""

import io
import json

from wakeful.cli.output import BOLD, CommandOutput, safe_lines
from wakeful.cli.transfer import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def output(
    *, is_json: bool = False, environ: dict[str, str] | None = None
) -> tuple[CommandOutput, Terminal]:
    out = Terminal()
    return CommandOutput(is_json=is_json, environ=environ or {}, out=out, error=Terminal()), out


def test_data_is_one_document_or_lines():
    plain, out = output()
    plain.data({"a": 1}, ["a is 1"])
    assert out.getvalue() == "a is 1\n"

    machine, out = output(is_json=True)
    machine.data({"a": 1}, ["a is 1"])
    assert json.loads(out.getvalue()) == {"a": 1}


def test_a_stream_is_one_document_per_line():
    machine, out = output(is_json=True)

    machine.item({"a": 1}, "")
    machine.item({"a": 2}, "")

    assert [json.loads(line) for line in out.getvalue().splitlines()] == [{"a": 1}, {"a": 2}]


def test_colours_are_for_terminals_that_want_them():
    assert output()[0].styled("x", BOLD) == "\x1b[1mx\x1b[0m"
    assert output(environ={"NO_COLOR": "1"})[0].styled("x", BOLD) == "x"
    assert output(environ={"TERM": "dumb"})[0].styled("x", BOLD) == "x"
    assert CommandOutput(is_json=False, environ={}, out=io.StringIO()).styled("x", BOLD) == "x"


def test_a_table_is_aligned_and_holds_nothing_a_terminal_obeys():
    plain, _ = output(environ={"NO_COLOR": "1"})

    lines = plain.table(["name", "text"], [["ann", "a\nb\x1b[2J"], ["bartholomew", "c"]])

    assert lines == ["name         text", "ann          a b [2J", "bartholomew  c"]
    assert safe_lines("a\x1b]0;t\x07\n\tb\u202e") == "a]0;t\n\tb"


STEERING = "a\x9b2J\x7f\u202eb\u2066c\u200d"


def test_no_json_steers_a_terminal_and_all_of_it_means_the_same():
    """T16: neither as a document, nor as a line, nor as an exported transcript."""
    machine, out = output(is_json=True)
    machine.data({"a": STEERING}, [])
    machine.item({"a": STEERING}, "")
    shown = io.BytesIO()
    screen = Screen(shown)
    for byte in json.dumps({"a": STEERING}, ensure_ascii=False).encode():
        screen.write(bytes([byte]))

    for text in (out.getvalue(), shown.getvalue().decode()):
        assert not set("\x9b\x7f\u202e\u2066") & set(text)
    assert json.loads(shown.getvalue()) == {"a": STEERING}
    assert json.loads(out.getvalue().splitlines()[-1]) == {"a": STEERING}


def test_no_name_is_shown_in_another_order():
    """T16: a label that turns a line around tells of something else."""
    plain, _ = output(environ={"NO_COLOR": "1"})

    assert plain.table(["label"], [[STEERING]])[1] == "a 2J bc\u200d"


def test_progress_is_shown_on_a_terminal_only():
    error = Terminal()
    CommandOutput(is_json=False, environ={}, out=io.StringIO(), error=error).progress(1, 2)
    assert error.getvalue() == "\r 50 %"

    quiet = io.StringIO()
    CommandOutput(is_json=False, environ={}, out=io.StringIO(), error=quiet).progress(1, 2)
    assert quiet.getvalue() == ""


def test_long_work_without_a_measure_is_told_on_a_terminal_only():
    error = Terminal()
    CommandOutput(is_json=False, environ={}, out=io.StringIO(), error=error).working("checking x")
    assert error.getvalue() == "checking x…\n"

    for is_json, quiet in ((False, io.StringIO()), (True, Terminal())):
        CommandOutput(is_json=is_json, environ={}, out=io.StringIO(), error=quiet).working(
            "checking x"
        )
        assert quiet.getvalue() == ""
