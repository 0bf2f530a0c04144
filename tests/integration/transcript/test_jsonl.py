"""Transcripts go out as files and come in again, byte for byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.transcript.files import (
    HEADER,
    CliContext,
    answer,
    desk,
    entry,
    pieces,
    user,
    written,
)
from wakeful.models.scripted import Scripted
from wakeful.operations.janitor import Janitor
from wakeful.runtime import Runtime
from wakeful.testing.kit import ManualClock, in_memory
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.jsonl import imports
from wakeful.transcript.jsonl.importing import Importer, ImportWork
from wakeful.transcript.jsonl.reading import DEEPEST_LINE
from wakeful.transcript.sessions import SESSIONS, Session
from wakeful.vocabulary.clock import SystemClock
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
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import (
    AssistantMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    Usage,
)
from wakeful.vocabulary.retention import Retention
from wakeful.vocabulary.session_key import SessionKey

EVERY_KIND: list[Any] = [
    HEADER,
    user("00000001", None, "naïve \U0001f600 text"),
    answer("00000002", "00000001", content=[{"type": "thinking", "thinking": "hm"}]),
    answer(
        "00000003",
        "00000002",
        stopReason="toolUse",
        content=[{"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"b": 1.50, "a": []}}],
    ),
    entry(
        "00000004",
        "00000003",
        message={
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "ls",
            "content": [{"type": "text", "text": "x"}, {"type": "image", "data": "QQ=="}],
            "details": {"size": 1},
            "isError": False,
        },
    ),
    entry("00000005", "00000004", "custom", customType="mine", data={"count": 42}),
    entry("00000006", "00000005", "custom_message", customType="m", content="c", display=False),
    entry("00000007", "00000006", "model_change", provider="openai", modelId="gpt"),
    entry("00000008", "00000007", "thinking_level_change", thinkingLevel="high"),
    entry("00000009", "00000008", "label", targetId="00000001", label="mark"),
    entry("0000000a", "00000009", "session_info", name="Refactoring"),
    entry(
        "0000000b",
        "0000000a",
        "compaction",
        summary="so far",
        firstKeptEntryId="00000004",
        tokensBefore=50000,
        details={"readFiles": ["a"], "modifiedFiles": []},
        fromHook=True,
    ),
    entry("0000000c", "00000002", "branch_summary", fromId="0000000b", summary="tried that"),
    entry("0000000d", "0000000c", message={"role": "bashExecution", "command": "ls", "output": ""}),
    '{ "type":"message","parentId":"0000000d", "id":"0000000e","x":1e2,"timestamp":"2026-01-22",'
    '"message":{"role":"user","content":"spaced\\u0041 \\ud83d"}}\r',
    entry(
        "9d1b7e0c-0000-4000-8000-000000000000", "0000000e", message={"role": "user", "content": "u"}
    ),
    user("0000000f", "9d1b7e0c-0000-4000-8000-000000000000"),
]


async def test_a_file_from_elsewhere_comes_out_as_it_went_in():
    file = written(*EVERY_KIND)

    async with desk() as one:
        report = await one.put(file, piece=7)

        assert report.troubles == 0
        assert (report.entries, report.branches) == (16, 2)
        assert await one.get(report.session_key) == file


async def test_lines_that_we_would_write_alike_are_not_kept_twice():
    async with desk() as one:
        report = await one.put(written(*EVERY_KIND))
        again = await one.put(await one.get(report.session_key))
        kept = await one.count_of("entry_lines")
        file = written(
            HEADER,
            entry(
                "00000001",
                None,
                message={
                    "role": "user",
                    "content": [{"type": "text", "text": "hi"}],
                    "timestamp": 1769076001000,
                },
            ),
        )
        await one.put(file)

        assert await one.count_of("entry_lines") == kept
        assert again.troubles == 0


TROUBLES: list[tuple[str, Sequence[Any], list[str]]] = [
    (
        "garbage",
        [HEADER, user("00000001", None), "{not json", user("00000002", "00000001")],
        ["3: not JSON: left out"],
    ),
    (
        "torn",
        [HEADER, user("00000001", None), user("00000002", "00000001"), b'{"type":"mess'],
        ["4: cut off: left out"],
    ),
    (
        "no header",
        [user("00000001", None), user("00000002", "00000001")],
        ["1: no header before it: a header was made"],
    ),
    (
        "broken header",
        ['{"type":"session"', user("00000001", None), user("00000002", "00000001")],
        ["1: not JSON: left out", "2: no header before it: a header was made"],
    ),
    (
        "no kind, and what follows it",
        [
            HEADER,
            user("00000001", None),
            {"id": "00000009", "parentId": "00000001"},
            user("00000002", "00000009"),
        ],
        ["3: a line without a kind: left out"],
    ),
    (
        "a number that is none",
        [
            HEADER,
            user("00000001", None),
            json.dumps(entry("3", None, "custom", customType="x", data=float("nan"))),
            user("00000002", "00000001"),
        ],
        ["3: not JSON: left out"],
    ),
    (
        "missing parent",
        [HEADER, user("00000001", None), user("00000002", "ffffffff")],
        ["3: its parent 'ffffffff' is not above it: put below the line before it"],
    ),
    (
        "a leaf at an entry that is not there",
        [
            HEADER,
            user("00000001", None),
            entry("00000002", "00000001", "leaf", targetId="ffffffff"),
        ],
        ["3: it says to stand at 'ffffffff', which is not above it: stands at the line before it"],
    ),
    (
        "the same id twice",
        [HEADER, user("00000001", None), user("00000002", "00000001"), user("00000001", None)],
        ["4: the id '00000001' is there already: left out"],
    ),
    (
        "unusable ids",
        [HEADER, user("00000001", None), user("../x", None), user("00000002", "00000001")],
        ["3: an entry without a usable id: left out"],
    ),
    (
        "a second header",
        [HEADER, user("00000001", None), HEADER, user("00000002", "00000001")],
        ["3: a second header, or one that comes late: left out"],
    ),
    (
        "not an object",
        [HEADER, user("00000001", None), "[1]", user("00000002", "00000001")],
        ["3: not a JSON object: left out"],
    ),
    (
        "an unknown role",
        [
            HEADER,
            user("00000001", None),
            user("00000002", "00000001"),
            entry("3", None, message={}),
        ],
        ["4: a message without a role: left out"],
    ),
    (
        "a newer version",
        [{**HEADER, "version": 9}, user("00000001", None), user("00000002", "00000001")],
        ["1: version 9 is unknown: read as 3"],
    ),
    (
        "other encodings",
        [
            HEADER,
            user("00000001", None),
            json.dumps(user("3", "00000001")).encode("utf-16"),
            json.dumps(user("4", "00000001", "QQ")).encode().replace(b"QQ", b"\xed\xa0\x80"),
            user("00000002", "00000001"),
        ],
        ["3: not in UTF-8: left out", "4: not in UTF-8: left out"],
    ),
    *(
        (
            f"nested {depth} deep",
            [
                HEADER,
                user("00000001", None),
                json.dumps(entry("3", None, "custom", customType="x", data="QQ")).replace(
                    '"QQ"', "[" * depth + "]" * depth
                ),
                user("00000002", "00000001"),
            ],
            [f"3: {why}: left out"],
        )
        for depth, why in (
            (DEEPEST_LINE, f"nested deeper than {DEEPEST_LINE}"),
            (985, f"nested deeper than {DEEPEST_LINE}"),
            (100_000, "not JSON"),
        )
    ),
]


@pytest.mark.parametrize(
    ("lines", "told"), [case[1:] for case in TROUBLES], ids=[case[0] for case in TROUBLES]
)
async def test_what_is_broken_is_told_and_the_rest_is_kept(lines: Sequence[Any], told: list[str]):
    async with desk() as one:
        report = await one.put(written(*lines).rstrip(b"\n"))
        first = await one.get(report.session_key)
        again = await one.put(first)

        assert [f"{one.line}: {one.what}: {one.done}" for one in report.told] == told
        assert report.entries == 2
        assert (again.troubles, again.entries) == (0, 2)
        assert await one.get(again.session_key) == first
        assert [json.loads(line).get("parentId") for line in first.splitlines()[1:]] == [
            None,
            "00000001",
        ]


async def test_a_value_beyond_its_limits_is_told_and_its_line_leaves_as_it_came():
    long = entry("00000002", "00000001", "label", targetId="00000001", label="x" * 201)
    file = written(HEADER, user("00000001", None), long, user("00000003", "00000002"))
    async with desk() as one:
        report = await one.put(file, "agent:main:a")

        assert [(told.line, told.what, told.done) for told in report.told] == [
            (3, "label must be at most 200 characters", "kept, and read by nobody")
        ]
        assert (report.entries, report.unknown) == (3, 1)
        assert await one.get("agent:main:a") == file


async def test_a_file_without_any_line_of_a_transcript_is_refused_and_leaves_nothing():
    async with desk() as one:
        for file in (b"", b"\n\n", b"hello\n", b'{"type":"session"}', b"\xff\xfe\n" * 1000):
            with pytest.raises(InvalidInput, match="holds no transcript"):
                await one.put(file)

        for table in ("entries", "imports", "branches", "entry_lines"):
            assert await one.count_of(table) == 0


async def test_version_1_gets_ids_and_version_2_the_names_of_today():
    plain = {"timestamp": "2026-01-22T10:00:01.000Z"}
    first = written(
        {"type": "session", "id": "one", "timestamp": "2026-01-22T10:00:00.000Z", "cwd": "/"},
        {"type": "message", **plain, "message": {"role": "user", "content": "a"}},
        {"type": "message", **plain, "message": {"role": "user", "content": "b"}},
        {
            "type": "compaction",
            **plain,
            "summary": "s",
            "tokensBefore": 1,
            "firstKeptEntryIndex": 2,
        },
    )
    second = written(
        {**HEADER, "version": 2},
        entry("00000001", None, message={"role": "hookMessage", "customType": "h", "content": "c"}),
    )

    async with desk() as one:
        lines = (await one.get((await one.put(first)).session_key)).splitlines()
        old, *entries = map(json.loads, lines)
        hook = (await one.get((await one.put(second)).session_key)).splitlines()

        assert old["version"] == 3
        assert [line["parentId"] for line in entries] == [None, "00000001", "00000002"]
        assert entries[2]["firstKeptEntryId"] == "00000002"
        assert "firstKeptEntryIndex" not in entries[2]
        assert json.loads(hook[0])["version"] == 3
        assert json.loads(hook[1])["message"]["role"] == "custom"
        depths = await one.store.read(
            "SELECT context_from FROM sessions WHERE key NOT LIKE '%:activity' ORDER BY created_at"
        )
        assert depths[0][0] == 1


async def test_a_trial_writes_nothing():
    async with desk() as one:
        report = await one.put(written(*EVERY_KIND), trial=True)

        assert (report.entries, report.transcript_id) == (16, None)
        assert await one.count_of("imports") == 0
        assert await one.count_of("entries") == 0


async def test_a_session_that_exists_is_never_written_over():
    async with desk() as one:
        await one.put(written(HEADER, user("00000001", None)), "agent:main:main")

        with pytest.raises(InvalidInput, match="there is a session"):
            await one.put(written(HEADER, user("00000001", None)), "agent:main:main")

        assert await one.count_of("entries") == 1


async def test_a_session_that_somebody_made_during_an_import_stays_as_it_is():
    async def outrun(one: CliContext) -> AsyncIterator[bytes]:
        yield written(HEADER, user("00000001", None))
        await one.put(written(HEADER, user("00000009", None, "first")), "agent:main:main")

    async with desk() as one:
        with pytest.raises(InvalidInput, match="there is a session"):
            await one.importer.run(outrun(one), SessionKey("agent:main:main"), is_trial=False)

        assert b"first" in await one.get("agent:main:main")
        assert await one.count_of("entries") == 1
        assert await one.count_of("imports") == 1


async def test_a_compaction_keeps_nothing_of_another_branch():
    kept = {"summary": "s", "tokensBefore": 1, "firstKeptEntryId": "00000003"}
    file = written(
        HEADER,
        user("00000001", None),
        user("00000002", "00000001"),
        user("00000003", "00000002"),
        user("00000004", "00000002"),
        user("00000005", "00000004"),
        entry("00000006", "00000005", "compaction", **kept),
    )

    async with desk() as one:
        report = await one.put(file)

        rows = await one.store.read(
            "SELECT leaf_depth, context_from FROM sessions WHERE key NOT LIKE '%:activity'"
        )
        assert tuple(rows[0]) == (4, 4)
        assert await one.get(report.session_key) == file


async def test_a_name_from_a_file_becomes_a_label_of_one_line():
    name = " a\n\x1b[31mname " + "x" * 300
    file = written(HEADER, entry("00000001", None, "session_info", name=name))

    async with desk() as one:
        report = await one.put(file)
        rows = await one.store.read("SELECT label FROM sessions WHERE key NOT LIKE '%:activity'")

        assert rows[0][0] == "a [31mname " + "x" * 188 + "…"
        assert await one.get(report.session_key) == file


@pytest.mark.parametrize(
    "ours",
    [
        {"kind": "compaction"},
        {"body": {"type": "compaction", "summary": "", "first_kept_depth": 0, "tokens_before": 0}},
        {"kind": "custom_message"},
        {"body": {"type": "note", "topic": ""}},
    ],
)
async def test_no_file_makes_an_entry_whose_kind_and_content_disagree(ours: dict[str, Any]):
    file = written(HEADER, {**user("00000001", None), "wakeful": ours})

    async with in_memory(Scripted(["well"])) as runtime:
        one = CliContext(runtime.store, _importer(runtime))
        report = await one.put(file)
        turn = await runtime.wait(await runtime.send("go on", session=report.session_key))
        await runtime.fork(report.session_key)

        assert turn is not None
        assert turn.reply == "well"
        assert (await one.get(report.session_key)).startswith(file)


async def test_a_compaction_from_a_file_never_names_an_entry_of_another_session():
    compacted = {"summary": "s", "tokensBefore": 1, "firstKeptEntryId": "00000001"}

    async with in_memory(Scripted(["well"])) as runtime:
        one = CliContext(runtime.store, _importer(runtime))
        await one.put(written(HEADER, entry("00000001", None, "compaction", **compacted)))
        (other,) = (await one.store.read("SELECT id FROM entries"))[0]
        names = {"previous": other, "undoes": other}
        line = entry("00000001", None, "compaction", **compacted, wakeful={"body": names})
        file = written(HEADER, line)
        report = await one.put(file)
        rows = await one.store.read("SELECT body FROM entries WHERE id <> :id", id=other)

        assert other not in rows[0][0]
        assert await one.get(report.session_key) == file


async def test_an_import_that_breaks_off_leaves_nothing():
    async def breaks_off() -> AsyncIterator[bytes]:
        file = written(HEADER, *(user(f"{number:08x}", None) for number in range(2000)))
        async for piece in pieces(file, 1 << 14):
            yield piece
        raise ConnectionError("gone")

    async with desk() as one:
        with pytest.raises(ConnectionError):
            await one.importer.run(breaks_off(), SessionKey("agent:main:x"), is_trial=False)

        for table in ("entries", "imports", "branches", "entry_lines"):
            assert await one.count_of(table) == 0


async def test_an_import_that_nobody_finishes_is_swept_away_when_an_hour_has_passed():
    clock = ManualClock()

    async with in_memory(clock=clock) as runtime:
        transcript = Ids(clock).new("tr")
        work = ImportWork(runtime.store, transcript, is_trial=False)
        await work.read(pieces(written(*EVERY_KIND), 1000))
        one = CliContext(runtime.store, _importer(runtime))
        janitor = Janitor(
            runtime.store, runtime.bus, clock, Retention(ledger_days=1, event_days=1, events=9)
        )
        await janitor.sweep()

        assert await one.count_of("entries") == 16

        clock.advance(3601)
        await janitor.sweep()

        for table in ("entries", "imports", "branches", "entry_lines"):
            assert await one.count_of(table) == 0


@pytest.mark.parametrize("rest", [b"", written(user("0000ffff", "00000001"))])
async def test_an_import_that_the_sweep_has_begun_to_undo_never_becomes_a_session(rest: bytes):
    clock = ManualClock()

    async with in_memory(clock=clock) as runtime:

        async def rests() -> AsyncIterator[bytes]:
            yield written(HEADER, *(user(f"{number:08x}", None) for number in range(1, 400)))
            clock.advance(3601)
            await runtime.store.transact(lambda tx: imports.sweep(tx, 10))
            yield rest

        with pytest.raises(Permanent, match="swept away"):
            await _importer(runtime).run(rests(), SessionKey("agent:main:x"), is_trial=False)

        one = CliContext(runtime.store, _importer(runtime))
        for table in ("entries", "imports", "branches", "entry_lines"):
            assert await one.count_of(table) == 0


async def test_an_imported_session_goes_on_and_leaves_again_whole():
    file = written(*EVERY_KIND[:12])
    model = Scripted(lambda request: " / ".join(one.text for one in request.messages))

    async with in_memory(model) as runtime:
        put = _importer(runtime)
        await put.run(pieces(file, 1000), SessionKey("agent:main:old"), is_trial=False)
        turn = await runtime.wait(await runtime.send("go on", session="old"))
        one = CliContext(runtime.store, put)
        first = await one.get("agent:main:old")
        report = await one.put(first)

        assert turn is not None
        assert turn.reply is not None
        assert "so far" in turn.reply
        assert turn.reply.endswith(" / c / go on")
        assert first.startswith(file)
        assert len(first.splitlines()) == len(file.splitlines()) + 2
        assert report.troubles == 0
        assert await one.get(report.session_key) == first


async def test_an_imported_session_is_labelled_and_forked_before_its_first_turn():
    async with in_memory() as runtime:
        one = CliContext(runtime.store, _importer(runtime))
        key = (await one.put(written(HEADER, user("00000001", None)))).session_key
        (first,) = await runtime.entries(key)
        await runtime.label(key, first.id, "good")
        await runtime.fork(key, at="00000001", summary="anew")

        kinds = [entry.kind for entry in await runtime.entries(key)]
        assert kinds == [EntryKind.MESSAGE, EntryKind.BRANCH_SUMMARY]


async def test_what_a_branch_shares_with_others_is_seen_when_it_goes_on():
    model = Scripted(lambda request: " / ".join(one.text for one in request.messages))
    file = written(
        HEADER,
        user("00000001", None, "a"),
        user("00000002", "00000001", "b"),
        user("00000003", "00000002", "not seen"),
        user("00000004", "00000002", "c"),
        user("00000005", "00000004", "not seen"),
        user("00000006", "00000001", "not seen"),
        user("00000007", "00000004", "d"),
    )

    async with in_memory(model) as runtime:
        put = _importer(runtime)
        await put.run(pieces(file, 1000), SessionKey("agent:main:old"), is_trial=False)
        first = await runtime.wait(await runtime.send("go on", session="old"))
        second = await runtime.wait(await runtime.send("and on", session="old"))

    assert first is not None
    assert first.reply == "a / b / c / d / go on"
    assert second is not None
    assert second.reply == f"{first.reply} / {first.reply} / and on"


async def test_names_of_eight_digits_stay_apart_when_two_ids_end_alike():
    bodies: list[tuple[int | None, EntryKind, Body]] = [
        (number - 1 if number else None, EntryKind.MESSAGE, UserBody(text=f"{number}"))
        for number in range(3)
    ]

    async with desk() as one:
        await add(one, "agent:main:main", bodies, ids=["en_a00000001", "en_b00000001", "en_c"])
        first = await one.get("agent:main:main")
        names = [json.loads(line)["id"] for line in first.splitlines()[1:]]
        report = await one.put(first)

        assert len(set(names)) == 3
        assert await one.get(report.session_key) == first


async def add(
    one: CliContext,
    key: str,
    bodies: Sequence[tuple[int | None, EntryKind, Body]],
    ids: Sequence[str] | None = None,
) -> list[Entry]:
    """Write a session as if it had been led here; each entry names the one above it."""
    maker, entries = Ids(SystemClock()), list[Entry]()
    transcript = maker.new("tr")
    branches: list[dict[str, object]] = []
    leaves: dict[str, int] = {}
    for number, (above, kind, body) in enumerate(bodies):
        parent = None if above is None else entries[above]
        branch, depth = (transcript, 0) if parent is None else (parent.branch, parent.depth + 1)
        if number and leaves.get(branch) != above:
            fork_depth, left = depth - 1, branch
            branch = maker.new("br")
            branches.append(
                {"id": branch, "transcript": transcript, "parent": left, "depth": fork_depth}
            )
        leaves[branch] = number
        if isinstance(body, CompactionBody):
            body = CompactionBody(
                summary=body.summary,
                first_kept_depth=min(body.first_kept_depth, depth),
                tokens_before=body.tokens_before,
                details=body.details,
            )
        entries.append(
            Entry(
                id=maker.entry() if ids is None else ids[number],
                transcript_id=transcript,
                branch=branch,
                depth=depth,
                parent_id=None if parent is None else parent.id,
                turn_id=None,
                stimulus_id=None,
                epoch=1,
                kind=kind,
                at=1_700_000_000_000 + number,
                body=encode_body(body).decode(),
                hash="",
            )
        )
    last = entries[-1]
    session = Session(
        key=key,
        agent_id="main",
        transcript_id=transcript,
        branch=last.branch,
        leaf_id=last.id,
        leaf_depth=last.depth,
        created_at=1,
        started_at=1_700_000_000_000,
    )

    def write(tx: Any) -> None:
        tx.run(SESSIONS.insert, **SESSIONS.params(session))
        tx.many(ENTRIES.insert, [ENTRIES.params(entry) for entry in entries])
        tx.many(
            "INSERT INTO branches (id, transcript_id, parent, fork_depth, created_at) "
            "VALUES (:id, :transcript, :parent, :depth, 1)",
            branches,
        )

    await one.store.transact(write)
    return entries


def _importer(runtime: Runtime) -> Importer:
    return Importer(runtime.store, runtime.bus, Ids(SystemClock()), "main")


# As intake lets it in: NUL and lone surrogates were replaced there.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40
) | st.sampled_from(
    ["\u2028", '"\\', "\x7f", "\U0001f600", "</untrusted>", "a\r\nb", "e\u0301", "en_0"]
)
DATA: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)
BLOCK = st.one_of(
    st.builds(Text, text=TEXT),
    st.builds(Thinking, text=TEXT, signature=st.none() | TEXT),
    st.builds(ToolCall, id=TEXT, name=TEXT, arguments=st.dictionaries(TEXT, DATA, max_size=2)),
)
REPLY = st.builds(
    AssistantMessage,
    content=st.lists(BLOCK, max_size=3).map(tuple),
    stop_reason=st.sampled_from(["stop", "length", "tool_use", "aborted", "error", "limit"]),
    provider=TEXT,
    usage=st.builds(
        Usage, input=st.integers(0, 9), cache_read=st.integers(0, 9), cost=st.floats(0, 9)
    ),
)
SAID = st.one_of(
    st.tuples(
        st.just(EntryKind.MESSAGE),
        st.builds(UserBody, text=TEXT, source=TEXT, is_external=st.booleans())
        | st.builds(AssistantBody, message=REPLY, is_silent=st.booleans())
        | st.builds(ToolBody, message=st.builds(ToolMessage, call_id=TEXT, name=TEXT, text=TEXT)),
    ),
    st.tuples(
        st.sampled_from(
            [kind for kind in EntryKind if kind not in (EntryKind.MESSAGE, EntryKind.COMPACTION)]
        ),
        st.builds(
            NoteBody, topic=TEXT | st.just("session_info"), text=TEXT, is_hidden=st.booleans()
        ),
    ),
    st.tuples(
        st.just(EntryKind.COMPACTION),
        st.builds(
            CompactionBody,
            summary=TEXT,
            first_kept_depth=st.integers(0, 9),
            tokens_before=st.integers(0, 9),
            details=st.dictionaries(TEXT, DATA, max_size=2),
        ),
    ),
)


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int | None, EntryKind, Body]]:
    """Entries, each below any earlier one; mostly below the one before."""
    count = draw(st.integers(1, 12))
    found: list[tuple[int | None, EntryKind, Body]] = []
    for number in range(count):
        kind, body = draw(SAID)
        above = draw(st.just(number - 1) | st.integers(0, number - 1)) if number else None
        found.append((above, kind, body))
    return found


def test_what_was_said_here_goes_out_and_in_without_any_loss():
    @settings(max_examples=50, deadline=None)
    @given(trees())
    def holds(tree: list[tuple[int | None, EntryKind, Body]]) -> None:
        runner.run(_check(one, tree))

    async def _check(one: CliContext, tree: list[tuple[int | None, EntryKind, Body]]) -> None:
        one.count += 1
        key = f"agent:main:own:{one.count}"
        before = await add(one, key, tree)
        first = await one.get(key)
        report = await one.put(first)

        assert report.troubles == 0
        assert await one.get(report.session_key) == first
        rows = await one.store.read(
            "SELECT kind, body, at FROM entries WHERE transcript_id = :id", id=report.transcript_id
        )
        assert sorted(tuple(row) for row in rows) == sorted(
            (entry.kind.value, entry.body, entry.at) for entry in before
        )
        assert await one.count_of("entry_lines") == 0

    with asyncio.Runner() as runner:
        opened = desk()
        one = runner.run(opened.__aenter__())
        try:
            holds()
        finally:
            runner.run(opened.__aexit__(None, None, None))


FOREIGN = st.dictionaries(
    st.sampled_from(
        ["role", "content", "summary", "provider", "usage", "x", "details", "id", "data"]
    ),
    DATA,
    max_size=4,
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Files that somebody else may have written, and that something may have bitten."""
    heads: list[Any] = [HEADER, {**HEADER, "version": 1}, {}, {"type": []}]
    lines: list[Any] = [draw(st.sampled_from(heads))]
    for number in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["message", "compaction", "label", "custom", "odd", "session"]))
        parent = draw(st.sampled_from([None, f"{number - 1:08x}", "00000000", "ffffffff", 7]))
        name = draw(st.just(f"{number:08x}") | st.sampled_from(["00000000", "", 5, "x" * 65]))
        line = {"type": kind, "id": name, "parentId": parent, **draw(FOREIGN)}
        role = draw(st.sampled_from(["user", "assistant", "toolResult", "custom", "odd", None]))
        message = {"role": role, "content": "x", **draw(FOREIGN)}
        lines.append({**line, "firstKeptEntryId": parent, "message": message})
    file = bytearray(written(*lines))
    for place in draw(st.lists(st.integers(0, len(file) - 1), max_size=4)):
        file[place] = draw(st.integers(0, 255))
    return bytes(file[: draw(st.integers(0, len(file)) | st.just(len(file)))])


def test_no_file_breaks_an_import_and_what_comes_out_goes_in_again_unchanged():
    @settings(max_examples=80, deadline=None)
    @given(files(), st.integers(1, 300))
    def holds(file: bytes, size: int) -> None:
        runner.run(_check(one, file, size))

    async def _check(one: CliContext, file: bytes, size: int) -> None:
        try:
            report = await one.put(file, piece=size)
        except InvalidInput:
            return
        first = await one.get(report.session_key)
        again = await one.put(first)

        assert again.troubles == 0
        assert again.entries == report.entries
        assert await one.get(again.session_key) == first

    with asyncio.Runner() as runner:
        opened = desk()
        one = runner.run(opened.__aenter__())
        try:
            holds()
        finally:
            runner.run(opened.__aexit__(None, None, None))
