"""Files as other tools really write them: their encodings, their times, plain chats."""

import gzip
import json
from typing import Any

import pytest

from tests.integration.transcript.files import HEADER, desk, entry, user, written
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.jsonl.splitting import lines
from wakeful.vocabulary.entry import AssistantBody, Entry, ToolBody, UserBody
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.message import Text, Thinking, ToolCall

FILE = written(HEADER, user("00000001", None, "Gdańsk \U0001f6a2"), user("00000002", "00000001"))
NOON = 1_780_315_200_000  # 2026-06-01T12:00:00Z


async def entries_of(file: bytes, **wishes: Any) -> list[Entry]:
    async with desk() as one:
        await one.put(file, **wishes)
        rows = await one.store.read(ENTRIES.select("ORDER BY id"))
        return [ENTRIES.read(row) for row in rows]


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
async def test_a_file_that_a_shell_of_windows_wrote_is_read(encoding: str, piece: int):
    file = FILE.decode().encode(encoding)
    async with desk() as one:
        report = await one.put(file, piece=piece)

        assert (report.entries, report.troubles) == (2, 0)
        assert await one.get(report.session_key) == FILE


async def test_lines_of_windows_leave_as_they_came():
    file = FILE.replace(b"\n", b"\r\n")
    async with desk() as one:
        report = await one.put(file)

        assert await one.get(report.session_key) == file


@pytest.mark.parametrize("file", [b"", b"\xff", b"\xff\xfe", b"a", b"\xef\xbb", b"\xff\xfe{"])
async def test_a_file_of_a_few_bytes_is_read_to_its_end(file: bytes):
    async def given():
        yield file

    found = [line.text async for line in lines(given())]

    assert len(found) <= 1


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (gzip.compress(FILE), "it is compressed"),
        (b"PK\x03\x04\x14\x00", "it is compressed"),
        (json.dumps([{"title": "x", "mapping": {}}], indent=1).encode(), "line 1: not JSON; read"),
        (b'{"hello": 1}\n', "line 1: no header before it; read are lines of JSON"),
    ],
)
async def test_what_is_no_transcript_is_refused_in_words_that_help(file: bytes, why: str):
    async with desk() as one:
        with pytest.raises(InvalidInput, match=why):
            await one.put(file)


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-06-01T12:00:00.000Z",
        "2026-06-01T14:00:00+02:00",
        "2026-06-01 12:00:00",
        NOON,
        NOON // 1000,
        NOON + 0.25,
        str(NOON),
        str(NOON // 1000),
    ],
)
async def test_a_time_counts_in_every_form(stamp: object):
    (said,) = await entries_of(written(HEADER, {**user("00000001", None), "timestamp": stamp}))

    assert said.at == NOON


@pytest.mark.parametrize("stamp", [None, True, -5, 0, 1e300, "soon", "9" * 400, {"at": 1}])
async def test_where_a_line_has_no_time_that_of_its_message_counts(stamp: object):
    message = {"role": "user", "content": "hi", "timestamp": NOON}
    line = {**entry("00000001", None, message=message), "timestamp": stamp}
    (said,) = await entries_of(written(HEADER, line))

    assert said.at == NOON


async def test_a_message_of_an_unknown_role_is_called_by_it():
    line = entry("00000001", None, message={"role": "system", "content": "be kind"})
    first, _ = await entries_of(written(HEADER, line, user("00000002", "00000001")))

    assert '"message (system)"' in first.body


PIXEL = "iVBORw0KGgo="
CHAT: list[Any] = [
    {"_type": "metadata", "key": "telegram:123", "created_at": "2026-06-01T12:00:00.5"},
    {"role": "user", "content": "Where is it?", "timestamp": "2026-06-01T12:00:00"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I must look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
            {"id": "c2", "type": "function", "function": {"name": "odd", "arguments": "{broken"}},
        ],
        "timestamp": NOON,
    },
    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "on the hill"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "name": "odd",
        "content": [{"type": "text", "text": ""}],
    },
    {"role": "system", "content": "a rule of another agent"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "And this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ],
    },
    {"role": "assistant", "content": "A pixel."},
]


async def test_a_plain_chat_becomes_a_conversation():
    async with desk() as one:
        report = await one.importer.run(_once(written(*CHAT)), None, is_trial=False)
        rows = await one.store.read(ENTRIES.select("ORDER BY id"))
        first = await one.get(report.session_key)
        again = await one.put(first)

        assert await one.get(again.session_key) == first
    _, asked, replied, found, *_, shown, last = [ENTRIES.read(row).content() for row in rows]
    assert report.session_key == "agent:main:import:telegram~3a123"
    assert (report.entries, report.unknown, report.troubles) == (8, 1, 0)
    assert isinstance(asked, UserBody)
    assert asked.text == "Where is it?"
    assert isinstance(replied, AssistantBody)
    assert replied.message.content == (
        Thinking(text="I must look."),
        ToolCall(id="c1", name="look", arguments={"a": 1}),
        ToolCall(id="c2", name="odd", arguments={"arguments": "{broken"}),
    )
    assert isinstance(found, ToolBody)
    assert (found.message.call_id, found.message.text) == ("c1", "on the hill")
    assert isinstance(shown, UserBody)
    assert (shown.text, [one.media_type for one in shown.attachments]) == (
        "And this?",
        ["image/png"],
    )
    assert isinstance(last, AssistantBody)
    assert last.message.content == (Text(text="A pixel."),)


async def _once(file: bytes):
    yield file


async def test_the_last_words_of_a_session_are_as_old_as_in_its_file():
    """Whoever brings fifty of them sees which was used last."""
    file = written(HEADER, {**user("00000001", None), "timestamp": NOON})
    async with desk() as one:
        await one.put(file)
        rows = await one.store.read("SELECT last_write_at FROM sessions")

    assert rows == [(NOON,)]
