"""A conversation at a terminal follows its session, and listens while the agent talks."""

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.cli.shell import PATIENCE_S, Home
from tests.integration.cli.terminal import terminal

TOOLS = '''
import os

import wakeful


@wakeful.tool(effect="read")
def hold() -> str:
    """Wait until somebody opens the gate."""
    with open(os.environ["GATE"]) as gate:
        return gate.read()


@wakeful.tool(effect="read")
def page() -> str:
    """Return a page."""
    return "# A title\\n\\n- **bold** words\\n\\nfamily: \\N{WOMAN}\\u200d\\N{GIRL}"
'''


def home_with_tools(folder: Path) -> Home:
    gate = folder / "gate"
    os.mkfifo(gate)
    home = Home(folder / "home", GATE=str(gate))
    home.folder.mkdir(mode=0o700)
    (home.folder / "shop.py").write_text(TOOLS)
    (home.folder / "wakeful.yaml").write_text(
        "tools_from: [shop.py]\nagents: {main: {}, scout: {instructions: Be brief.}}\n"
    )
    return home


@pytest.fixture(scope="module")
def awake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = home_with_tools(tmp_path_factory.mktemp("chat"))
    with home.up():
        yield home


def opened(home: Home) -> Callable[[str], None]:
    """Return what lets a tool that holds return; the tool must have begun when this returns."""
    found: list[int] = []
    opening = threading.Thread(
        target=lambda: found.append(os.open(home.environ["GATE"], os.O_WRONLY)), daemon=True
    )
    opening.start()
    opening.join(PATIENCE_S)
    assert found, "the tool did not begin"

    def let_go(text: str) -> None:
        with suppress(BrokenPipeError):  # nobody waits any more
            os.write(found[0], text.encode())
        os.close(found[0])

    return let_go


def test_a_terminal_has_a_prompt_and_a_history(awake: Home):
    with terminal(awake, "chat", "-s", "terminal") as screen:
        screen.heard("> ")
        screen.types("hello there\r")
        screen.heard("I am the demo model")
        screen.types("/quit\r")
        assert screen.ends() == 0

    history = awake.folder / "history"
    assert "hello there" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def unread(home: Home, session: str) -> int:
    rows = home.json("sessions", "list")["items"]
    return next(row["unread"] for row in rows if row["key"].endswith(f":{session}"))


def test_what_a_conversation_has_shown_was_read(awake: Home):
    awake.ok("chat", "-s", "read", "hello")
    at_once = unread(awake, "read")
    awake.ok("send", "--session", "read", "hello", "--wait", "15")
    awake.ok("chat", "-s", "read", "hello")  # shows its own answer, not the one before
    left = unread(awake, "read")
    with terminal(awake, "chat", "-s", "read") as screen:
        screen.heard("2 answers not read yet here")
        screen.types("what is 3*4\r")
        screen.heard("3*4 = 12")
        assert screen.leaves() == 0

    assert (at_once, left, unread(awake, "read")) == (0, 2, 0)


def test_a_line_while_it_works_is_a_steer_and_nothing_is_typed_in_vain(awake: Home):
    with terminal(awake, "chat", "-s", "steer") as screen:
        screen.heard("> ")
        screen.types("use hold\r")
        let_go = opened(awake)
        screen.types("what is 3*4\r")
        screen.heard("(it hears this at its next step)")
        let_go("done")
        screen.heard("(used hold)")
        screen.heard("3*4 = 12")
        assert screen.leaves() == 0

    turns = awake.json("why", "last")["chain"]
    assert len(turns[0]["stimuli"]) == 2


@pytest.mark.parametrize("how", ["/stop\r", "\x03"])
def test_a_stop_is_heard_while_it_works(awake: Home, how: str):
    session = f"stop{ord(how[0])}"
    with terminal(awake, "chat", "-s", session) as screen:
        screen.heard("> ")
        screen.types("use hold\r")
        let_go = opened(awake)
        screen.types(how)
        screen.heard("Stopped" if how.startswith("/") else "(stopped)")
        let_go("")
        screen.types("what is 3*4\r")
        screen.heard("3*4 = 12")
        awake.ok("send", "hello", "--session", session, "--wait", "10")
        screen.heard("operator: hello", "I am the demo model", ">")
        screen.types("\x03\x03\x04")
        assert screen.ends() == 0


