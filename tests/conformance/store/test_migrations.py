"""The schema moves forward in one step, or not at all."""

import pytest

from tests.conformance.store.conftest import Opener
from tests.conformance.store.tables import TABLES, add_note, names_of
from wakeful.store import migrations
from wakeful.store.migrations import BINARY_VERSION, Migration
from wakeful.vocabulary.errors import Invariant, StoreRefused, WakefulError

SECOND = Migration(
    2,
    "more",
    """
    -- a comment; with a semicolon
    ALTER TABLE notes ADD COLUMN colour TEXT;
    CREATE TABLE extra (id TEXT PRIMARY KEY);
    UPDATE notes SET colour = 'a;b';
    CREATE INDEX notes_colour ON notes (colour);
    """,
)
STATEMENTS = len(SECOND.statements())


async def test_a_store_is_brought_up_to_date(lasting_opener: Opener) -> None:
    old = await lasting_opener([TABLES])
    await old.transact(lambda tx: add_note(tx, "a"))
    await old.close()

    new = await lasting_opener([TABLES, SECOND])
    colours = await new.read("SELECT colour FROM notes")
    version = await new.read("SELECT version, min_binary FROM schema")
    await new.close()

    assert colours == [("a;b",)]
    assert version == [(2, 1)]


@pytest.mark.parametrize("place", range(STATEMENTS + 1))
async def test_a_migration_that_stops_anywhere_leaves_the_old_schema(
    lasting_opener: Opener, place: int
) -> None:
    old = await lasting_opener([TABLES])
    await old.transact(lambda tx: add_note(tx, "a"))
    await old.close()
    statements = SECOND.statements()
    statements.insert(place, "INSERT INTO no_such_table VALUES (1);")
    broken = Migration(2, "broken", "\n".join(statements))

    with pytest.raises(WakefulError):
        await lasting_opener([TABLES, broken])

    again = await lasting_opener([TABLES])
    version = await again.read("SELECT version FROM schema")
    columns = await again.read("SELECT * FROM notes")
    await again.close()
    assert version == [(1,)]
    assert columns == [("a", 0, "")]


async def test_all_migrations_of_one_start_are_one_step(lasting_opener: Opener) -> None:
    third = Migration(3, "broken", "INSERT INTO no_such_table VALUES (1);")
    await (await lasting_opener([TABLES])).close()

    with pytest.raises(WakefulError):
        await lasting_opener([TABLES, SECOND, third])

    again = await lasting_opener([TABLES])
    version = await again.read("SELECT version FROM schema")
    await again.close()
    assert version == [(1,)]


async def test_a_schema_that_needs_a_newer_binary_is_refused(
    lasting_opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_new = Migration(2, "new", f"-- min_binary: {BINARY_VERSION + 1}\nDROP TABLE events;")
    with monkeypatch.context() as newer:
        newer.setattr(migrations, "BINARY_VERSION", BINARY_VERSION + 1)
        store = await lasting_opener([TABLES, too_new])
        await store.close()

    with pytest.raises(StoreRefused, match=f"version {BINARY_VERSION + 1}"):
        await lasting_opener([TABLES])


async def test_a_newer_schema_that_allows_this_binary_is_accepted(
    lasting_opener: Opener,
) -> None:
    store = await lasting_opener([TABLES, SECOND])
    await store.close()

    older = await lasting_opener([TABLES])
    await older.transact(lambda tx: add_note(tx, "a"))
    version = await older.read("SELECT version FROM schema")
    found = await names_of(older)
    await older.close()

    assert version == [(2,)]
    assert found == ["a"]


async def test_a_gap_in_the_numbers_is_our_mistake(opener: Opener) -> None:
    with pytest.raises(Invariant, match="numbered"):
        await opener([TABLES, Migration(3, "gap", "DROP TABLE events;")])


async def test_a_migration_may_differ_between_databases(opener: Opener) -> None:
    store = await opener(
        [
            TABLES,
            Migration(2, "kind", "CREATE TABLE kind AS SELECT 'lite' AS name;", "sqlite"),
            Migration(2, "kind", "CREATE TABLE kind AS SELECT 'post' AS name;", "postgres"),
        ]
    )

    found = await store.read("SELECT name FROM kind")
    await store.close()

    assert found in ([("lite",)], [("post",)])


async def test_the_packaged_migrations_run(opener: Opener) -> None:
    store = await opener(None)

    found = await store.read("SELECT count(*) FROM schema")
    await store.close()

    assert found == [(1,)]
