"""Replies that are kept but not delivered."""

import pytest

from wakeful.turn.backoff import next_try
from wakeful.turn.silence import spoken
from wakeful.vocabulary.errors import Garbled, Transient


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


def test_waiting_for_a_model_grows_and_obeys_what_it_was_told():
    waits = [next_try(Transient("busy"), tries, 5, now=0) for tries in range(6)]

    assert waits == [1000, 2000, 4000, 8000, 16000, None]
    assert next_try(Transient("busy", retry_after_s=90), 0, 5, now=0) == 90_000


def test_a_garbled_answer_is_asked_for_once_more_at_once():
    assert next_try(Garbled(), 0, 5, now=7) == 7
    assert next_try(Garbled(), 1, 5, now=7) is None
