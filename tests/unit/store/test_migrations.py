import pytest

from wakeful.store.migrations import BINARY_VERSION, Migration, packaged
from wakeful.vocabulary.errors import Invariant

TRIGGER = """
-- a comment; with a semicolon
CREATE TABLE a (id TEXT); -- and another; one
CREATE TRIGGER t AFTER INSERT ON a BEGIN
    DELETE FROM a WHERE id = 'x;y';
    DELETE FROM a WHERE id = 'z';
END;
CREATE TABLE b (id TEXT DEFAULT ';');
"""


def test_statements_end_where_sql_says_so() -> None:
    statements = Migration(1, "trigger", TRIGGER).statements()

    assert len(statements) == 3
    assert "CREATE TABLE a" in statements[0]
    assert statements[1].endswith("END;")
    assert statements[2] == "CREATE TABLE b (id TEXT DEFAULT ';');"


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT 1; SELECT ';"])
def test_a_statement_that_is_not_ended_is_our_mistake(sql: str) -> None:
    with pytest.raises(Invariant, match="ends inside a statement"):
        Migration(1, "open", sql).statements()


def test_a_comment_may_end_a_migration() -> None:
    assert Migration(1, "a", "SELECT 1;\n-- that was all\n").statements() == ["SELECT 1;"]


def test_a_migration_allows_every_binary_unless_it_says_otherwise() -> None:
    assert Migration(1, "a", "SELECT 1;").min_binary == 1
    assert Migration(1, "a", "-- why\n-- min_binary: 7\nSELECT 1;").min_binary == 7


def test_the_packaged_migrations_are_numbered_from_one_and_allow_this_binary() -> None:
    steps = packaged()

    for dialect in ("sqlite", "postgres"):
        numbers = [step.number for step in steps if step.dialect in (None, dialect)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert all(step.min_binary <= BINARY_VERSION for step in steps)
