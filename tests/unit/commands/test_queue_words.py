"""What `/queue` takes, and how it is cut out of a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.commands.queue_words import MOST_TIMES, MOST_WORDS, cut_out, is_alone, parsed
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, Drop, Mode, QueueOverrides

COLLECT = QueueOverrides(mode=Mode.COLLECT)


@pytest.mark.parametrize(
    ("text", "rest", "queue"),
    [
        ("please /queue collect hurry", "please hurry", COLLECT),
        ("/queue collect hurry", "hurry", COLLECT),
        ("hurry /QUEUE Collect", "hurry", COLLECT),
        ("a\n/queue collect\nb", "a\nb", COLLECT),
        ("a  b /queue collect\tc  d", "a  b\tc  d", COLLECT),
        (
            "/queue collect debounce:2s cap:5 drop:old now then",
            "now then",
            QueueOverrides(mode=Mode.COLLECT, debounce_ms=2000, cap=5, drop=Drop.OLD),
        ),
        ("a /queue cap:5 b /queue collect c", "a b c", QueueOverrides(mode=Mode.COLLECT, cap=5)),
        ("a /queue collect queue b", "a b", QueueOverrides(mode=Mode.QUEUE)),
        ("/queue collect", "", COLLECT),
    ],
)
def test_with_an_argument_it_is_cut_out(text: str, rest: str, queue: QueueOverrides):
    found = cut_out(text)

    assert (found.text, found.queue) == (rest, queue)


@pytest.mark.parametrize(
    "text",
    [
        "what does /queue do?",
        "see /queue",
        "a /queue default",
        "a /queue sideways",
        "a /queue cap:0 b",
        "a /queue cap:99999999 b",
        "a /queue debounce:9999999m b",
        "a /queuecollect b",
        "a/queue collect",
        "/queues collect",
        " spaces  stay ",
        "",
    ],
)
def test_without_one_it_is_text(text: str):
    found = cut_out(text)

    assert (found.text, found.queue) == (text, NO_OVERRIDES)


@pytest.mark.parametrize(
    ("rest", "is_meant"),
    [
        ("", True),
        ("collect", True),
        ("collect cap:3", True),
        ("default", True),
        ("sideways", True),
        ("hello there", True),
        ("collect hello", False),
        ("cap:3 collect\nhello", False),
    ],
)
def test_at_the_start_it_is_a_command_unless_a_message_follows(rest: str, is_meant: bool):
    assert is_alone(rest) is is_meant


def test_arguments_go_over_the_settings_so_far():
    assert parsed("cap:3", COLLECT) == QueueOverrides(mode=Mode.COLLECT, cap=3)
    with pytest.raises(InvalidInput, match="takes a mode"):
        parsed("cap:x")


@given(*[st.text(alphabet="abA \n\t./é", max_size=30)] * 2)
def test_nothing_else_of_a_message_is_lost(before: str, after: str):
    found = cut_out(f"{before} /queue collect {after}")

    assert found.queue == COLLECT
    assert found.text.split() == before.split() + after.split()


def test_a_message_full_of_queue_words_is_read_no_further_than_its_first_few():
    """Whoever sends it must not keep everybody waiting: it may be a megabyte of them."""
    cut = cut_out("go /queue collect " * (MOST_TIMES + 2))

    assert cut.queue.mode is Mode.COLLECT
    assert cut.text.count("/queue collect") == 2


def test_a_queue_with_more_words_than_there_are_is_a_message():
    words = "collect " * (MOST_WORDS + 2)

    assert not is_alone(words)
    assert cut_out(f"/queue {words}").text == "collect collect"
