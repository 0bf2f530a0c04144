"""Secrets are compared in constant time: never by `==`, `!=` or `in`, which tell how far they went.

This reads the source, so it knows secrets by the names that hold them.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import SOURCE, trees

ROOMS = ("access/", "doors/", "net/")
SECRETS = frozenset(
    {"token", "secret", "signature", "digest", "cookie", "password", "code", "hash"}
)
HARMLESS = frozenset({"status_code"})

# Codes of ours that everybody may know, which is why they may be compared.
ALLOWED = {
    ("doors/http/guard.py", "problem.code == 'unauthorized'"),
    ("doors/http/problems.py", "self.code in _LAST_WORDS"),
}


def name_of(node: ast.expr) -> str:
    """Return what an operand is called, by its last word."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return name_of(node.func)
        case ast.Await():
            return name_of(node.value)
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
        case ast.Subscript():
            return name_of(node.value)
        case _:
            return ""


def holds_secret(name: str) -> bool:
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return name not in HARMLESS and not SECRETS.isdisjoint(word.removesuffix("s") for word in words)


def comparisons(source: ast.Module) -> Iterator[str]:
    """Yield every comparison of a secret that takes as long as its halves agree."""
    for node in ast.walk(source):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
                if isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) and any(
                    holds_secret(name_of(operand)) for operand in (left, right)
                ):
                    yield ast.unparse(node)
        elif isinstance(node, ast.Match) and holds_secret(name_of(node.subject)):
            yield f"match {ast.unparse(node.subject)}"


def test_no_secret_is_compared_in_a_way_that_tells_how_much_of_it_is_right():
    """T7: by hashes, and in constant time."""
    found = {
        (file, comparison)
        for file, source in trees(SOURCE).items()
        if file.startswith(ROOMS)
        for comparison in comparisons(source)
    }

    assert found == ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        "token == given",
        "given != row.secret",
        "headers['cookie'] == wanted",
        "digest(given) == known",
        "self._password in known",
        "expected_signature not in signatures",
        "1 < 2 and (await login_code()) == given",
        "a < b == token.hash",
        "match secret:\n    case 'x': pass",
    ],
)
def test_a_careless_comparison_is_found(source: str):
    assert list(comparisons(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "hmac.compare_digest(token.hash, secret_hash)",
        "secret is None",
        "token.id == other.id",
        "len(secret) < SHORTEST",
        "len(secret) == 3",
        "answer.status_code == 200",
    ],
)
def test_what_tells_nothing_is_let_pass(source: str):
    assert not list(comparisons(ast.parse(source)))
