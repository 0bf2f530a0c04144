"""SQL is written once and means the same on every database."""

import pytest

from tests.conformance.store.tables import INSERT_NOTE, add_note
from wakeful.store.database import Store, Tx
from wakeful.vocabulary.errors import Invariant


@pytest.fixture(autouse=True)
async def notes(store: Store) -> None:
    def fill(tx: Tx) -> None:
        rows = [{"id": name, "value": value, "body": ""} for value, name in enumerate("abc")]
        tx.many(INSERT_NOTE, rows)

    await store.transact(fill)


@pytest.mark.parametrize(
    ("names", "inside", "outside"),
    [
        (["a", "c", "zz"], ["a", "c"], ["b"]),
        ([], [], ["a", "b", "c"]),
        (["b"], ["b"], ["a", "c"]),
        (["it's"], [], ["a", "b", "c"]),
        (["it's", '"q"', "\\", "b"], ["b"], ["a", "c"]),
    ],
)
async def test_a_list_is_one_parameter(
    store: Store, names: list[str], inside: list[str], outside: list[str]
) -> None:
    def select(tx: Tx, operator: str) -> list[str]:
        rows = tx.all(f"SELECT id FROM notes WHERE id {operator} :names ORDER BY id", names=names)
        return [row[0] for row in rows]

    assert await store.transact(lambda tx: select(tx, "IN")) == inside
    assert await store.transact(lambda tx: select(tx, "NOT IN")) == outside
    read = await store.read("SELECT id FROM notes WHERE id IN :names ORDER BY id", names=names)
    assert [row[0] for row in read] == inside


async def test_a_list_of_integers_is_one_parameter_too(store: Store) -> None:
    rows = await store.read(
        "SELECT id FROM notes WHERE value IN :values ORDER BY id", values=[0, 2, 2**62]
    )

    assert [row[0] for row in rows] == ["a", "c"]


async def test_a_list_of_one_value_is_compared_with_it_and_with_nothing_else(
    store: Store,
) -> None:
    def select(tx: Tx, values: list[int]) -> list[str]:
        rows = tx.all("SELECT id FROM notes WHERE value IN :values ORDER BY id", values=values)
        return [row[0] for row in rows]

    found = await store.transact(lambda tx: [select(tx, [1]), select(tx, [1, 2]), select(tx, [2])])

    assert found == [["b"], ["b", "c"], ["c"]]


async def test_run_counts_the_rows_it_changed(store: Store) -> None:
    def changes(tx: Tx) -> list[int]:
        return [
            tx.run("UPDATE notes SET value = value + 1 WHERE id <> :id", id="a"),
            tx.run("UPDATE notes SET value = 0 WHERE id = 'none'"),
            tx.run("INSERT INTO notes (id) VALUES ('d') RETURNING id"),
            tx.run("DELETE FROM notes WHERE id IN :ids", ids=["a", "d"]),
        ]

    assert await store.transact(changes) == [2, 0, 1, 2]


async def test_rows_come_back_as_tuples_of_plain_values(store: Store) -> None:
    def values(tx: Tx) -> object:
        add_note(tx, "ä €", value=-(2**63), body="'")
        return tx.one("SELECT id, value, body, NULL FROM notes WHERE id = :id", id="ä €")

    assert await store.transact(values) == ("ä €", -(2**63), "'", None)


async def test_one_is_none_when_there_is_no_row(store: Store) -> None:
    assert await store.transact(lambda tx: tx.one("SELECT 1 FROM notes WHERE id = 'x'")) is None


async def test_colons_inside_of_text_are_no_parameters(store: Store) -> None:
    sql = "SELECT 'a:b', ':id', \"id\" FROM notes WHERE id = :id -- :comment"

    assert await store.read(sql, id="a") == [("a:b", ":id", "a")]


async def test_a_flag_is_stored_as_a_number(store: Store) -> None:
    await store.transact(
        lambda tx: tx.run("UPDATE notes SET value = :flag WHERE id = 'a'", flag=True)
    )

    assert await store.read("SELECT value FROM notes WHERE id = 'a'") == [(1,)]


async def test_a_statement_that_is_no_sql_is_our_mistake(store: Store) -> None:
    with pytest.raises(Invariant, match="SELEKT"):
        await store.transact(lambda tx: tx.all("SELEKT 1"))
    with pytest.raises(Invariant, match="SELEKT"):
        await store.read("SELEKT 1")


async def test_a_missing_parameter_is_named(store: Store) -> None:
    with pytest.raises(KeyError, match="id"):
        await store.transact(lambda tx: tx.all("SELECT 1 FROM notes WHERE id = :id"))
