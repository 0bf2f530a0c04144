"""Every threat, fault and invariant of the project's tables has a test that bears its number.

A number stands in the docstring of the test; invariants stand beside the mutants that break them.
"""

import ast
import re

import pytest

from tests.sources import TESTS, texts, trees
from wakeful.testing.checker.check import INVARIANTS

MUTANTS = "acceptance/test_checker_catches_mutants.py"
NUMBERS = [
    *(f"T{number}" for number in range(1, 29)),
    *(f"F{number}" for number in range(1, 48)),
    *(f"I{number}" for number in range(1, 26)),
]
# What a feature brings that is not built yet; whoever builds it brings the test and strikes it out.
NOT_BUILT = {
    "A2A": {"T21"},
    "hub": {"T25", "T26"},
    "subagents": {"T20", "F25", "I18"},
    "console": {"T27", "F47"},
    "many nodes": {"T28", *(f"F{number}" for number in range(35, 47))},
}
ABSENT = {number for numbers in NOT_BUILT.values() for number in numbers}


def borne() -> dict[str, list[str]]:
    """Return the tests that bear each number."""
    found: dict[str, list[str]] = {}
    for file, tree in trees(TESTS).items():
        name = file.rpartition("/")[2]
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("test_"):
                continue
            head = (ast.get_docstring(node) or "").partition(":")[0]
            for number in re.findall(r"\b[TFI]\d+\b", head):
                found.setdefault(number, []).append(f"{name}::{node.name}")
    for number in re.findall(r'"(I\d+)"\)', texts(TESTS)[MUTANTS]):
        found.setdefault(number, []).append(MUTANTS)
    return found


BORNE = borne()


@pytest.mark.parametrize("number", [number for number in NUMBERS if number not in ABSENT])
def test_a_number_has_its_test(number: str):
    assert BORNE.get(number)


def test_what_is_said_to_be_absent_is_absent():
    assert {number: BORNE[number] for number in ABSENT if number in BORNE} == {}
    assert set(NUMBERS) >= ABSENT


def test_no_test_bears_a_number_that_does_not_exist():
    assert BORNE.keys() - set(NUMBERS) == set()


def test_the_checker_knows_every_invariant_that_is_built():
    assert set(INVARIANTS) == {
        number for number in NUMBERS if number[0] == "I" and number not in ABSENT
    }
