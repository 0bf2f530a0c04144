"""The server in the foreground: how it starts, what it refuses, how it takes new settings."""

import os
import pty
import signal
import socket
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.children import Talker, die_with_parent
from tests.integration.cli.shell import COMMAND, Home, Server, each

STRONG = "3f9c1b7a5e2d4860a1b2c3d4e5f607183f9c1b7a5e2d4860"


def until_finished(following: "Talker | subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Return the frames that a follower prints up to the end of a turn."""
    assert following.stdout is not None
    frames = each([following.stdout.readline()])
    while frames[-1]["event"] != "turn.finished":
        frames += each([following.stdout.readline()])
    return frames


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_needs_nothing_and_keeps_everything_private(home: Home):
    with home.up(umask=0) as server:
        assert server.told["url"].startswith("http://127.0.0.1:")
        assert server.told["database"] == str(home.folder / "wakeful.db")
        assert server.told["models"] == {"main": "demo"}
        home.ok("chat", "write notes.md: buy milk")
        home.ok("backup", "create")

        assert mode(home.folder) == 0o700
        opened = [file for file in home.folder.rglob("*") if mode(file) & 0o077]
        assert opened == []
        assert {"wakeful.db", "operator.token", "server.json", "wakeful.log"} <= {
            file.name for file in home.folder.iterdir()
        }
        assert server.stop() == 0

    assert not (home.folder / "server.json").exists()


def test_the_link_of_a_start_signs_in_once_and_login_makes_another(home: Home):
    with home.up() as server:
        links = [server.told["link"], home.ok("login").strip(), home.json("login")["link"]]
        codes = [link.removeprefix(f"{server.told['url']}/#code=") for link in links]
        with httpx2.Client(base_url=server.told["url"], trust_env=False) as browser:
            answers = [
                browser.post("/api/login", json={"code": code}).status_code
                for code in (*codes, *codes)
            ]
            page = browser.get("/")

    assert answers == [204, 204, 204, 401, 401, 401]
    assert page.status_code == 200
    logged = (home.folder / "wakeful.log").read_text()
    assert not [code for code in codes if code in logged]


def test_a_start_is_told_to_people_too(home: Home):
    starting = home.start("up", "--port", "0")
    assert starting.stdout is not None
    lines = [starting.stdout.readline().split()[0] for _ in range(6)]
    starting.terminate()
    _, errors = starting.communicate()

    assert lines == ["wakeful", "link", "database", "model", "next", "talk"]
    assert (starting.returncode, errors) == (0, "")


def test_what_is_no_terminal_is_not_told_how_to_sign_in(home: Home):
    starting = home.start("up", "--port", "0")
    assert starting.stdout is not None
    _, link = (starting.stdout.readline() for _ in range(2))
    starting.terminate()
    rest, _ = starting.communicate()

    assert "http://127.0.0.1:" in link
    assert "`wakeful login`" in link
    assert "code=" not in link + rest


def test_a_terminal_is_told_a_link_that_signs_in(home: Home):
    terminal, inside = pty.openpty()
    starting = subprocess.Popen(
        [*COMMAND, "up", "--port", "0"],
        env=home.environ,
        stdout=inside,
        stderr=inside,
        preexec_fn=die_with_parent,
    )
    os.close(inside)
    told = ""
    try:
        while "Ctrl-C" not in told:
            told += os.read(terminal, 4096).decode()
    finally:
        starting.terminate()
        starting.wait()
        os.close(terminal)

    assert "/#code=wk_" in told


def test_a_key_for_a_better_model_is_told_with_the_line_that_uses_it(home: Home):
    rich = Home(home.folder, ANTHROPIC_API_KEY="sk-canary-canary")
    line = "wakeful config set agents.main.model anthropic:claude-sonnet-4-5"

    with rich.up() as server:
        (found,) = server.told["found"]
        assert server.stop() == 0
    rich.ok(*line.split()[1:])

    assert found.startswith("ANTHROPIC_API_KEY is set: ")
    assert f"`{line}` uses it" in found
    assert rich.run("config", "validate").returncode == 0
    kept = b"".join(file.read_bytes() for file in home.folder.rglob("*") if file.is_file())
    assert b"canary" not in kept


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_exposed_start_without_a_token_is_refused(home: Home, host: str):
    answer = home.run("up", "--host", host, "--port", "0")

    assert answer.returncode == 2
    assert f"server.host: {host} can be reached by others" in answer.stderr
    assert not home.folder.exists()


def test_a_weak_token_is_refused(home: Home):
    weak = Home(home.folder, WAKEFUL_TOKEN="password")

    answer = weak.run("up", "--port", "0")

    assert answer.returncode == 2
    assert "WAKEFUL_TOKEN: must be a random token of at least 128 bits" in answer.stderr
    assert "password" not in answer.stderr


def test_a_token_of_the_environment_counts_instead_of_a_generated_one(home: Home):
    chosen = Home(home.folder, WAKEFUL_TOKEN=STRONG)

    with chosen.up("--host", "0.0.0.0") as server:
        assert server.told["url"].startswith("http://127.0.0.1:")
        assert chosen.json("status")["is_running"]
        assert home.run("sessions", "list").returncode == 5
        assert server.stop() == 0

    assert not (home.folder / "operator.token").exists()
    kept = b"".join(file.read_bytes() for file in home.folder.rglob("*") if file.is_file())
    assert STRONG.encode() not in kept


def test_a_second_server_in_one_home_is_refused(home: Home):
    with home.up() as server:
        answer = home.run("up", "--port", "0")

        assert answer.returncode == 1
        assert f"is in use by process {server.process.pid}" in answer.stderr
        assert home.json("status")["is_running"]


def test_a_taken_port_is_told(home: Home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        answer = home.run("up", "--port", str(port))

    assert answer.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in answer.stderr
    assert "choose another (`server.port`, WAKEFUL_PORT)" in answer.stderr


def test_a_bad_file_stops_the_start_with_its_line(home: Home):
    home.ok("init")
    file = home.folder / "wakeful.yaml"
    file.write_text("agents:\n  main:\n    modle: demo\n")

    answer = home.run("up", "--port", "0")

    assert answer.returncode == 2
    assert answer.stderr.startswith(f"wakeful: {file}:3: agents.main.modle: unknown key")
    assert not (home.folder / "wakeful.db").exists()


def test_new_settings_are_taken_without_a_new_process(home: Home):
    with home.up() as server:
        home.ok("config", "set", "agents.scout.instructions", "Be brief.")
        home.log_line("changed: agents")

        assert [one["id"] for one in home.json("agents", "list")["items"]] == ["main", "scout"]
        assert home.json("status")["pid"] == server.process.pid
        assert home.json("send", "hi", "-s", "agent:scout:main", "--wait", "10")["turn"]
        assert server.stop() == 0


def test_an_agent_that_ticks_is_switched_off_and_on_while_it_runs(home: Home):
    def change(server: Server, word: str) -> None:
        (home.folder / "wakeful.yaml").write_text(
            f"agents: {{main: {{model: demo, proactive: {{enabled: {word}, tick_interval_secs: 1, "
            "allow_short_intervals: true, jitter_pct: 0}}}\n"
        )
        lines = len((home.folder / "wakeful.log").read_text().splitlines())
        server.signal(signal.SIGHUP)
        home.log_line("changed: agents", skip=lines)

    with home.up() as server:
        following = home.start("tail", "--json", "--topics", "turn.*")
        try:
            assert following.stderr is not None
            assert following.stderr.readline().startswith("following ")
            change(server, "true")
            ticked = until_finished(following)
            change(server, "false")
            change(server, "true")
            ticked_again = until_finished(following)
        finally:
            following.kill()
            following.communicate()
        assert server.stop() == 0
    with closing(sqlite3.connect(home.folder / "wakeful.db")) as database:
        timers = database.execute("SELECT COUNT(*) FROM timers WHERE kind = 'tick'").fetchone()

    assert {one["origin"] for one in ticked + ticked_again if "origin" in one} == {"tick"}
    assert timers == (1,)


def test_a_broken_file_leaves_the_running_settings_in_force(home: Home):
    with home.up() as server:
        (home.folder / "wakeful.yaml").write_text("agents:\n  scout: {modle: demo}\n")
        server.signal(signal.SIGHUP)

        told = home.log_line("the settings stay as they are")

        assert "wakeful.yaml:2: agents.scout.modle: unknown key" in told
        assert [one["id"] for one in home.json("agents", "list")["items"]] == ["main"]
        assert home.run("config", "set", "drain_s", "soon").returncode == 2


def test_settings_that_cannot_work_leave_the_running_ones_in_force(home: Home):
    with home.up() as server:
        (home.folder / "wakeful.yaml").write_text(
            "agents: {main: {model: demo}}\nbindings: [{match: {door: chat}, agent: nobody}]\n"
        )
        server.signal(signal.SIGHUP)

        home.log_line("the settings stay as they are")

        assert home.json("send", "hello", "--wait", "10")["turn"]["state"] == "done"
        assert server.stop() == 0


def test_what_only_a_start_can_change_is_said_and_the_rest_is_changed(home: Home):
    with home.up() as server:
        (home.folder / "wakeful.yaml").write_text(
            "database: postgresql://127.0.0.1:1/none\n"
            "server: {host: localhost}\n"
            "agents: {scout: {}}\n"
        )
        server.signal(signal.SIGHUP)

        home.log_line("only a new start changes database, server.host")

        agents = [one["id"] for one in home.json("agents", "list")["items"]]
        assert agents == ["main", "scout"]
        assert home.json("status")["url"] == server.told["url"]
        assert server.stop() == 0


def test_the_port_that_was_asked_for_still_counts_when_settings_are_read_again(home: Home):
    home.environ.pop("WAKEFUL_PORT")
    with home.up() as server:  # with --port
        server.signal(signal.SIGHUP)
        home.log_line("settings read again; changed: nothing")
        home.ok("config", "set", "drain_s", "7")  # has the settings read once more, and waits
        assert server.stop() == 0

    assert "only a new start" not in (home.folder / "wakeful.log").read_text()


def test_another_name_of_the_server_is_known_at_once(home: Home):
    with home.up() as server:
        (home.folder / "wakeful.yaml").write_text("server: {hosts: [other.example]}\n")
        with httpx2.Client(base_url=server.told["url"], trust_env=False) as client:
            named = {"Host": "other.example"}
            before = client.get("/healthz", headers=named).status_code
            server.signal(signal.SIGHUP)
            home.log_line("changed: server")
            after = client.get("/healthz", headers=named).status_code

        assert (before, after) == (421, 200)


def test_how_much_is_logged_is_changed_on_the_spot(home: Home):
    with home.up() as server:
        home.ok("config", "set", "telemetry.log_level", "debug")

        home.log_line("changed: telemetry")

        assert home.json("status")["url"] == server.told["url"]


def test_the_bus_is_followed_across_a_restart(home: Home):
    with home.up() as server:
        port = server.told["url"].rpartition(":")[2]
        following = home.start("tail", "--json", "--topics", "turn.*")
        try:
            assert following.stderr is not None
            assert following.stderr.readline().startswith("following ")
            home.ok("send", "hello", "--wait", "10")
            seen = until_finished(following)
            server.kill()
            with home.up("--port", port):
                home.ok("send", "hello again", "--wait", "10")
                seen += until_finished(following)
        finally:
            following.kill()
            following.communicate()

    stored = [frame for frame in seen if not frame.get("live")]
    numbers = [int(frame["id"].rpartition("-")[2]) for frame in stored]
    assert numbers == sorted(set(numbers))
    assert [frame["event"] for frame in stored].count("turn.finished") == 2


def test_the_log_is_followed_and_holds_no_secret(home: Home):
    with home.up():
        home.ok("send", "hello", "--wait", "10")
        assert "awake at" in home.ok("logs")
        token = (home.folder / "operator.token").read_text().strip()

        assert token not in (home.folder / "wakeful.log").read_text()
        assert token not in home.ok("doctor", "--json")
        assert token not in home.ok("config", "get")


def test_a_healthy_server_has_nothing_to_mend(home: Home):
    with home.up():
        findings = home.json("doctor")

    assert {one["health"] for one in findings} == {"ok"}
    assert {one["subject"] for one in findings} >= {"timers", "answers", "settings"}


def test_a_home_that_is_open_to_others_is_closed_on_request(home: Home):
    with home.up() as server:
        server.stop()
    os.chmod(home.folder, 0o775)
    with home.up():
        home.log_line("is open to others")

    assert home.run("doctor").returncode == 1
    assert home.run("doctor", "--fix").returncode == 0
    assert mode(home.folder) == 0o700
