"""How a line is read as a command, and that the page of the reference is the table."""

from pathlib import Path

import pytest

from wakeful.commands.reference import reference
from wakeful.commands.table import TABLE, read

PAGE = Path(__file__).parents[3] / "docs/reference/commands.md"


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "help", ""),
        ("  /HELP  stop ", "help", "stop"),
        ("/steer Path/Case\nand more", "steer", "Path/Case\nand more"),
        ("stop", "stop", ""),
        ("STOP!", "stop", ""),
    ],
)
def test_a_line_is_read_as_its_command(text: str, name: str, rest: str):
    assert read(text, is_operator=True) == (TABLE[name], rest)


@pytest.mark.parametrize(
    "text", ["", "/", "/unknown", "/help-me", "//help", "a /help", "stop it", f"/{1_000 * 'a'}"]
)
def test_anything_else_is_for_the_agent(text: str):
    assert read(text, is_operator=True) is None


def test_a_bare_stop_counts_from_the_operator_alone():
    assert read("stop", is_operator=False) is None


def test_the_page_of_the_reference_is_current():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"
