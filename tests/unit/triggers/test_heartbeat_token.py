"""The word that says that nothing needs attention: at both ends, whole, however it is dressed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.prompts.heartbeat_token import TOKEN, strip_heartbeat_token

LONG = "The build of the release branch fails since noon. " * 8


@pytest.mark.parametrize(
    "raw",
    [
        "HEARTBEAT_OK",
        "  HEARTBEAT_OK\n",
        "**HEARTBEAT_OK**",
        "_HEARTBEAT_OK_",
        "~~HEARTBEAT_OK~~",
        "`HEARTBEAT_OK`",
        "```\nHEARTBEAT_OK\n```",
        "<b>HEARTBEAT_OK</b>",
        "<p><em class='x'>HEARTBEAT_OK</em></p>",
        "HEARTBEAT_OK.",
        "HEARTBEAT_OK HEARTBEAT_OK",
        "",
        "   ",
    ],
)
def test_nothing_but_the_token_is_nothing(raw: str):
    for mode in ("heartbeat", "message"):
        found = strip_heartbeat_token(raw, mode)
        assert (found.should_skip, found.text.strip()) == (True, "")


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ("HEARTBEAT_OK all is well", "all is well"),
        ("All is well. HEARTBEAT_OK", "All is well."),
        ("**HEARTBEAT_OK** all is well", "all is well"),
        ("**HEARTBEAT_OK all is well**", "**all is well**"),
        ("**all is well HEARTBEAT_OK**", "**all is well**"),
        ("HEARTBEAT_OK all is well HEARTBEAT_OK", "all is well"),
        ("all is well `HEARTBEAT_OK`.", "all is well"),
    ],
)
def test_the_token_goes_from_both_ends(raw: str, left: str):
    brief = strip_heartbeat_token(raw)
    said = strip_heartbeat_token(raw, "message")

    assert (brief.should_skip, brief.text, brief.did_strip) == (True, left, True)
    assert (said.should_skip, said.text) == (False, left)


def test_a_long_rest_is_delivered_and_a_short_one_is_not():
    assert not strip_heartbeat_token(f"HEARTBEAT_OK {LONG}").should_skip
    assert strip_heartbeat_token("HEARTBEAT_OK " + "x" * 300).should_skip
    assert not strip_heartbeat_token("HEARTBEAT_OK " + "x" * 301).should_skip
    assert not strip_heartbeat_token("HEARTBEAT_OK fine", max_ack_chars=3).should_skip


@pytest.mark.parametrize(
    "raw",
    [
        "Disk full.",
        "HEARTBEAT_OKAY",
        "MY_HEARTBEAT_OK",
        "HEARTBEAT_OK_2 failed",
        "The agent said HEARTBEAT_OK an hour ago.",
    ],
)
def test_short_words_without_the_token_are_delivered_as_they_are(raw: str):
    found = strip_heartbeat_token(raw)

    assert (found.should_skip, found.text, found.did_strip) == (False, raw, False)


@given(st.text(alphabet="ab *_~`<>/.!\nHEARTBEAT_OK", max_size=80) | st.text())
def test_whatever_is_said_stripping_ends_and_adds_nothing(raw: str):
    found = strip_heartbeat_token(raw, "message")
    again = strip_heartbeat_token(found.text, "message")

    assert len(found.text) <= len(raw)
    assert again.text.strip() == found.text.strip()


def test_markup_without_end_takes_no_time():
    raw = "*" * 100_000 + f" {TOKEN} " + "<b" * 50_000

    assert not strip_heartbeat_token(raw).did_strip