def test_a_paste_is_one_message(awake: Home):
    with terminal(awake, "chat", "-s", "paste") as screen:
        screen.heard("> ")
        screen.pastes("first line\nsecond line\nthird line")
        screen.types("\r")
        screen.heard("demo model")
        screen.types("one \\\rtwo\r")
        screen.heard("demo model")
        assert screen.leaves() == 0

    entries = awake.json("sessions", "show", "paste")["entries"]
    said = [one["body"]["text"] for one in entries if one["body"]["type"] == "user"]
    assert said == ["first line\nsecond line\nthird line", "one \ntwo"]


def test_what_is_said_in_another_window_appears(awake: Home):
    with terminal(awake, "chat", "-s", "shared") as screen:
        screen.heard("> ")
        awake.ok("send", "what is 5*5", "--session", "elsewhere", "--wait", "10")
        awake.ok("send", "what is 6*7", "--session", "shared", "--wait", "10")
        screen.heard("operator: what is 6*7")
        screen.heard("6*7 = 42")
        assert screen.leaves() == 0

    assert "5*5" not in screen.shown


def test_what_waits_for_the_end_of_a_halt_is_shown_when_it_comes(awake: Home):
    with terminal(awake, "chat", "-s", "halted") as screen:
        screen.heard("> ")
        screen.types("/halt\r")
        screen.heard("Halted everything.")
        screen.types("what is 3*4\r")
        screen.heard(
            "(halted: it is kept, and answered when that is over; `wakeful resume` lifts that)"
        )
        screen.types("/resume\r")
        screen.heard("Resumed everything.", "3*4 = 12")
        assert screen.leaves() == 0


def test_markdown_is_shown_as_it_is_meant_and_joiners_stay(awake: Home):
    with terminal(awake, "chat", "-s", "pretty") as screen:
        screen.heard("> ")
        screen.types("use page\r")
        screen.heard("(used page)")
        screen.heard("A title")
        screen.heard("• bold words")
        screen.heard("family: \N{WOMAN}\u200d\N{GIRL}")
        assert screen.leaves() == 0

    plain = awake.ok("sessions", "show", "pretty")
    assert "family: \N{WOMAN}\u200d\N{GIRL}" in plain


def test_an_agent_is_talked_to_by_its_name(awake: Home):
    awake.ok("chat", "hello", "--agent", "scout", "-s", "Work Room")
    mistaken = awake.run("chat", "hello", "-s", "scout")
    keys = [one["key"] for one in awake.json("sessions", "list")["items"]]

    assert "agent:scout:~57ork~20~52oom" in keys
    assert "`--agent scout` talks to the agent" in mistaken.stderr
    assert "agent:main:scout" in keys


def test_a_name_that_can_be_none_is_told_at_once(awake: Home):
    with terminal(awake, "chat", "-s", "~zz") as screen:
        screen.heard("wakeful: session: must be")
        assert screen.ends() == 2


def test_a_crash_in_the_middle_is_survived_and_the_answer_appears(tmp_path: Path):
    home = home_with_tools(tmp_path)
    with home.up() as server, terminal(home, "chat") as screen:
        screen.heard("> ")
        screen.types("use hold\r")
        opened(home)("")
        screen.heard("The tool hold says")
        screen.types("use hold\r")
        let_go = opened(home)
        server.kill()
        let_go("")
        screen.heard("(the connection is lost; what was sent is safe)")
        with home.up():
            let_go = opened(home)
            screen.heard("(the server is back)")
            let_go("after all")
            screen.heard("after all")
            assert screen.leaves() == 0


def test_one_message_is_answered_across_a_crash(tmp_path: Path):
    home = home_with_tools(tmp_path)
    with home.up() as server:
        talking = home.start("chat", "use hold")
        let_go = opened(home)
        server.kill()
        let_go("")
        with home.up():
            opened(home)("after all")
            said, _ = talking.communicate()
            told = home.ok("why", "last")

    assert talking.returncode == 0
    assert ", begun 2 times" in told
    assert "(the connection was lost; the message is safe)" in said
    assert said.endswith("The tool hold says:\nafter all\n")
