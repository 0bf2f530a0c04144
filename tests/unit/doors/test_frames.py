"""Frames: one event, encoded once, never more than one."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from wakeful.doors.http.events import REMEMBERED, Frames, encode
from wakeful.doors.http.sse import frame
from wakeful.vocabulary.event import Event

values = st.recursive(
    st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


def test_a_stored_event_has_its_cursor_and_a_live_one_is_marked():
    stored = Event(kind="a.b", seq=7, epoch="ep", at=0, session_key="s", data={"x": 1})
    live = Event(kind="a.b", turn_id="t")

    assert encode(stored) == b'id: ep-7\nevent: a.b\ndata: {"session_key":"s","x":1}\n\n'
    assert encode(live) == b'event: a.b\ndata: {"turn_id":"t","live":true}\n\n'


def test_a_reset_carries_the_position_to_go_on_from():
    reset = Event(kind="reset", data={"cursor": "ep-9"})

    assert encode(reset).startswith(b"id: ep-9\nevent: reset\n")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=4))
def test_no_data_can_end_a_frame_or_forge_another(data: dict[str, Any]):
    encoded = frame("a.b", data, "ep-1")
    lines = encoded.decode().split("\n")

    assert lines[:2] == ["id: ep-1", "event: a.b"]
    assert lines[3:] == ["", ""]
    assert "\r" not in encoded.decode()
    assert msgspec.json.decode(lines[2].removeprefix("data: ")) == data


def test_an_event_is_encoded_once_and_memory_is_bounded():
    frames = Frames()
    event = Event(kind="a.b")
    first = frames.of(event)

    assert frames.of(event) is first
    for _ in range(300):
        frames.of(Event(kind="c.d", data={"text": "x" * (REMEMBERED // 100)}))
    assert len(frames._known) < 100  # pyright: ignore[reportPrivateUsage]
    assert frames.of(event) is not first
