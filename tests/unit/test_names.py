"""Names say what a thing does: one class, one name; and no word that once meant ten things."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from tests.sources import SOURCE, trees

# Metaphors of the past, each with what to write instead.
REFUSED = {
    "told": "error_text, sentence, event, receipt: what it is",
    "desk": "context: what the verbs of the command line are given",
    "mind": "agent",
    "minds": "agents",
    "patient": "the model, or the installation",
    "pen": "what it depends on",
    "voice": "model",
    "voices": "models",
    "thinker": "runner",
    "setback": "rollback",
}
# Words of the API, which stay: the first troubles of an import, a sentence of the doctor.
WORDS_OF_THE_API = {
    ("doors/http/transfers.py", "told"),
    ("transcript/jsonl/importing.py", "told"),
    ("operations/doctor.py", "told"),
    ("cli/care.py", "told"),
}


def names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that a module gives or uses."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case _:
                pass


def words(name: str) -> set[str]:
    """Return the words of a name in snake or camel case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@cache
def places_of_words() -> dict[str, set[tuple[str, str]]]:
    """Return for each word the files and the names that it stands in."""
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for file, tree in trees(SOURCE).items():
        for name in set(names(tree)):
            for word in words(name):
                found[word].add((file, name))
    return found


def test_a_class_has_its_name_for_itself():
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in trees(SOURCE).items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file)

    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("word", REFUSED)
def test_a_metaphor_names_nothing(word: str):
    found = places_of_words().get(word, set())

    assert found - WORDS_OF_THE_API == set(), REFUSED[word]
