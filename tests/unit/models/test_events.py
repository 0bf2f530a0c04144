"""Events come whole, however they were cut and whatever ends their lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.models.events import LONGEST_LINE, EventReader
from wakeful.vocabulary.errors import Garbled

STREAM = (
    b': a comment\n\nevent: one\ndata: {"a": 1}\n\ndata:two\n\nid: 7\ndata: 3\ndata: 4\n\n'
    b"retry: 5\n\ndata: [DONE]\n\n"
)
DATA = [b'{"a": 1}', b"two", b"3\n4", b"[DONE]"]


@given(st.lists(st.integers(1, 30), max_size=40), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_however_they_are_cut(sizes: list[int], line_end: bytes):
    stream, reader, found = STREAM.replace(b"\n", line_end), EventReader(), list[bytes]()
    for size in sizes:
        found += reader.feed(stream[:size])
        stream = stream[size:]
    found += reader.feed(stream) if stream else []
    found += reader.end()

    assert found == DATA


def test_a_last_event_that_nobody_closed_counts():
    reader = EventReader()

    assert reader.feed(b"data: 1\n\ndata: 2") == [b"1"]
    assert reader.end() == [b"2"]


def test_lines_that_never_end_an_event_are_read_once_each():
    """Reading all of it again with each line would take minutes."""
    line, reader = b"id: 7890123456789012345678901234567890\n", EventReader()
    for _ in range(LONGEST_LINE // len(line)):
        reader.feed(line)

    with pytest.raises(Garbled):
        reader.feed(line)


def test_a_line_without_end_is_garbled():
    reader = EventReader()
    reader.feed(b"x" * LONGEST_LINE)

    with pytest.raises(Garbled):
        reader.feed(b"x")
