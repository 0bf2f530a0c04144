"""Keys, tools and settings reach the server, and what it made of them is told."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home

PRICE = '''
import wakeful


@wakeful.tool(effect="read")
def price(article: str) -> int:
    """Return what an article costs."""
    return {"tea": 3}[article]
'''


def private(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)


def findings(home: Home) -> dict[str, tuple[str, str]]:
    told = home.run("doctor", "--json").stdout
    return {one["subject"]: (one["health"], one["told"]) for one in json.loads(told)}


def test_keys_in_the_home_folder_are_enough_for_every_terminal(home: Home):
    private(home.folder / "environment", "OPENAI_API_KEY=sk-test-of-the-file\n")
    private(home.folder / "wakeful.yaml", "agents: {scout: {model: 'openai:gpt-5-mini'}}\n")
    with home.up():
        (home.folder / "environment").rename(home.folder / "elsewhere")

        assert home.ok("config", "get", "agents.scout.model") == "openai:gpt-5-mini\n"
        assert findings(home)["settings"][0] == "ok"
        assert "sk-test-of-the-file" not in (home.folder / "wakeful.log").read_text()


def test_without_its_key_a_start_is_refused_and_looking_is_not(home: Home):
    private(home.folder / "wakeful.yaml", "agents: {main: {model: 'openai:gpt-5-mini'}}\n")

    started = home.run("up", "--port", "0")
    found = findings(home)

    assert started.returncode == 2
    assert "'openai' needs OPENAI_API_KEY" in started.stderr
    assert home.ok("config", "get", "agents.main.model") == "openai:gpt-5-mini\n"
    assert found["settings"][0] == "warning"
    assert {"disk", "database"} <= found.keys()


def test_an_environment_that_others_can_read_is_refused_and_mended(home: Home):
    private(home.folder / "environment", "OPENAI_API_KEY=sk-test\n")
    (home.folder / "environment").chmod(0o644)

    started = home.run("up", "--port", "0")

    assert started.returncode == 2
    assert "environment: others can read it (0644); close it with `chmod 600" in started.stderr
    assert findings(home)["files"][0] == "broken"
    home.ok("doctor", "--fix")
    with home.up() as server:
        assert server.stop() == 0


def test_a_tool_of_ones_own_is_used_by_its_name_and_changed_while_the_server_runs(home: Home):
    private(home.folder / "shop.py", PRICE)
    private(home.folder / "wakeful.yaml", "tools_from: [shop.py]\n")
    with home.up() as server:
        before = home.ok("chat", "use price article=tea")
        private(home.folder / "shop.py", PRICE.replace("3", "4"))
        server.signal(signal.SIGHUP)
        home.log_line("changed: tools_from")
        after = home.ok("chat", "use price article=tea", "-s", "later")
        private(home.folder / "shop.py", "import nothing_like_it\n")
        refused = home.run("config", "set", "timezone", "UTC")

    assert before.endswith("The tool price says:\n3\n")
    assert after.endswith("The tool price says:\n4\n")
    assert refused.returncode == 2
    assert "shop.py:1: ModuleNotFoundError: No module named 'nothing_like_it'" in refused.stderr


def test_a_change_is_told_as_the_server_took_it(home: Home):
    with home.up():
        taken = home.ok("config", "set", "timezone", "Asia/Tokyo")
        kept = home.ok("config", "set", "server.host", "localhost")
        again = home.ok("config", "set", "timezone", "Asia/Tokyo")
        private(home.folder / "wakeful.yaml", "agnts: {}\n")
        found = findings(home)

    # The agents of a server that runs are told of, also while its file is broken.
    assert (found["settings"][0], found["wakes"][0]) == ("broken", "ok")
    assert "the server works by it" in taken
    assert "only a new start of the server changes server.host" in kept
    assert "for the server nothing changed" in again


def test_what_the_server_refuses_is_a_failure_and_leaves_the_file_as_it_was(home: Home):
    """The server's own environment lacks a key that this shell has."""
    private(home.folder / "wakeful.yaml", "timezone: UTC\n")
    before = (home.folder / "wakeful.yaml").read_text()
    with home.up() as server:
        refused = home.run("config", "set", "agents.main.model", "openai:gpt-5-mini")
        again = home.ok("config", "get", "agents.main.model")
        afterwards, _ = findings(home)["settings"]
        private(home.folder / "wakeful.yaml", "agents: {main: {model: 'openai:gpt-5-mini'}}\n")
        server.signal(signal.SIGHUP)
        home.log_line("'openai' needs OPENAI_API_KEY", after="'openai' needs OPENAI_API_KEY")
        health, told = findings(home)["settings"]

    assert refused.returncode == 2
    assert "the server refuses it, and the file is as it was" in refused.stderr
    assert "'openai' needs OPENAI_API_KEY" in refused.stderr
    assert (again, afterwards) == ("demo\n", "ok")
    assert before == "timezone: UTC\n"
    assert (health, "refused the file" in told) == ("broken", True)


def test_a_value_without_a_file_is_its_default_and_the_environment_counts(home: Home):
    assert home.ok("config", "get", "agents.main.model") == "demo\n"
    assert home.ok("config", "get", "server.port") == f"{home.environ['WAKEFUL_PORT']}\n"


@pytest.mark.parametrize("verb", [["backup", "create"], ["config", "set", "timezone", "UTC"]])
def test_nothing_that_comes_before_the_first_start_opens_the_home(home: Home, verb: list[str]):
    answer = home.run(*verb)

    assert answer.returncode in (0, 1)
    assert "Errno" not in answer.stderr
    assert not home.folder.exists() or (os.stat(home.folder).st_mode & 0o077) == 0
    with home.up() as server:
        assert server.stop() == 0
    assert findings(home)["home"][0] == "ok"


def test_settings_that_are_made_beside_a_server_say_how_it_takes_them(home: Home):
    before = home.ok("init")
    (home.folder / "wakeful.yaml").unlink()
    with home.up():
        beside = home.ok("init")

    assert before.endswith("next: `wakeful up`\n")
    assert "next: `wakeful config set KEY VALUE`" in beside
