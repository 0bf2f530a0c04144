"""Transcripts of Claude Code become sessions that go on as they would have there."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.transcript.files import HEADER, CliContext, desk, entry, written
from tests.pictures import PDF, png
from wakeful.models.model import Request
from wakeful.models.scripted import Scripted
from wakeful.testing.kit import in_memory
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.jsonl.importing import Importer, ImportReport
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.entry import Entry, EntryKind, attached
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage, UserMessage
from wakeful.vocabulary.session_key import SessionKey

DATA = base64.b64encode(png()).decode()
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}


def line(uuid: str, parent: str | None, kind: str = "user", /, **fields: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/me/work",
        "sessionId": "8a6dbd23-6a2a-4d6c-9f8b-0d5b0c3b7f10",
        "version": "2.1.0",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-01-22T10:00:01.000Z",
        **fields,
    }


def says(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return line(uuid, parent, message={"role": "user", "content": content}, **more)


def replies(
    uuid: str, parent: str | None, message_id: str, *content: Any, **more: Any
) -> dict[str, Any]:
    message = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": list(content),
        "stop_reason": None,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 10,
            "output_tokens": 4,
        },
    }
    return line(uuid, parent, "assistant", message=message, requestId="req_1", **more)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(call_id: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def brief(message: Message) -> str:
    match message:
        case UserMessage():
            return f"user {message.text}"
        case ToolMessage():
            failed = " failed" if message.is_error else ""
            return f"{message.name} {message.call_id}{failed}: {message.text}"
        case AssistantMessage():
            calls = "".join(f" → {one.name}({one.id})" for one in message.tool_calls)
            return f"agent {message.text}{calls}"


async def continued(*lines: Any) -> tuple[ImportReport, list[str]]:
    """Import a file, say one thing more, and return what the model saw before it.

    What leaves after the import comes in again as the same.
    """
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "well"

    async with in_memory(Scripted(answer)) as runtime, desk() as elsewhere:
        importer = Importer(runtime.store, runtime.bus, Ids(SystemClock()), "main")
        here = type(elsewhere)(runtime.store, importer)
        report = await here.put(written(*lines))
        first = await here.get(report.session_key)
        again = await elsewhere.put(first)
        assert again.troubles == 0
        assert await elsewhere.get(again.session_key) == first
        await runtime.wait(await runtime.send("go on", session=report.session_key))
    *before, last = map(brief, seen[0].messages)
    assert last == "user go on"
    return report, before


CASES: list[tuple[str, list[Any], list[str]]] = [
    (
        "words, a thought, and a call with its result",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", {"type": "thinking", "thinking": "hm", "signature": "s"}),
            replies("a2", "a1", "m1", text("I look.")),
            replies("a3", "a2", "m1", call("t1", file_path="x")),
            says("r1", "a3", [result("t1", [text("one"), text("two")])], toolUseResult={"a": 1}),
            replies("a4", "r1", "m2", text("done")),
        ],
        ["user hello", "agent I look. → Read(t1)", "Read t1: one\ntwo", "agent done"],
    ),
    (
        "calls side by side, each with a result below its own block",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", call("t1")),
            replies("a2", "a1", "m1", call("t2", "Bash")),
            says("r1", "a1", [result("t1")]),
            says("r2", "a2", [result("t2", "no", is_error=True)]),
            replies("a3", "r2", "m2", text("done")),
        ],
        [
            "user hello",
            "agent  → Read(t1) → Bash(t2)",
            "Read t1: ok",
            "Bash t2 failed: no",
            "agent done",
        ],
    ),
    (
        "results that come between the blocks of one reply",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", call("t1")),
            says("r1", "a1", [result("t1")]),
            replies("a2", "a1", "m1", call("t2")),
            says("r2", "a2", [result("t2")]),
            replies("a3", "r2", "m2", text("done")),
        ],
        [
            "user hello",
            "agent  → Read(t1)",
            "Read t1: ok",
            "agent  → Read(t2)",
            "Read t2: ok",
            "agent done",
        ],
    ),
    (
        "words beside a result, while another is still to come",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", call("t1"), call("t2")),
            says("r1", "a1", [result("t1"), text("by the way")]),
            says("r2", "r1", [result("t2"), text("go")]),
            replies("a2", "r2", "m2", text("done")),
        ],
        [
            "user hello",
            "agent  → Read(t1) → Read(t2)",
            "Read t1: ok\nby the way",
            "Read t2: ok",
            "user go",
            "agent done",
        ],
    ),
    (
        "what is no part of the conversation parts nothing of it",
        [
            {"type": "summary", "summary": "A title", "leafUuid": "elsewhere"},
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", call("t1")),
            line("p1", "a1", "progress", data={"type": "bash_progress"}),
            line("p2", "p1", "progress", data={"type": "bash_progress"}),
            says("r1", "a1", [result("t1")]),
            line("s1", "r1", "system", subtype="turn_duration", durationMs=3),
            replies("a2", "s1", "m2", text("done")),
            {"type": "queue-operation", "operation": "enqueue", "sessionId": "8a6dbd23"},
        ],
        ["user hello", "agent  → Read(t1)", "Read t1: ok", "agent done"],
    ),
    (
        "a question that was asked again in other words",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", text("what?")),
            {"type": "file-history-snapshot", "messageId": "u2", "snapshot": {}},
            says("u2", "a1", "one"),
            replies("a2", "u2", "m2", text("first")),
            says("u3", "a1", "two"),
            replies("a3", "u3", "m3", text("second")),
        ],
        ["user hello", "agent what?", "user two", "agent second"],
    ),
    (
        "a compaction",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", text("long")),
            line("b1", None, "system", subtype="compact_boundary", logicalParentUuid="a1")
            | {"compactMetadata": {"trigger": "auto", "preTokens": 155_000}},
            says("c1", "b1", "This session goes on: they greeted.", isCompactSummary=True),
            replies("a2", "c1", "m2", text("and on")),
        ],
        ["summary", "agent and on"],
    ),
    (
        "helpers beside the conversation, who spoke last",
        [
            says("u1", None, "hello"),
            replies("a1", "u1", "m1", call("t1", "Task")),
            says("h1", None, "help", isSidechain=True),
            replies("h2", "h1", "m9", text("helped"), isSidechain=True),
            says("r1", "a1", [result("t1", "helped")]),
            replies("a2", "r1", "m2", text("done")),
            replies("h3", "h2", "m8", text("late"), isSidechain=True),
        ],
        ["user hello", "agent  → Task(t1)", "Task t1: helped", "agent done"],
    ),
    (
        "what the program itself said is not the agent's word",
        [
            says("u0", None, "<caveat>", isMeta=True),
            says("u1", "u0", "hello"),
            replies("a1", "u1", "m1", text("API Error: 529"), isApiErrorMessage=True),
            line("q1", "a1", "attachment")
            | {"attachment": {"type": "queued_command", "prompt": "faster"}},
            says("u2", "q1", "secret", isVisibleInTranscriptOnly=True),
        ],
        ["user <caveat>", "user hello", "user The answer to this failed", "user faster"],
    ),
]


@pytest.mark.parametrize(
    ("lines", "seen"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_a_model_sees_what_it_would_have_seen_there(lines: list[Any], seen: list[str]):
    report, before = await continued(*lines)

    assert report.troubles == report.unknown == report.unread_blocks == 0
    assert len(before) == len(seen)
    for told, expected in zip(before, seen, strict=True):
        if expected == "summary":
            assert "they greeted" in told
        elif "failed" in expected and told.startswith("user"):
            assert "API Error" not in told
        else:
            assert told == expected


async def entries_of(*lines: Any) -> list[Entry]:
    async with desk() as one:
        await one.put(written(*lines))
        rows = await one.store.read(ENTRIES.select("ORDER BY id"))
        return [ENTRIES.read(row) for row in rows]


async def test_what_is_no_part_of_a_conversation_opens_no_branch_and_names_the_session():
    async with desk() as one:
        report = await one.put(written(*CASES[4][1]), "agent:main:a")
        rows = await one.store.read("SELECT label FROM sessions")
        lines = [json.loads(line) for line in (await one.get("agent:main:a")).splitlines()]

    assert (report.branches, report.entries) == (1, 10)
    assert rows[0][0] == "A title"
    assert lines[0]["id"] == "8a6dbd23-6a2a-4d6c-9f8b-0d5b0c3b7f10"
    assert lines[0]["cwd"] == "/home/me/work"
    kept = [line["data"]["type"] for line in lines if line["type"] == "custom"]
    assert kept == ["file-history-snapshot", "progress", "progress", "system", "queue-operation"]


async def test_a_reply_keeps_its_model_its_thought_and_what_it_used():
    second = (await entries_of(*CASES[0][1]))[1]

    reply = json.loads(second.body)["message"]
    assert (reply["provider"], reply["model"]) == ("anthropic", "claude-opus-4-5")
    assert reply["content"][0] == {"type": "thinking", "text": "hm", "signature": "s"}
    assert reply["stop_reason"] == "tool_use"
    assert reply["usage"] == {
        "input": 33,
        "output": 4,
        "cache_read": 10,
        "cache_write": 20,
        "cost": 0.0,
    }


async def test_a_compaction_keeps_how_much_it_stood_for():
    found = await entries_of(*CASES[6][1])

    (compaction,) = [one for one in found if one.kind is EntryKind.COMPACTION]
    assert json.loads(compaction.body)["tokens_before"] == 155_000


async def test_images_and_documents_come_along():
    document = {
        "type": "document",
        "title": "plan.pdf",
        "source": {
            "type": "base64",
            "media_type": "application/pdf",
            "data": base64.b64encode(PDF).decode(),
        },
    }
    image = {"type": "image", "source": SOURCE}
    lines = [
        says("u1", None, [text("look"), image, document]),
        replies("a1", "u1", "m1", call("t1", "Screen")),
        says("r1", "a1", [result("t1", [image])]),
    ]

    first, _, third = await entries_of(*lines)
    _, before = await continued(*lines)

    names = [(one.name, one.media_type) for one in attached(first)]
    assert names == [("image-1.png", "image/png"), ("plan.pdf", "application/pdf")]
    assert [one.media_type for one in attached(third)] == ["image/png"]
    assert "plan.pdf" in before[0]


async def test_blocks_of_unknown_kinds_are_counted():
    odd: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    report, before = await continued(
        says("u1", None, [text("hello"), {"type": "image", "source": {"type": "url"}}]),
        replies("a1", "u1", "m1", odd, text("well")),
    )

    assert report.unread_blocks == 2
    assert before == ["user hello\n[image]", "agent well"]


async def test_images_in_the_shape_of_anthropic_come_along_and_leave_byte_for_byte():
    message = {"role": "user", "content": [text("look"), {"type": "image", "source": SOURCE}]}
    file = written(HEADER, entry("00000001", None, message=message))
    async with desk() as one:
        report = await one.put(file, "agent:main:a")
        rows = await one.store.read(ENTRIES.select(""))
        kept = attached(ENTRIES.read(rows[0]))

        assert [(one.media_type, one.size) for one in kept] == [("image/png", len(png()))]
        assert report.unread_blocks == 0
        assert await one.get("agent:main:a") == file
        assert "[image]" not in ENTRIES.read(rows[0]).body


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER, entry("1", None, "hologram"), entry("2", "1", "hologram")],
        [{"type": "response_item", "timestamp": "2026-01-22T10:00:00Z", "payload": {}}],
        [{"speaker": "user", "said": "hi"}, {"speaker": "bot", "said": "hi"}],
        [{"_type": "metadata", "key": "telegram:1"}],
        [{"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}],
        [HEADER, "garbage", "more garbage"],
    ],
)
async def test_a_file_of_which_nothing_was_understood_is_refused_and_leaves_nothing(
    lines: list[Any],
):
    async with desk() as one:
        for is_trial in (True, False):
            with pytest.raises(InvalidInput, match="holds no transcript"):
                await one.put(written(*lines), trial=is_trial)

        for table in ("sessions", "entries", "imports", "branches", "entry_lines"):
            assert await one.count_of(table) == 0


async def test_a_file_is_read_alike_in_pieces_of_any_size():
    whole = written(*CASES[1][1], *CASES[4][1][2:])
    async with desk() as one:
        await one.put(whole, "agent:main:a")
        await one.put(whole, "agent:main:b", piece=7)

        assert await one.get("agent:main:a") == await one.get("agent:main:b")


async def test_a_session_of_another_program_is_named_after_its_id():
    async with desk() as one:
        report = await one.importer.run(_once(written(*CASES[0][1])), None, is_trial=False)

    assert report.session_key == SessionKey(
        "agent:main:import:8a6dbd23-6a2a-4d6c-9f8b-0d5b0c3b7f10"
    )


async def _once(file: bytes) -> AsyncIterator[bytes]:
    yield file


NAMES = st.sampled_from(["a", "b", "c", "d", "aside-1", "line-1", "result-2", "../x", ""])
CALLS = st.sampled_from(["t1", "t2", "t3"])
BLOCKS: st.SearchStrategy[Any] = st.one_of(
    st.builds(text, st.sampled_from(["", "x", "\u0000"])),
    st.builds(call, CALLS),
    st.builds(result, CALLS, st.one_of(st.just("ok"), st.lists(st.builds(text, st.just("y"))))),
    st.just({"type": "image", "source": SOURCE}),
    st.just({"type": "image", "source": 7}),
    st.just({"no": "kind"}),
    st.just(None),
)
CONTENTS: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.just("said"), st.lists(BLOCKS, max_size=3)
)
BARE: list[dict[str, Any]] = [
    {"type": "summary", "summary": "A title", "leafUuid": "a"},
    {"type": "custom-title", "customTitle": "Mine", "sessionId": "s"},
    {"type": "user", "message": {"role": "user", "content": "bare"}},
    {"type": "assistant", "message": 7, "uuid": 7, "parentUuid": []},
    {"type": "system", "compactMetadata": [], "attachment": 3},
]


def _replied(uuid: str, parent: str | None, message_id: Any, content: list[Any]) -> dict[str, Any]:
    return replies(uuid, parent, message_id, *content)


ODD_LINES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(
        says,
        NAMES,
        st.one_of(st.none(), NAMES),
        CONTENTS,
        isMeta=st.booleans(),
        isSidechain=st.booleans(),
        isCompactSummary=st.sampled_from([False, False, True]),
    ),
    st.builds(
        _replied,
        NAMES,
        st.one_of(st.none(), NAMES),
        st.sampled_from(["m1", "m2", None]),
        st.lists(BLOCKS, max_size=3),
    ),
    st.builds(line, NAMES, st.one_of(st.none(), NAMES), st.sampled_from(["system", "progress"])),
    st.sampled_from(BARE),
)


def test_no_file_of_this_kind_breaks_an_import_and_what_comes_out_goes_in_again_unchanged():
    @settings(max_examples=100, deadline=None)
    @given(st.lists(ODD_LINES, max_size=12))
    def holds(lines: list[dict[str, Any]]) -> None:
        runner.run(_check(one, lines))

    async def _check(one: CliContext, lines: list[dict[str, Any]]) -> None:
        file = written({"type": "file-history-snapshot", "snapshot": {}}, *lines)
        try:
            report = await one.put(file)
        except InvalidInput:
            return
        first = await one.get(report.session_key)
        again = await one.put(first)

        assert again.entries == report.entries
        assert await one.get(again.session_key) == first

    with asyncio.Runner() as runner:
        opened = desk()
        one = runner.run(opened.__aenter__())
        try:
            holds()
        finally:
            runner.run(opened.__aexit__(None, None, None))
