"""Text that any database and any model can hold."""

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.vocabulary.text import clean_json, with_whole_surrogates

texts = st.text(
    st.characters(codec=None) | st.sampled_from(["\\", "\ud83d", "\ude00", "\ud800", "u", "d"])
)
values = st.recursive(
    texts | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_lone_surrogates_are_replaced_in_the_bytes_as_they_are_in_the_values(value: Any):
    raw = json.dumps(value).encode().replace(b"\\u0000", b"\\ufffd")

    read = msgspec.json.decode(with_whole_surrogates(raw))

    assert read == clean_json(json.loads(raw))


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d\uDE00"', rb'"\\ud83d\ufffd"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
    ],
)
def test_a_pair_and_an_escaped_backslash_are_left_alone(raw: bytes, mended: bytes):
    assert with_whole_surrogates(raw) == mended


def test_a_body_without_escapes_is_passed_over_about_as_fast_as_it_can_be_read():
    """No thread helps against a look at each byte: whoever else is asked for waits for it."""
    raw = b'{"x":[' + b"[]," * 1_000_000 + rb'"\ud800"]}'

    looked = min(cpu_s(lambda: with_whole_surrogates(raw)) for _ in range(5))
    bare = min(cpu_s(lambda: raw.count(b"u")) for _ in range(5))

    assert looked < bare * 30, f"{looked:.4f} s for {bare:.4f} s"  # about 6; a look at each: 110


def cpu_s(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start
