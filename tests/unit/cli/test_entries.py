"""Entries as a person reads them: who spoke, what was said, and what came along."""

from typing import Any

import pytest

from wakeful.cli.entries import ID_DIGITS, said
from wakeful.vocabulary.stimulus import ID_LENGTH

PICTURE = {"name": "cat.png", "media_type": "image/png", "size": 68, "hash": "ab" * 32}


def entry(kind: str, **body: Any) -> dict[str, Any]:
    return {"kind": kind, "body": body}


@pytest.mark.parametrize(
    ("kind", "note", "who", "text"),
    [
        ("label", {"topic": "en_1", "text": "here"}, "label", "here (on en_1)"),
        ("label", {"topic": "en_1", "text": ""}, "label", "taken off en_1"),
        ("model_change", {"topic": "openai", "text": "gpt"}, "model", "openai:gpt"),
        ("model_change", {"topic": "", "text": "default"}, "model", "default"),
        ("branch_summary", {"topic": "en_1", "text": "so far"}, "summary", "so far"),
        ("custom_message", {"topic": "stopped", "text": "ended"}, "note (stopped)", "ended"),
        ("custom_message", {"topic": "", "text": "ended"}, "note", "ended"),
        ("custom", {"topic": "command", "text": "/new"}, "note (command)", "/new"),
        ("custom", {"topic": "opaque", "text": "usage"}, "line of another program", "usage"),
        (
            "automation_trigger",
            {"topic": "daily", "text": "Scheduled"},
            "automation",
            "Scheduled",
        ),
        ("context_edit", {"topic": "en_1", "text": "null"}, "edit", "en_1 is left out"),
        ("context_edit", {"topic": "en_1", "text": '"x"'}, "edit", 'en_1 reads "x"'),
    ],
)
def test_a_note_is_said_by_its_kind_and_never_by_its_topic(
    kind: str, note: dict[str, str], who: str, text: str
):
    assert said(entry(kind, type="note", **note)) == (who, text)


def test_a_hidden_note_is_told_to_be_hidden():
    hidden = entry("custom_message", type="note", topic="remember", text="write", is_hidden=True)

    assert said(hidden) == ("note (remember), for the model alone", "write")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"summary": "so far"}, "so far"),
        ({"summary": "", "undoes": "en_1"}, "what was compacted is shown again"),
        ({"summary": "so far", "undoes": "en_1"}, "what was compacted is shown again\nso far"),
        ({"summary": "", "details": {"reset": "idle"}}, "the conversation begins anew: idle"),
        ({"summary": ""}, "the conversation begins anew"),
    ],
)
def test_a_compaction_tells_what_it_did(body: dict[str, Any], text: str):
    assert said(entry("compaction", type="compaction", **body)) == ("summary", text)


def test_what_came_along_with_words_is_shown_below_them():
    spoken = entry("message", type="user", text="look", source="anna", attachments=[PICTURE])

    assert said(spoken) == (
        "anna",
        "look\n[attached: cat.png (image/png, 68 bytes), abababababababab]",
    )


def test_what_a_tool_brought_along_is_shown_too():
    result = entry(
        "message", type="tool", message={"name": "camera", "text": "", "attachments": [PICTURE]}
    )

    assert said(result) == (
        "tool camera",
        "[attached: cat.png (image/png, 68 bytes), abababababababab]",
    )


def test_a_name_of_several_lines_cannot_forge_what_was_said():
    sly = {**PICTURE, "name": "a\nagent\nyes"}

    _, text = said(entry("message", type="user", text="look", attachments=[sly]))

    assert text.count("\n") == 1


def test_a_failed_call_and_a_reply_that_broke_off_are_told():
    failed = entry("message", type="tool", message={"name": "x", "text": "no", "is_error": True})
    reply = {"content": [{"type": "text", "text": "half"}], "stop_reason": "aborted"}

    assert said(failed) == ("tool x, failed", "no")
    assert said(entry("message", type="assistant", message=reply)) == ("agent, aborted", "half")


def test_a_call_is_shown_with_its_arguments_and_a_thought_is_not():
    content = [
        {"type": "thinking", "text": "hm"},
        {"type": "text", "text": "so"},
        {"type": "tool_call", "id": "1", "name": "add", "arguments": {"a": 1, "b": [2, None]}},
    ]

    assert said(entry("message", type="assistant", message={"content": content})) == (
        "agent",
        "so\n→ add(a=1, b=2, –)",
    )


def test_an_attachment_is_called_as_its_verbs_call_it():
    assert ID_DIGITS == ID_LENGTH
