"""Keys cannot be forged and nothing is lost in them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.session_key import KeyKind, KeyParts

WORDS = ["main", "dm", "group", "channel", "thread", "subagent", "web", "activity", "unified"]
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60) | st.sampled_from(
    [
        *WORDS,
        "",
        ".",
        "..",
        "../..",
        "a:b",
        ":thread:",
        "A",
        "~",
        "~61",
        "\x00",
        "\ud800",
        "x" * 300,
    ]
)
SEGMENTS = st.lists(st.sampled_from([*WORDS, "a", "~61", "~41", "~74hread", "~"]), min_size=1)


def built() -> st.SearchStrategy[KeyParts]:
    """Parts of every row of the grammar, with hostile identifiers."""
    threads = st.lists(ANY_TEXT, max_size=2).map(tuple)
    alone = st.sampled_from([KeyKind.MAIN, KeyKind.ACTIVITY, KeyKind.UNIFIED])
    numbered = st.sampled_from([KeyKind.SUBAGENT, KeyKind.AUTOMATION, KeyKind.WEB, KeyKind.DM])
    room = st.sampled_from([KeyKind.GROUP, KeyKind.CHANNEL])
    agent, named = st.sampled_from(["main", "scout-2"]), ANY_TEXT.filter(bool)
    return st.one_of(
        st.builds(KeyParts, agent_id=agent, kind=alone, threads=threads),
        st.builds(KeyParts, agent_id=agent, kind=numbered, id=ANY_TEXT, threads=threads),
        st.builds(KeyParts, agent_id=agent, kind=room, door=ANY_TEXT, id=ANY_TEXT, threads=threads),
        st.builds(
            KeyParts,
            agent_id=agent,
            kind=st.just(KeyKind.DM),
            door=named,
            account=ANY_TEXT,
            id=ANY_TEXT,
            threads=threads,
        ),
    )


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


@given(built())
def test_parsing_a_key_gives_back_every_id_it_was_built_from(parts: KeyParts):
    try:
        key = parts.key
    except InvalidInput as refused:
        assert "at most 1024 bytes" in refused.rule
        return

    assert keys.parse(key) == parts
    assert keys.canonical(key) == key
    assert not set(key) & set("/\\ \n\x00%")


@given(built(), built())
def test_different_parts_never_give_the_same_key(first: KeyParts, second: KeyParts):
    assume(first != second)
    try:
        found = {first.key, second.key}
    except InvalidInput:
        return

    assert len(found) == 2


@given(SEGMENTS)
def test_a_key_that_a_caller_typed_is_parsed_into_the_same_key(segments: list[str]):
    try:
        key = keys.canonical(":".join(segments))
    except InvalidInput:
        return

    assert keys.parse(key).key == key


@given(built())
def test_a_thread_is_cut_at_its_last_thread(parts: KeyParts):
    assume(parts.threads)
    try:
        key = parts.key
    except InvalidInput:
        return

    assert keys.parent(key) == key.rpartition(":thread:")[0]


@pytest.mark.parametrize("spelling", ["~61nn", "ANN", "~ff", "..", "a:..:b", "a::b", "~6", "a/b"])
def test_no_session_has_two_names(spelling: str):
    with pytest.raises(InvalidInput, match="session_key: must be"):
        keys.canonical(f"dm:{spelling}")


def test_an_id_that_is_too_long_is_refused_with_the_rule():
    with pytest.raises(InvalidInput, match="session_key: must be at most 1024 bytes, not 10"):
        keys.direct("main", "x" * 10_000)


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("main", {"kind": KeyKind.MAIN}),
        ("dm:ann", {"kind": KeyKind.DM, "id": "ann"}),
        ("mail:dm:ann", {"kind": KeyKind.DM, "door": "mail", "id": "ann"}),
        ("mail:work:dm:a", {"kind": KeyKind.DM, "door": "mail", "account": "work", "id": "a"}),
        ("hub:group:~4f", {"kind": KeyKind.GROUP, "door": "hub", "id": "O"}),
        ("hub:channel:x:thread:7", {"kind": KeyKind.CHANNEL, "door": "hub", "id": "x"}),
        ("subagent:1", {"kind": KeyKind.SUBAGENT, "id": "1"}),
        ("automation:1", {"kind": KeyKind.AUTOMATION, "id": "1"}),
        ("activity", {"kind": KeyKind.ACTIVITY}),
        ("unified", {"kind": KeyKind.UNIFIED}),
        ("web:1", {"kind": KeyKind.WEB, "id": "1"}),
        ("api:1", {"kind": KeyKind.OTHER, "words": ("api", "1")}),
    ],
)
def test_every_row_of_the_grammar_is_known(key: str, parts: dict[str, object]):
    threads = ("7",) if "thread" in key else ()

    found = keys.parse(keys.canonical(key))

    assert found == KeyParts(agent_id="main", threads=threads, **parts)  # pyright: ignore[reportArgumentType]
    assert found.chat_type == (found.kind if found.kind in ("group", "channel") else "direct")


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
