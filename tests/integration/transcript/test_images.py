"""Images and files come in and go out with their transcript, and their bytes are kept once."""

import base64
import hashlib
from typing import Any

import pytest

from tests.integration.engine.looking import turn_of
from tests.integration.transcript.files import HEADER, CliContext, desk, entry, user, written
from tests.pictures import PDF, attachment, png
from wakeful.models.model import Request
from wakeful.models.sight import Sight
from wakeful.runtime import Runtime
from wakeful.testing.kit import Scripted, in_memory
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.jsonl import imports
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.entry import Entry, attached
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import UserMessage

DATA = base64.b64encode(png()).decode()
HASH = hashlib.sha256(png()).hexdigest()
PICTURE = {"type": "image", "data": DATA, "mimeType": "image/png"}
AT = 1769076001000


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def said(name: str, parent: str | None, *content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": list(content), "timestamp": AT, **more}
    return entry(name, parent, message=message)


FILE = written(
    HEADER,
    said("00000001", None, text("look"), PICTURE),
    said("00000002", "00000001", PICTURE, text("before")),
    said("00000003", "00000002", PICTURE),
    said("00000004", "00000003", text("two"), PICTURE, {**PICTURE, "mimeType": "image/webp"}),
    entry(
        "00000005",
        "00000004",
        message={
            "role": "toolResult",
            "toolCallId": "c",
            "toolName": "camera",
            "content": [text("here"), PICTURE],
            "isError": False,
            "timestamp": AT,
        },
    ),
)


async def entries_of(one: CliContext) -> list[Entry]:
    rows = await one.store.read(ENTRIES.select("ORDER BY id"))
    return [ENTRIES.read(row) for row in rows]


async def test_images_of_a_file_are_kept_once_and_leave_byte_for_byte():
    async with desk() as one:
        report = await one.put(FILE, "agent:main:a")

        assert report.troubles == 0
        assert await one.get("agent:main:a") == FILE
        assert await one.count_of("attachments") == 1
        assert [len(attached(entry)) for entry in await entries_of(one)] == [1, 1, 1, 1, 1]
        for table in ("entries", "entry_lines"):
            column = "body" if table == "entries" else "line"
            rows = await one.store.read(f"SELECT {column} FROM {table}")
            assert not any(DATA in (row[0] or "") for row in rows)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "%%%%", "mimeType": "image/png"},
        {"type": "image", "data": "QUI", "mimeType": "image/png"},
        {"type": "image", "data": "QR==", "mimeType": "image/png"},  # a last digit that says more
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "image", "data": DATA, "mimeType": "a\nb"},
        {"type": "image", "data": DATA},
        {"type": "image", "data": 7, "mimeType": "image/png"},
    ],
)
async def test_an_image_that_cannot_be_kept_is_named_and_leaves_as_it_came(block: Any):
    file = written(HEADER, said("00000001", None, text("look"), block))
    async with desk() as one:
        await one.put(file, "agent:main:a")

        assert await one.get("agent:main:a") == file
        assert "[image]" in (await entries_of(one))[0].body
        assert await one.count_of("attachments") == 0


async def test_a_line_that_holds_our_own_mark_leaves_as_it_came():
    tricky = said("00000001", None, PICTURE, text("x"), text(f"wakeful:sha256:{HASH}"))
    file = written(HEADER, tricky)
    async with desk() as one:
        await one.put(file, "agent:main:a")

        assert await one.get("agent:main:a") == file


async def test_a_file_cannot_name_what_somebody_else_has_sent():
    claim = {"name": "a", "media_type": "image/png", "size": len(png()), "hash": HASH}
    thief = said("00000001", None, text("mine?")) | {"wakeful": {"body": {"attachments": [claim]}}}
    async with desk() as one:
        await one.put(FILE, "agent:main:victim")
        await one.put(written(HEADER, thief), "agent:main:thief")
        rows = await one.store.read(
            "SELECT id FROM entries WHERE transcript_id = "
            "(SELECT transcript_id FROM sessions WHERE key = 'agent:main:thief')"
        )
        (stolen,) = [entry for entry in await entries_of(one) if entry.id == rows[0][0]]

    assert attached(stolen) == ()


async def test_an_import_that_is_undone_leaves_no_holder():
    async with desk() as one:
        report = await one.put(FILE, "agent:main:a")
        held = await one.count_of("attachment_uses")
        transcript_id = report.transcript_id or ""
        await one.store.transact(lambda tx: imports.undo(tx, transcript_id, 100))

        assert (held, await one.count_of("attachment_uses")) == (5, 0)


def files_of(runtime: Runtime) -> CliContext:
    ids = Ids(SystemClock())
    return CliContext(runtime.store, Importer(runtime.store, runtime.bus, ids, "main"))


async def test_what_was_attached_here_goes_elsewhere_with_its_name_and_bytes():
    files = [
        attachment(png(), "cat.png"),
        attachment(b"a,b\n", "t.csv", "text/csv"),
        attachment(PDF, "p.pdf", "application/pdf"),
    ]
    async with in_memory(["well"]) as runtime:
        await turn_of(runtime, await runtime.send("look", attachments=files))
        file = await files_of(runtime).get("agent:main:main")
        before = attached((await runtime.entries())[0])
    async with desk() as other:
        await other.put(file, "agent:main:a")
        (first, _) = await entries_of(other)

        assert await other.get("agent:main:a") == file
        assert attached(first) == before
        assert await other.count_of("attachments") == 3


async def test_an_imported_image_is_shown_to_the_model():
    read: list[Request] = []

    def answer(request: Request) -> str:
        read.append(request)
        return "well"

    model = Scripted(answer, sight=Sight(images=True))
    async with in_memory(model) as runtime:
        one = files_of(runtime)
        await one.put(
            written(HEADER, said("00000001", None, text("look"), PICTURE)), "agent:main:i"
        )
        await turn_of(runtime, await runtime.send("what is it?", session="agent:main:i"))

    first = read[0].messages[0]
    assert isinstance(first, UserMessage)
    assert [read[0].contents[one.hash] for one in first.attachments] == [DATA]


async def test_text_alone_needs_no_bytes():
    file = written(HEADER, user("00000001", None))
    async with desk() as one:
        await one.put(file, "agent:main:a")

        assert await one.count_of("attachment_uses") == 0
