"""How a line is read as a command, and that the page of the reference is the table."""

from pathlib import Path

import pytest

from wakeful.access.principal import Principal
from wakeful.commands.reference import reference
from wakeful.commands.table import TABLE, read
from wakeful.vocabulary.stimulus import OPERATOR, Draft, ReadyAttachment, Trust

PAGE = Path(__file__).parents[3] / "docs/reference/commands.md"
FILE = ReadyAttachment(name="a", media_type="text/plain", size=1, hash="ca978112", data="YQ==")


def said(text: str, *attachments: ReadyAttachment) -> Draft:
    key = "agent:main:main"
    return Draft(
        session_key=key, trust=Trust.OPERATOR, owner=OPERATOR, text=text, attachments=attachments
    )


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "help", ""),
        ("  /HELP  stop ", "help", "stop"),
        ("/steer Path/Case\nand more", "steer", "Path/Case\nand more"),
        ("stop", "stop", ""),
        ("STOP!", "stop", ""),
        ("/queue", "queue", ""),
        ("/queue collect debounce:2s", "queue", "collect debounce:2s"),
        ("/queue default", "queue", "default"),
        ("/queue sideways please", "queue", "sideways please"),
    ],
)
def test_a_line_is_read_as_its_command(text: str, name: str, rest: str):
    assert read(said(text), Principal.operator()) == (TABLE[name], rest)


@pytest.mark.parametrize("text", ["/unknown", "/help-me", "/stop_", "/Etc", " /nonsense and more"])
@pytest.mark.parametrize("who", [Principal.operator(), Principal.stranger()])
def test_an_unknown_word_is_a_command_too(text: str, who: Principal):
    found = read(said(text), who)

    assert found is not None
    assert found[0].name == ""
    assert found[1] == text.split()[0].removeprefix("/")


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "/ help", "//help", "a /help", "stop it", f"/{1_000 * 'a'}", "/1"),
        *("/etc/hosts", "/etc.", "/help:", "/été"),
        *("/queue collect please", "please /queue collect", "/queue cap:5 two\nlines"),
    ],
)
def test_anything_else_is_for_the_agent(text: str):
    assert read(said(text), Principal.operator()) is None


def test_a_message_with_a_file_is_longer_than_its_words():
    assert read(said("/queue collect", FILE), Principal.operator()) is None
    assert read(said("/new look at this", FILE), Principal.operator()) is not None


def test_a_bare_stop_counts_from_the_operator_alone():
    assert read(said("stop"), Principal.stranger()) is None


def test_the_page_of_the_reference_is_current():
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"
