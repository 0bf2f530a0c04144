from enum import IntEnum, StrEnum
from typing import Any, Literal, NewType

import msgspec
import pytest

from wakeful.store.rows import RowTable
from wakeful.vocabulary.errors import UnreadableRow

LaneId = NewType("LaneId", str)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Rank(IntEnum):
    LOW = 1
    HIGH = 2


class Ranked(msgspec.Struct, frozen=True):
    rank: Rank


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int = 0


class Sample(msgspec.Struct, frozen=True):
    id: str
    lane: LaneId
    at: int
    colour: Colour
    is_done: bool
    mode: Literal["a", "b"] = "a"
    ratio: float = 0.5
    raw: bytes = b""
    note: str | None = None
    shade: Colour | None = None
    is_seen: bool | None = None
    point: Point | None = None
    names: list[str] = []
    extra: dict[str, Any] = {}


class Named(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    count: int = 0


FULL = Sample(
    id="1",
    lane=LaneId("main"),
    at=5,
    colour=Colour.RED,
    is_done=True,
    mode="b",
    ratio=1.5,
    raw=b"\x00\xff",
    note="n",
    shade=Colour.BLUE,
    is_seen=False,
    point=Point(1, 2),
    names=["ä", 'q"'],
    extra={"k": [1, None, {"z": True}]},
)
EMPTY = Sample(id="2", lane=LaneId("main"), at=0, colour=Colour.BLUE, is_done=False)


@pytest.mark.parametrize("row", [FULL, EMPTY])
def test_a_row_comes_back_as_it_was_stored(row: Sample) -> None:
    table = RowTable("samples", Sample)

    params = table.params(row)

    assert table.read([params[name] for name in table.fields]) == row


def test_parameters_hold_only_what_a_database_can_store() -> None:
    params = RowTable("samples", Sample).params(FULL)

    assert {type(value) for value in params.values()} <= {str, int, float, bytes}
    assert params["is_done"] == 1
    assert params["shade"] == "blue"
    assert params["point"] == '{"x":1,"y":2}'


def test_absent_values_are_null() -> None:
    params = RowTable("samples", Sample).params(EMPTY)

    assert [params[name] for name in ("note", "shade", "is_seen", "point")] == [None] * 4


def test_a_keyword_only_row_is_read_too() -> None:
    assert RowTable("named", Named).read(("a", 3)) == Named(id="a", count=3)


def test_the_insert_statement_names_every_column_once() -> None:
    table = RowTable("named", Named)

    assert table.columns == "id, count"
    assert table.insert == "INSERT INTO named (id, count) VALUES (:id, :count)"


def test_whole_rows_are_selected_in_the_order_of_the_fields() -> None:
    assert RowTable("named", Named).select("WHERE id = :id") == (
        "SELECT id, count FROM named WHERE id = :id"
    )


def test_a_numbered_enumeration_is_stored_as_its_number() -> None:
    table = RowTable("ranked", Ranked)
    row = Ranked(rank=Rank.HIGH)

    assert table.params(row) == {"rank": 2}
    assert table.read((2,)) == row


def test_an_unknown_enumeration_text_names_its_column() -> None:
    table = RowTable("samples", Sample)
    params = table.params(FULL) | {"colour": "mauve"}

    with pytest.raises(UnreadableRow, match=r"samples\.colour of .*'mauve' is not a known value"):
        table.read([params[name] for name in table.fields])


def test_stored_json_of_another_shape_names_its_column() -> None:
    table = RowTable("samples", Sample)
    params = table.params(FULL) | {"point": '{"x":"far"}'}

    with pytest.raises(UnreadableRow, match=r"samples\.point of .*`\$\.x`"):
        table.read([params[name] for name in table.fields])


def test_an_unknown_number_of_an_enumeration_names_its_column() -> None:
    with pytest.raises(UnreadableRow, match=r"ranked\.rank of 7 .* 7 is not a known value"):
        RowTable("ranked", Ranked).read((7,))


def test_a_row_that_cannot_be_read_is_left_out_of_a_list_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = RowTable("ranked", Ranked)

    found = [table.read_known([(2,), (7,), (1,)]) for _ in range(2)]

    assert found == [[Ranked(rank=Rank.HIGH), Ranked(rank=Rank.LOW)]] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "left out: ranked.rank of 7 cannot be read by this release: 7 is not a known value"
    ]


def test_what_can_be_read_of_a_row_is_there_for_whoever_must_remove_it() -> None:
    table = RowTable("samples", Sample)
    params = table.params(FULL) | {"point": "not JSON", "colour": "mauve"}

    read = table.read_partly([params[name] for name in table.fields])

    assert (read.id, read.point, read.colour) == (FULL.id, None, None)
