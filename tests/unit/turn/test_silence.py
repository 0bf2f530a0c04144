"""Replies that are kept but not delivered."""

import pytest

from wakeful.prompts.silence import spoken


@pytest.mark.parametrize("text", ["NO_REPLY", " HEARTBEAT_OK ", "[SILENT]", "NO_REPLY\nNO_REPLY"])
def test_a_token_alone_is_silence(text: str):
    assert spoken(text).is_silent


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("NO_REPLY and more", "and more"),
        ("all is well HEARTBEAT_OK", "all is well"),
        ("[SILENT] hush [SILENT]", "hush"),
        ("say NO_REPLY in the middle", "say NO_REPLY in the middle"),
        ("NO_REPLYING", "NO_REPLYING"),
        ("XNO_REPLY", "XNO_REPLY"),
        ("plain", "plain"),
    ],
)
def test_only_a_whole_word_at_an_edge_is_stripped(text: str, left: str):
    said = spoken(text)

    assert (said.text, said.is_silent) == (left, False)
