"""A message that turns out to be dear when its turn would begin: who waits for it is told."""

from pathlib import Path

from tests.integration.cli.shell import Home
from tests.integration.cli.terminal import terminal

SETTINGS = """
models: {"openai-chat:dear": {input: 10.0, output: 10.0}}
agents: {main: {model: demo, compaction: {enabled: false}}}
"""


def test_who_waits_for_an_answer_hears_that_there_is_no_money_for_it(tmp_path: Path):
    home = Home(tmp_path / "home", OPENAI_API_KEY="sk-test")
    home.folder.mkdir(mode=0o700)
    (home.folder / "wakeful.yaml").write_text(SETTINGS)
    with home.up():
        home.ok("send", "-", "--session", "long", "--wait", "60", said="long " * 100_000)
        home.ok("config", "set", "agents.main.model", "openai-chat:dear")

        said = home.ok("chat", "-s", "long", said="hello\n")
        home.ok("send", "/stop", "--session", "long")
        with terminal(home, "chat", "-s", "long") as screen:
            screen.heard("> ")
            screen.types("and now?\r")
            screen.heard("(budget: it is kept", "`wakeful budget raise 1.00 --agent main`")
            assert screen.leaves() == 0

    assert said.startswith("(parked, budget: st_")
    assert "; `wakeful budget raise 1.00 --agent main` lets it go on)" in said
