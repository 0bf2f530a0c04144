"""The cut of a compaction, over random conversations: nothing is parted, nothing is lost."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.prompts.compaction import question, written
from wakeful.turn.compaction import CompactionPlan, Room, SeenEntry, plan, room_of, seen
from wakeful.turn.context import build
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    Entry,
    EntryKind,
    NoteBody,
    ToolBody,
    UserBody,
    encode_body,
)
from wakeful.vocabulary.message import AssistantMessage, Text, ToolCall, ToolMessage, Usage

ROOM = Room(window=1_000, reserve=200, keep=100, soft=40)


def test_a_small_window_keeps_most_of_itself_for_the_conversation():
    rules = CompactionRules()

    assert room_of(rules, 200_000).reserve == 20_000
    assert room_of(rules, 200_000).keep == 20_000
    assert room_of(rules, 16_000).reserve == 4_000
    assert room_of(rules, 16_000).keep == 6_000
    assert room_of(CompactionRules(reserve_tokens=50_000), 1_000_000).reserve == 50_000


def test_a_short_conversation_is_left_alone():
    path = _path([_person("hello"), _agent("hi")])

    assert plan(path, ROOM) is None
    assert plan([], ROOM) is None


def test_the_recent_part_is_kept_word_for_word():
    turns = [body for n in range(10) for body in (_person(f"{n} " * 20), _agent("ok " * 20))]

    made = plan(_path(turns), ROOM)

    assert made is not None
    assert made.first_kept_depth == 12
    assert len(made.compacted) == 12
    assert made.turn == ()


def test_what_no_model_was_shown_yet_is_not_summed_up():
    """Messages that open a turn together are all read, however long the last of them is."""
    told = [_person("first"), _person("x" * 1_000)]
    path = _path([_person("old"), _agent("y" * 2_000), *told], [2, 2])

    wished = plan(path, ROOM, open_turn_id="t1")
    needed = plan(path, ROOM, open_turn_id="t1", is_needed=True)
    refused = plan(path, ROOM, open_turn_id="t1", is_needed=True, rescues=1)

    assert wished is not None
    assert needed is not None
    assert wished.first_kept_depth == needed.first_kept_depth == 2
    assert refused is not None
    assert refused.first_kept_depth == 3  # the model itself said that this is too much


def test_a_giant_last_result_does_not_stand_in_the_way():
    path = _path([_person("look"), _agent("", "c1"), _result("c1", "x" * 100_000)])

    made = plan(path, ROOM)

    assert made is not None
    assert made.first_kept_depth == 3
    assert len(made.compacted) == 3


def test_a_turn_that_is_parted_is_summed_up_apart():
    steps = [body for n in range(9) for body in (_agent("", f"c{n}"), _result(f"c{n}", "r" * 200))]

    made = plan(_path([_person("first"), _agent("yes"), _person("go"), *steps], [2, 18]), ROOM)

    assert made is not None
    assert len(made.compacted) == 2
    assert made.turn
    assert getattr(made.turn[0], "text", "") == "go"


def test_calls_that_share_an_id_are_told_apart_by_the_reply_they_belong_to():
    steps = [body for _ in range(9) for body in (_agent("", "c0"), _result("c0", "r" * 200))]

    made = plan(_path([_person("go"), *steps]), ROOM)

    assert made is not None
    assert made.first_kept_depth == 17


def test_a_reply_that_counts_only_what_was_written_says_nothing_about_the_size():
    reply = AssistantMessage(content=(Text(text="ok"),), usage=Usage(input=0, output=5))

    context = build("b", _path([_person("a" * 4_000), AssistantBody(message=reply)]))

    assert context.tokens == 1_001


def test_a_question_for_a_summary_leaves_room_for_the_summary_before():
    room = Room(window=20_000, reserve=5_000, keep=100, soft=0)
    body = CompactionBody(summary="s" * 20_000, first_kept_depth=0, tokens_before=0)
    talk = [body for _ in range(99) for body in (_person("a" * 1_000), _agent("b" * 1_000))]
    path = [_entry(0, body, EntryKind.COMPACTION), *_path(talk, start=1)]

    made = plan(path, room)

    assert made is not None
    text = question(
        made.compacted,
        made.turn,
        previous=made.previous,
        wish="",
        longest=made.longest * 4,
        most=made.most * 4,
    )
    assert len(text) // 4 < room.is_used_up_at


def test_no_message_takes_more_than_its_share_of_the_question():
    calls = tuple(
        ToolCall(id=f"c{n}", name="write_file", arguments={"text": "x" * 1_000}) for n in range(20)
    )

    text = written(AssistantMessage(content=(Text(text="y" * 5_000), *calls)), 1_000)

    assert len(text) < 1_100


def test_what_is_needed_halves_what_our_own_estimate_would_have_kept():
    path = _path([body for _ in range(4) for body in (_person("a" * 40), _agent("b" * 40))])

    assert plan(path, ROOM) is None
    made = plan(path, ROOM, is_needed=True)
    assert made is not None
    assert made.first_kept_depth == 4


def test_one_giant_message_alone_is_summed_up_if_it_cannot_fit():
    giant, large = _path([_person("a" * 100_000)]), _path([_person("a" * 3_600)])

    assert plan(giant, ROOM) is None
    assert plan(large, ROOM, is_needed=True) is None
    for path, rescues in ((giant, 0), (large, 1)):
        made = plan(path, ROOM, is_needed=True, rescues=rescues, open_turn_id="t")
        assert made is not None
        assert len(made.compacted) + len(made.turn) == 1


def test_less_is_kept_each_time_the_model_refuses():
    path = _path([body for _ in range(9) for body in (_person("a" * 200), _agent("b" * 200))])
    room = Room(window=10_000, reserve=200, keep=5_000, soft=40)

    plans = [plan(path, room, is_needed=True, rescues=rescues) for rescues in range(1, 5)]

    assert [made and made.first_kept_depth for made in plans] == [9, 13, 15, 18]


def test_what_is_far_too_much_is_read_less_closely_instead_of_asking_for_ever():
    path = _path([body for _ in range(250) for body in (_person("a" * 800), _agent("b" * 800))])
    questions = 0
    while (made := plan(path, ROOM, is_needed=True)) is not None:
        questions += 1
        path = _compacted(path, made)

    assert questions <= 40


def test_what_cannot_be_summed_up_goes_at_once():
    path = _path([body for _ in range(60) for body in (_person("a" * 200), _agent("b" * 200))])

    asked = plan(path, ROOM, is_needed=True, rescues=1)
    left_out = plan(path, ROOM, is_needed=True, rescues=1, is_asked=False)

    assert asked is not None
    assert left_out is not None
    assert asked.first_kept_depth < left_out.first_kept_depth == 118


def test_what_is_too_much_for_one_summary_is_folded_in_parts():
    path = _path([body for _ in range(60) for body in (_person("a" * 200), _agent("b" * 200))])
    depths: list[int] = []

    while (made := plan(path, ROOM)) is not None:
        assert sum(len(str(message)) for message in made.compacted) // 4 < ROOM.window * 4
        depths.append(made.first_kept_depth)
        path = _compacted(path, made)

    assert depths == sorted(set(depths))
    assert len(depths) > 3


def test_the_files_that_tools_touched_are_handed_on():
    calls = (
        ToolCall(id="r", name="read_file", arguments={"path": "a.md"}),
        ToolCall(id="w", name="write_file", arguments={"path": "b.md", "text": "…"}),
    )
    bodies: list[Body] = [
        _person("go"),
        AssistantBody(message=AssistantMessage(content=calls)),
        _result("r", "…"),
        _result("w", "…"),
        *(_person("more " * 60) for _ in range(3)),
    ]

    path = _path(bodies)
    first = plan(path, ROOM)
    assert first is not None
    second = plan([*_compacted(path, first), *_path([_person("x" * 600)] * 2, start=8)], ROOM)

    assert (first.files_read, first.files_changed) == (("a.md",), ("b.md",))
    assert second is not None
    assert (second.files_read, second.files_changed) == (("a.md",), ("b.md",))


@st.composite
def conversations(draw: st.DrawFn) -> list[Entry]:
    """Draw turns of messages, calls, results in any order, notes and things a model never sees."""
    bodies: list[tuple[Body, EntryKind]] = []
    for turn in range(draw(st.integers(1, 12))):
        bodies.append((_person("p" * draw(st.integers(0, 600))), EntryKind.MESSAGE))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"{turn}.{step}.{n}" for n in range(draw(st.integers(0, 3)))]
            bodies.append((_agent("a" * draw(st.integers(0, 300)), *ids), EntryKind.MESSAGE))
            answered = draw(st.permutations(ids))[: draw(st.integers(0, 3))]
            for call_id in answered:
                size = draw(st.sampled_from([0, 50, 400, 9_000]))
                bodies.append((_result(call_id, "r" * size), EntryKind.MESSAGE))
                if draw(st.booleans()):
                    bodies.append((NoteBody(topic="n", text="note"), EntryKind.CUSTOM))
        if draw(st.booleans()):
            bodies.append((NoteBody(topic="n", text="steer"), EntryKind.CUSTOM_MESSAGE))
    return [_entry(depth, body, kind) for depth, (body, kind) in enumerate(bodies)]


@settings(max_examples=200, deadline=None)
@given(conversations(), st.booleans())
def test_no_call_is_parted_from_its_result_and_nothing_is_in_neither_part(
    path: list[Entry], is_needed: bool
):
    for _ in range(30):
        made = plan(path, ROOM, is_needed=is_needed)
        if made is None:
            return
        before, lines = seen(path)
        compacted = [line for line in lines if line.entry.depth < made.first_kept_depth]
        kept = [line for line in lines if line.entry.depth >= made.first_kept_depth]

        assert compacted
        assert (*made.compacted, *made.turn) == tuple(line.message for line in compacted)
        assert made.previous == (None if before is None else before.summary)
        assert not _calls(compacted) & _results(kept)
        assert not kept or not isinstance(kept[0].message, ToolMessage)

        path = _compacted(path, made)
        rebuilt = build("b", path).messages
        kept_texts = [line.message for line in kept if not isinstance(line.message, ToolMessage)]
        assert len([m for m in rebuilt if not isinstance(m, ToolMessage)]) <= len(kept_texts) + 1
    raise AssertionError("it never ends")


def _calls(lines: list[SeenEntry]) -> set[str]:
    return {
        call.id
        for line in lines
        if isinstance(line.message, AssistantMessage)
        for call in line.message.tool_calls
    }


def _results(lines: list[SeenEntry]) -> set[str]:
    return {line.message.call_id for line in lines if isinstance(line.message, ToolMessage)}


def _compacted(path: list[Entry], made: CompactionPlan) -> list[Entry]:
    """Return what is read from the rows after a compaction was committed."""
    body = CompactionBody(
        summary="summary",
        first_kept_depth=made.first_kept_depth,
        tokens_before=made.tokens_before,
        details={"files_read": made.files_read, "files_changed": made.files_changed},
    )
    entry = _entry(path[-1].depth + 1, body, EntryKind.COMPACTION)
    return [*(one for one in path if one.depth >= made.first_kept_depth), entry]


def _path(bodies: Sequence[Body], turns: list[int] | None = None, *, start: int = 0) -> list[Entry]:
    """Return entries; each number of `turns` is how many of them share a turn."""
    ids = [f"t{n}" for n, count in enumerate(turns or []) for _ in range(count)]
    ids += [f"u{n}" for n in range(len(bodies) - len(ids))]
    return [_entry(start + n, body, turn=ids[n]) for n, body in enumerate(bodies)]


def _entry(
    depth: int, body: Body, kind: EntryKind = EntryKind.MESSAGE, turn: str | None = None
) -> Entry:
    return Entry(
        id=f"e{depth}",
        transcript_id="b",
        branch="b",
        depth=depth,
        parent_id=None,
        turn_id=turn,
        stimulus_id=None,
        epoch=1,
        kind=kind,
        at=0,
        body=encode_body(body).decode(),
        hash="",
    )


def _person(text: str) -> UserBody:
    return UserBody(text=text)


def _agent(text: str, *call_ids: str) -> AssistantBody:
    calls = tuple(ToolCall(id=call_id, name="look", arguments={}) for call_id in call_ids)
    blocks = (Text(text=text), *calls) if text else calls
    return AssistantBody(message=AssistantMessage(content=blocks))


def _result(call_id: str, text: str) -> ToolBody:
    return ToolBody(message=ToolMessage(call_id=call_id, name="look", text=text))
