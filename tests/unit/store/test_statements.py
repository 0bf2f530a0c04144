import pytest

from wakeful.store.statements import Statement, Statements, for_postgres, for_sqlite, unstorable


@pytest.mark.parametrize(
    ("sql", "sqlite", "postgres"),
    [
        ("SELECT :a, :b, :a", "SELECT :a, :b, :a", "SELECT $1, $2, $1"),
        (
            "WHERE x IN :names AND y = :y",
            "WHERE x IN (SELECT value FROM json_each(:names)) AND y = :y",
            "WHERE x = ANY($1) AND y = $2",
        ),
        (
            "WHERE x NOT IN :names",
            "WHERE x NOT IN (SELECT value FROM json_each(:names))",
            "WHERE x <> ALL($1)",
        ),
        ("WHERE x IN (:a, :b)", "WHERE x IN (:a, :b)", "WHERE x IN ($1, $2)"),
        ("SELECT ':a', 'it''s :b', \":c\"", *["SELECT ':a', 'it''s :b', \":c\""] * 2),
        ("SELECT 1 -- :a\n, :b", "SELECT 1 -- :a\n, :b", "SELECT 1 -- :a\n, $1"),
        ("SELECT /* :a\n:b */ :c", "SELECT /* :a\n:b */ :c", "SELECT /* :a\n:b */ $1"),
        ("SELECT x::text, :a", "SELECT x::text, :a", "SELECT x::text, $1"),
        ("SELECT begin_in :a", "SELECT begin_in :a", "SELECT begin_in $1"),
    ],
)
def test_parameters_become_what_each_database_calls_them(
    sql: str, sqlite: str, postgres: str
) -> None:
    assert for_sqlite(sql).sql == sqlite
    assert for_postgres(sql).sql == postgres


def test_sqlite_compares_with_a_value_where_a_list_has_only_one() -> None:
    sql = "WHERE x IN :names AND y NOT IN :others AND z IN :more"

    assert for_sqlite(sql, {"names", "others"}).sql == (
        "WHERE x IN (:names) AND y NOT IN (:others) AND z IN (SELECT value FROM json_each(:more))"
    )


def test_a_statement_knows_its_names_in_order_and_its_lists() -> None:
    statement = for_postgres("SELECT :b FROM t WHERE a IN :a AND c = :b")

    assert statement.names == ("b", "a")
    assert statement.lists == {"a"}


def test_a_text_is_translated_once() -> None:
    translated: list[str] = []

    def translate(sql: str) -> Statement:
        translated.append(sql)
        return for_sqlite(sql)

    statements = Statements(translate)

    assert statements["SELECT 1"] is statements["SELECT 1"]
    assert translated == ["SELECT 1"]


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("\ud800", "must not contain lone surrogates"),
        (["fine", "\udfff"], "must not contain lone surrogates"),
        ("a\0b", "must not contain NUL"),
        (2**63, "must fit into 64 bits"),
    ],
)
def test_what_cannot_be_stored_is_named(value: object, rule: str) -> None:
    assert unstorable({"good": "x", "bad": value}, nul=True) == ("bad", rule)


def test_what_can_be_stored_is_not() -> None:
    values = {"a": "ä", "b": 2**63 - 1, "c": None, "d": b"\xff", "e": 1.5, "f": ["x"]}

    assert unstorable(values, nul=True) is None
    assert unstorable({"a": "\0"}, nul=False) is None
