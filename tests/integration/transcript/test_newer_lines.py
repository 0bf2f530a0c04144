"""What newer files say of the conversation counts, and what nobody here knows is kept."""

import json
from typing import Any

import pytest

from tests.integration.transcript.files import (
    HEADER,
    CliContext,
    answer,
    desk,
    entry,
    user,
    written,
)
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.testing.kit import in_memory
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.ids import Ids

SEEN = Scripted(lambda request: " / ".join(one.text for one in request.messages))


def on(runtime: Runtime) -> CliContext:
    importer = Importer(runtime.store, runtime.bus, Ids(SystemClock()), "main")
    return CliContext(runtime.store, importer)


async def continued(*lines: Any) -> str | None:
    """Import a file, say one thing more, and return what the model saw."""
    async with in_memory(SEEN) as runtime:
        one = on(runtime)
        file = written(HEADER, *lines)
        report = await one.put(file)
        assert report.troubles == 0
        assert await one.get(report.session_key) == file
        turn = await runtime.wait(await runtime.send("go on", session=report.session_key))
    return None if turn is None else turn.reply


FOUR = [
    user("00000001", None, "a"),
    answer("00000002", "00000001", "b"),
    user("00000003", "00000002", "hunter2"),
    answer("00000004", "00000003", "d"),
]
NEWER: list[tuple[str, list[dict[str, Any]], str]] = [
    (
        "an entry that was left out",
        [entry("00000005", "00000004", "context_edit", targetId="00000003", replacement=None)],
        "a / b / d / go on",
    ),
    (
        "an entry with other words, the last of which count",
        [
            entry("00000005", "00000004", "context_edit", targetId="00000003", replacement=None),
            entry(
                "00000006",
                "00000005",
                "context_edit",
                targetId="00000003",
                replacement={"content": "[secret]"},
            ),
            entry(
                "00000007",
                "00000006",
                "context_edit",
                targetId="00000004",
                replacement={"content": [{"type": "text", "text": "D"}]},
            ),
        ],
        "a / b / [secret] / D / go on",
    ),
    (
        "a leaf written below the line that was left",
        [entry("00000005", "00000004", "leaf", targetId="00000002")],
        "a / b / go on",
    ),
    (
        "what was said after a leaf",
        [
            entry("00000005", "00000004", "leaf", targetId="00000002"),
            user("00000006", "00000002", "e"),
        ],
        "a / b / e / go on",
    ),
    ("a leaf at nothing", [entry("00000005", "00000004", "leaf", targetId=None)], "go on"),
    (
        "a reset",
        [entry("00000005", "00000004", "reset", reason="new"), user("00000006", "00000005", "e")],
        "e / go on",
    ),
    (
        "a reset that keeps some",
        [entry("00000005", "00000004", "reset", firstKeptEntryId="00000004")],
        "d / go on",
    ),
    (
        "kinds and roles that nobody here knows",
        [
            entry("00000005", "00000004", "usage", kind="cache_warm", usage={"input": 3}),
            entry("00000006", "00000005", "hologram", data=[1, 2]),
            entry("00000007", "00000006", message={"role": "system", "content": "obey"}),
            user("00000008", "00000007", "e"),
        ],
        "a / b / hunter2 / d / e / go on",
    ),
    (
        "a reply that broke off",
        [answer("00000005", "00000004", "half a", stopReason="aborted")],
        "a / b / hunter2 / d / go on",
    ),
]


@pytest.mark.parametrize(
    ("lines", "seen"), [case[1:] for case in NEWER], ids=[case[0] for case in NEWER]
)
async def test_what_a_newer_file_says_of_the_conversation_counts(
    lines: list[dict[str, Any]], seen: str
):
    assert await continued(*FOUR, *lines) == seen


async def test_lines_that_nobody_here_reads_are_counted():
    async with desk() as one:
        report = await one.put(written(HEADER, *FOUR, entry("00000005", "00000004", "hologram")))

    assert (report.entries, report.troubles, report.unknown) == (5, 0, 1)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"exitCode": 0, "cancelled": False}, "$ ls\nfiles"),
        ({"exitCode": 2, "cancelled": False}, "$ ls\nfiles\n(exit code 2)"),
        ({"cancelled": True}, "$ ls\nfiles\n(cancelled)"),
    ],
)
async def test_how_a_command_ended_is_read(how: dict[str, Any], told: str):
    message = {"role": "bashExecution", "command": "ls", "output": "files", **how}

    assert await continued(entry("00000001", None, message=message)) == f"{told} / go on"


async def test_a_session_stands_where_it_stood_when_it_comes_in_again():
    async with in_memory(SEEN) as runtime:
        for text in ("one", "two"):
            await runtime.wait(await runtime.send(text))
        _, first, *_ = await runtime.entries()
        await runtime.fork(at=first.id)
        one = on(runtime)
        file = await one.get("agent:main:main")
        report = await one.put(file)
        again = await one.get(report.session_key)
        turn = await runtime.wait(await runtime.send("go on", session=report.session_key))
        last = json.loads(file.splitlines()[-1])

    assert turn is not None
    assert turn.reply == "one / one / go on"
    assert again == file
    assert (last["type"], last["targetId"], last["parentId"]) == (
        "leaf",
        first.id[-8:],
        first.id[-8:],
    )


async def test_a_session_that_forked_off_names_the_file_it_came_from():
    async with in_memory(SEEN) as runtime:
        await runtime.wait(await runtime.send("one"))
        await runtime.fork(to="copy")
        one = on(runtime)
        first, copy = [
            json.loads((await one.get(f"agent:main:{name}")).splitlines()[0])
            for name in ("main", "copy")
        ]

    assert copy["parentSession"] == first["id"] != copy["id"]
    assert "parentSession" not in first
