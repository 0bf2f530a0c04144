"""The real server, started by the command line, killed and started again."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_message_that_was_acknowledged_is_answered_after_a_kill(home: Home):
    with home.up() as server:
        home.ok("halt")
        receipt = home.json("send", "hello", "--dedup-key", "k")
        server.kill()
    with home.up():
        again = home.json("send", "hello", "--dedup-key", "k")
        home.ok("resume")
        home.ok("send", "second", "--wait", "10")

        assert again["duplicate_of"] == receipt["stimulus_id"]
        turn = home.json("why", receipt["stimulus_id"])["chain"][0]["turn"]
        assert turn["state"] == "done"
        entries = home.json("sessions", "show", "main")["entries"]
        said = [entry["body"].get("text") for entry in entries]
        assert (said.count("hello"), said.count("second")) == (1, 1)


def test_a_server_is_killed_again_and_again_and_nothing_is_lost(home: Home):
    sent: list[str] = []
    for life in range(3):
        with home.up() as server:
            sent.append(home.json("send", f"number {life}")["stimulus_id"])
            server.kill()
    with home.up():
        home.ok("send", "last", "--wait", "10")

        chains = [home.json("why", stimulus_id)["chain"] for stimulus_id in sent]

    assert [chain[0]["turn"]["state"] for chain in chains] == ["done"] * 3
    assert home.ok("db", "check").endswith("is whole\n")


def test_a_stop_is_clean_and_a_second_one_is_immediate(home: Home):
    with home.up() as server:
        home.ok("send", "hello", "--wait", "10")
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGTERM)
        assert server.ended() == 0

    assert home.ok("db", "check").endswith("is whole\n")
    with home.up() as server:
        assert home.json("sessions", "show", "main")["session"]["entries"] >= 2
        server.signal(signal.SIGINT)
        assert server.ended() == 0


def test_a_stop_while_new_settings_are_taken_is_not_lost(home: Home):
    with home.up() as server:
        (home.folder / "wakeful.yaml").write_text("drain_s: 1\n")
        server.signal(signal.SIGHUP)
        home.log_line("settings read again")
        server.signal(signal.SIGTERM)

        assert server.ended() == 0


def test_a_backup_brings_back_what_was_said(home: Home, tmp_path: Path):
    with home.up() as server:
        home.ok("send", "remember this", "--wait", "10")
        made = home.json("backup", "create", str(tmp_path / "copy.db"))
        home.ok("send", "and that", "--wait", "10")
        refused = home.run("backup", "restore", made["file"], "--force")
        assert refused.returncode == 1
        assert "is in use by process" in refused.stderr
        server.stop()

    assert home.run("backup", "restore", made["file"]).returncode == 1
    home.ok("backup", "verify", made["file"])
    home.ok("backup", "restore", made["file"], "--force")

    with home.up():
        entries = home.json("sessions", "show", "main")["entries"]
        said = [entry["body"].get("text") for entry in entries]
        assert "remember this" in said
        assert "and that" not in said


def test_a_damaged_database_is_never_replaced(home: Home):
    with home.up() as server:
        home.ok("send", "hello", "--wait", "10")
        server.stop()
    database = home.folder / "wakeful.db"
    broken = bytearray(database.read_bytes())
    broken[4096 * 2 : 4096 * 4] = b"\xff" * 8192
    database.write_bytes(broken)

    answer = home.run("up", "--port", "0")

    assert answer.returncode == 1
    assert "damaged" in answer.stderr
    assert "restore a backup" in answer.stderr
    assert database.read_bytes() == broken
    assert home.run("db", "check").returncode == 1
    assert home.run("doctor").returncode == 1


def test_many_shells_and_a_restart_agree(home: Home):
    with home.up() as server:
        with ThreadPoolExecutor(4) as shells:
            sending = [shells.submit(home.json, "send", str(n)) for n in range(4)]
        receipts: list[str] = [one.result()["stimulus_id"] for one in sending]
        server.kill()
    with home.up():
        home.ok("send", "last", "--wait", "10")
        states = {home.json("why", one)["chain"][0]["turn"]["state"] for one in receipts}

    assert len(set(receipts)) == 4
    assert states == {"done"}
