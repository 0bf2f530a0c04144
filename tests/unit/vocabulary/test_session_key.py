"""Keys cannot be forged and nothing is lost in them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)


@given(ANY_TEXT)
def test_escaping_then_unescaping_gives_any_id_back(identifier: str):
    segment = keys.escape(identifier)

    assert keys.unescape(segment) == identifier
    assert segment == segment.lower()
    assert not set(segment) & set(":/\\ \n\x00%")
    assert segment.strip(".") != ""


@given(ANY_TEXT, ANY_TEXT)
def test_two_ids_never_share_a_segment(first: str, second: str):
    assume(first != second)

    assert keys.escape(first) != keys.escape(second)


@given(ANY_TEXT, ANY_TEXT)
def test_a_key_built_from_hostile_ids_is_canonical(door: str, room: str):
    try:
        key = keys.room("main", door, "group", room)
    except InvalidInput as refused:
        assert refused.field == "session_key"
        return

    assert keys.canonical(key) == key
    assert keys.agent_of(key) == "main"


@given(ANY_TEXT)
def test_whatever_a_caller_types_is_a_key_or_a_clear_refusal(text: str):
    try:
        key = keys.canonical(text)
    except InvalidInput as refused:
        assert refused.field == "session_key"
    else:
        assert key.startswith("agent:")


@pytest.mark.parametrize(
    ("short", "key"),
    [
        ("main", "agent:main:main"),
        ("dm:ann", "agent:main:dm:ann"),
        ("system:activity", "agent:main:activity"),
        ("agent:scout:hub:channel:ops", "agent:scout:hub:channel:ops"),
    ],
)
def test_short_forms_mean_the_default_agent(short: str, key: str):
    assert keys.canonical(short) == key


def test_a_thread_knows_its_parent():
    room = keys.room("main", "hub", "channel", "ops")

    assert keys.parent(keys.thread(keys.thread(room, "1"), "2")) == keys.thread(room, "1")
    assert keys.parent(room) is None


def test_pools_follow_the_kind_of_session():
    assert keys.pool_of("agent:main:subagent:1") == "subagent"
    assert keys.pool_of("agent:main:automation:1") == "automation"
    assert keys.pool_of("agent:main:main") == "main"
