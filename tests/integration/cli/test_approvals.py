"""Approvals on the command line: listed with and without a server, decided with one, by file."""

from pathlib import Path

import pytest

from tests.integration.cli.shell import Home

SETTINGS = """
agents:
  main:
    tools: [shell, ask_human]
    approvals: {shell: ask, ask_human: {rule: allow, expires: 2h}, no_such_tool: deny}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("approvals") / "home"


def test_a_command_waits_over_a_kill_until_it_is_approved_on_the_command_line(folder: Path):
    home = Home(folder)
    folder.mkdir(mode=0o700)
    (folder / "wakeful.yaml").write_text(SETTINGS)
    (folder / "wakeful.yaml").chmod(0o600)
    with home.up() as server:
        for _ in range(2):
            home.ok("send", "run `echo one >> out`", "--wait", "10")
        home.ok("send", "run `echo two >> out`", "--wait", "10", "--session", "other")
        server.process.kill()
        server.process.wait()

    offline = home.json("approvals", "list")["items"]
    refused = home.run("approvals", "approve", "1")
    with home.up():
        listed, status = home.ok("approvals", "list"), home.ok("status")
        shown, doctor = home.ok("approvals", "show", "1"), home.run("doctor").stdout
        approved = home.ok("approvals", "approve", "1", "--note", "once")
        denied = home.json("approvals", "deny", "2")
        again = home.run("approvals", "approve", "1")
        missing = home.run("approvals", "show", "77")
        home.ok("send", "hello", "--wait", "10")  # after the turns of both answers
        home.ok("send", "hello", "--wait", "10", "--session", "other")
        why = home.ok("why", home.json("approvals", "show", "1")["turn_id"])

    assert [one["number"] for one in offline] == [2, 1]
    assert refused.returncode == 3
    assert "#1 agent:main:main, asked " in listed
    assert max(map(len, listed.splitlines())) <= 80
    assert "it runs now, in agent:main:main" in approved
    assert "main waits for 2 approvals" in status
    assert "echo one >> out" in shown
    assert "no_such_tool" in doctor
    assert "approval #1, granted" in approved
    assert denied["state"] == "denied"
    assert again.returncode == 2
    assert "decided before" in again.stderr
    assert missing.returncode == 4
    assert "approval #1, granted" in why
    assert (folder / "workspaces" / "main" / "out").read_text() == "one\n"


def test_who_approves_while_everything_is_halted_is_told_what_lifts_that(tmp_path: Path):
    home = Home(tmp_path)
    (tmp_path / "wakeful.yaml").write_text(SETTINGS)
    (tmp_path / "wakeful.yaml").chmod(0o600)
    with home.up():
        home.ok("send", "run `echo one >> out`", "--wait", "10")
        home.ok("halt")
        approved = home.ok("approvals", "approve", "1")

    assert "approval #1, granted" in approved
    assert "runs now" not in approved
    assert "`wakeful resume` lifts that" in approved
    assert not (tmp_path / "workspaces" / "main" / "out").exists()
