"""The table is the whole door: what is not in it does not exist."""

import pytest

from wakeful.doors.http.endpoint import LARGEST_BODY, PUBLIC, Call, Endpoint, Given, Nothing
from wakeful.doors.http.openapi import describe
from wakeful.doors.http.table import Table
from wakeful.vocabulary.record import Record

SIZE = 2 * LARGEST_BODY


class Answer(Record):
    """An answer."""

    text: str


class Asked(Given):
    """A query."""

    limit: int = 5
    name: str | None = None


async def answer(call: Call[Nothing, Nothing]) -> Answer:
    return Answer(text="x")


def row(method: str, path: str, **more: object) -> Endpoint:
    return Endpoint(
        method=method,
        path=path,
        scope=PUBLIC,
        summary="s",
        answer=answer,
        **more,  # pyright: ignore[reportArgumentType]
    )


def test_two_endpoints_may_not_answer_the_same():
    with pytest.raises(ValueError, match="two rows"):
        Table([row("GET", "/a/{x}"), row("GET", "/a/{x}")])


@pytest.mark.parametrize(
    ("path", "size"),
    [
        (b"/a/x/big", SIZE),
        (b"/a/x%2Fbig", LARGEST_BODY),
        (b"/a/%2e%2e/big", SIZE),
        (b"/a//big", LARGEST_BODY),
        (b"/a/x/big/", LARGEST_BODY),
        (b"/a/%ff/big", LARGEST_BODY),
        (b"", LARGEST_BODY),
    ],
)
def test_paths_are_split_before_they_are_decoded(path: bytes, size: int):
    table = Table([row("POST", "/a/{x}/big", largest_body=SIZE)])

    assert table.find({"type": "http", "method": "POST", "raw_path": path}).body.largest == size


def test_the_document_has_parameters_answers_and_problems():
    table = [row("GET", "/a/{x}", query=Asked, returns={200: Answer})]
    operation = describe(table)["paths"]["/a/{x}"]["get"]

    assert [(one["name"], one["in"]) for one in operation["parameters"]] == [
        ("x", "path"),
        ("limit", "query"),
        ("name", "query"),
    ]
    assert operation["parameters"][2]["schema"] == {"type": "string"}
    assert set(operation["responses"]) == {"200", "default"}
    assert operation["security"] == []
