"""One key changes; everything else in the file stays as somebody wrote it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.settings.edit import with_value
from wakeful.settings.load import load_text
from wakeful.settings.problems import BadSettings
from wakeful.vocabulary.errors import InvalidInput

FILE = Path("/etc/wakeful.yaml")


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "drain_s", "5", "drain_s: 5\n"),
        ("# mine\n", "drain_s", "5", "# mine\ndrain_s: 5\n"),
        ("drain_s: 1 # why\n", "drain_s", "5", "drain_s: 5 # why\n"),
        ("drain_s: 1", "max_chain_depth", "5", "drain_s: 1\nmax_chain_depth: 5\n"),
        ("", "agents.main.model", "demo", "agents: {main: {model: demo}}\n"),
        ("server: {port: 1}\n", "server.port", "2", "server: {port: 2}\n"),
        ("server: {port: 1}\n", "server.host", "::1", "server: {port: 1, host: ::1}\n"),
        ("server: {}\n", "server.port", "2", "server: {port: 2}\n"),
        ("server:\nqueue: {}\n", "server.port", "2", "server: {port: 2}\nqueue: {}\n"),
        ("server:\n  port: 1\n# x\n", "server.host", "a", "server:\n  port: 1\n  host: a\n# x\n"),
        (
            "agents:\n  main:\n    model: demo\n\nqueue: {cap: 3}\n",
            "agents.main.limits.steps",
            "7",
            "agents:\n  main:\n    model: demo\n    limits: {steps: 7}\n\nqueue: {cap: 3}\n",
        ),
        (
            "agents:\n  main:\n    queue:\n      cap: 3\n",
            "agents.scout.tools",
            "[shell]",
            "agents:\n  main:\n    queue:\n      cap: 3\n  scout: {tools: [shell]}\n",
        ),
        ("timezone: |\n  UTC\ndrain_s: 1\n", "timezone", "UTC", "timezone: UTC\ndrain_s: 1\n"),
        ("timezone: ${A}\ndrain_s: 1\n", "drain_s", "2", "timezone: ${A}\ndrain_s: 2\n"),
        ("", "timezone", "${ZONE}", 'timezone: "${ZONE}"\n'),
        ("server: {hosts: [a]}\n", "server.hosts", "[b, c]", "server: {hosts: [b, c]}\n"),
    ],
)
def test_a_value_is_changed_in_its_place(before: str, key: str, value: str, after: str):
    assert with_value(before, key, value) == after


@pytest.mark.parametrize("key", ["", ".", "a.", "a b", "a[0]", "a:b", "{a}"])
def test_a_key_must_be_words(key: str):
    with pytest.raises(InvalidInput, match="key: must be words with dots between them"):
        with_value("", key, "1")


def test_a_block_is_not_replaced_by_a_word():
    with pytest.raises(InvalidInput, match="holds several keys or items"):
        with_value("agents:\n  main:\n    model: demo\n", "agents", "x")
    with pytest.raises(InvalidInput, match=r"drain_s holds no keys in the file"):
        with_value("drain_s: 1\n", "drain_s.x", "1")


def test_a_broken_file_is_named():
    with pytest.raises(BadSettings, match=r"^mine.yaml:2: not YAML"):
        with_value("drain_s: [1\n", "drain_s", "1", "mine.yaml")


@given(st.text(min_size=1, max_size=40))
def test_whatever_the_value_is_the_file_stays_one_that_can_be_read(value: str):
    before = "agents:\n  main:\n    model: demo # mine\nserver: {port: 1}\n"

    try:
        after = with_value(before, "agents.main.instructions", value)
        loaded = load_text(after, FILE, {})
    except (InvalidInput, BadSettings):
        return

    assert loaded.server.port == 1
    assert "model: demo # mine" in after
