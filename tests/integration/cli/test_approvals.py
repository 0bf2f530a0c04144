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
        home.ok("send", "run `echo three >> out`", "--wait", "10", "--session", "third")
        server.process.kill()
        server.process.wait()

    offline = home.json("approvals", "list")["items"]
    refused = home.run("approvals", "approve", "1")
    with home.up():
        listed, status = home.ok("approvals", "list"), home.ok("status")
        shown, doctor = home.ok("approvals", "show", "1"), home.run("doctor").stdout
        approved = home.ok("approvals", "approve", "1", "--note", "once")
        home.ok("halt")
        denied = home.json("approvals", "deny", "2")
        put_off = home.ok("approvals", "approve", "3")
        home.ok("resume")
        again = home.run("approvals", "approve", "1")
        missing = home.run("approvals", "show", "77")
        home.ok("send", "hello", "--wait", "10")  # after the turns of both answers
        for session in ("other", "third"):
            home.ok("send", "hello", "--wait", "10", "--session", session)
        why = home.ok("why", home.json("approvals", "show", "1")["turn_id"])

    assert [one["number"] for one in offline] == [3, 2, 1]
    assert refused.returncode == 3
    assert "#1 agent:main:main, asked " in listed
    assert max(map(len, listed.splitlines())) <= 80
    assert "it runs now, in agent:main:main" in approved
    assert "runs now" not in put_off
    assert "it is kept, and answered when that is over; `wakeful resume` lifts that" in put_off
    assert "main waits for 3 approvals" in status
    assert "echo one >> out" in shown
    assert "no_such_tool" in doctor
    assert "approval #1, granted" in approved
    assert denied["state"] == "denied"
    assert again.returncode == 2
    assert "decided before" in again.stderr
    assert missing.returncode == 4
    assert "approval #1, granted" in why
    assert (folder / "workspaces" / "main" / "out").read_text() == "one\nthree\n"
