"""The reference page says what the command line does."""

from pathlib import Path

from wakeful.cli.exits import ExitCode
from wakeful.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


def test_the_reference_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_every_exit_code_is_documented():
    assert all(f"| {code.value} | " in PAGE.read_text(encoding="utf-8") for code in ExitCode)
