"""The story of a session is told once, block by block, whatever happens to the connection."""

from typing import Any

import pytest

from wakeful.cli.client import SseFrame
from wakeful.cli.live_chat import rendered
from wakeful.cli.output import safe_lines
from wakeful.cli.session_names import session_named
from wakeful.cli.story import Story, whole_blocks


def told(story: Story, kind: str, **data: Any) -> list[str]:
    return [piece.text for piece in story.take(SseFrame(id="", kind=kind, data=data))]


def story() -> Story:
    return Story(how_long=lambda _: "in 47 s")


def test_words_come_block_by_block_and_the_rest_at_the_end():
    one = story()
    told(one, "turn.started", turn_id="t")

    assert told(one, "turn.delta", text="First.\n\nSec", step=1) == ["First.\n\n"]
    assert one.pending == "Sec"
    assert told(one, "turn.delta", text="ond.", step=1) == []
    assert told(one, "turn.finished", state="done", reply="First.\n\nSecond.") == ["Second."]
    assert (one.turn_id, one.pending) == (None, "")


def test_an_answer_whose_words_were_missed_is_told_whole():
    one = story()
    told(one, "turn.delta", text="You sa", step=1, turn_id="t")
    told(one, "turn.resumed", turn_id="t", attempt=2)

    assert told(one, "turn.finished", state="done", reply="You said it.") == ["You said it."]


def test_an_answer_with_a_gap_is_told_again():
    one = story()
    told(one, "turn.delta", text="One ", step=1, turn_id="t")
    told(one, "gap")
    told(one, "turn.delta", text="three.", step=1, turn_id="t")

    assert told(one, "turn.finished", state="done", reply="One two three.") == ["One two three."]


def test_words_before_a_tool_are_told_before_it():
    one = story()
    told(one, "turn.delta", text="I look.", step=1, turn_id="t")

    assert told(one, "turn.tool", name="price", phase="started") == ["I look."]
    assert one.tool == "price"
    assert told(one, "turn.tool", name="price", phase="done") == ["used price"]
    assert told(one, "turn.tool", name="price", phase="unknown") == ["price: unknown"]
    assert told(one, "turn.delta", text="It is 3.", step=2) == []
    assert told(one, "turn.finished", state="done", reply="It is 3.") == ["It is 3."]


def test_a_wait_is_told_as_a_length_of_time():
    one = story()

    said = told(one, "turn.left", error="The provider is busy.", resume_at=1)

    assert said == ["The provider is busy. Asked again in 47 s"]
    assert one.waits_until == 1


def test_a_turn_that_failed_says_why():
    error = {"kind": "limit", "message": "too many steps"}

    assert told(story(), "turn.finished", state="failed", error=error) == ["too many steps"]
    assert told(story(), "turn.finished", state="cancelled") == ["cancelled"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("one line", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\n \ntwo\n\n", "one\n \ntwo\n\n"),
        ("```\na\n\nb", ""),
        ("```\na\n\nb\n```\n\nafter", "```\na\n\nb\n```\n\n"),
        ("\n\n", ""),
    ],
)
def test_a_block_ends_with_an_empty_line_outside_of_code(text: str, whole: str):
    assert text[: whole_blocks(text)] == whole


def test_joiners_stay_and_what_a_terminal_obeys_goes():
    family = "\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"

    assert safe_lines(f"{family} {persian}") == f"{family} {persian}"
    assert safe_lines("\x1b[2J\u202eevil\x07") == "[2Jevil"


def test_markdown_obeys_nobody_and_shows_where_links_lead():
    shown = rendered("**a** \x1b[2J [here](https://example.com)", 80, has_colours=False)

    assert shown == "a [2J here (https://example.com)\n"


@pytest.mark.parametrize(
    ("words", "agent", "name"),
    [
        ("main", None, "main"),
        ("main", "scout", "agent:scout:main"),
        ("Work Room", None, "~57ork~20~52oom"),
        ("web:7", "scout", "agent:scout:web:7"),
        ("agent:main:x", None, "agent:main:x"),
        ("~zz", None, "~zz"),
    ],
)
def test_a_session_is_named_as_people_name_it(words: str, agent: str | None, name: str):
    assert session_named(words, agent) == name
