"""Looking: the same with and without a server, and never a change."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.cli.shell import Home, snapshot
from wakeful.models.scripted import Scripted
from wakeful.operations import server_note
from wakeful.operations.server_note import RunningServer
from wakeful.runtime import Runtime
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import Garbled, Permanent

LOOKING = [
    ["sessions", "list"],
    ["sessions", "show", "main"],
    ["agents", "list"],
    ["agents", "show", "main"],
    ["why", "last"],
    ["tokens", "list"],
    ["notices"],
    ["inbox", "list"],
    ["activity"],
    ["activity", "--origin", "user", "--agent", "main"],
    ["budget", "show"],
    ["budget", "show", "--agent", "main"],
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, list[object]]:
    """A home whose server has gone, and what looking said while it was there."""
    home = Home(tmp_path_factory.mktemp("seen") / "home")
    with home.up() as server:
        home.ok("send", "what time is it?", "--wait", "10")
        while_up = [home.json(*verb) for verb in LOOKING]
        assert home.json("status")["is_running"] is True
        assert server.stop() == 0
    return home, while_up


@pytest.mark.parametrize("number", range(len(LOOKING)), ids=map(" ".join, LOOKING))
def test_a_verb_that_looks_says_the_same_without_a_server(
    seen: tuple[Home, list[object]], number: int
):
    home, while_up = seen
    before = snapshot(home.folder)

    found = home.json(*LOOKING[number])

    assert found == while_up[number]
    assert snapshot(home.folder) == before


def test_who_only_looks_needs_no_key_of_a_provider(seen: tuple[Home, list[object]], tmp_path: Path):
    home, _ = seen
    file = home.folder / "wakeful.yaml"
    before = file.read_bytes() if file.exists() else None
    file.write_text("agents: {main: {model: 'openai:gpt-5-mini'}}\n")
    file.chmod(0o600)
    try:
        for verb in (
            ["status"],
            ["sessions", "list"],
            ["sessions", "search", "time"],
            ["sessions", "export", "main"],
            ["agents", "list"],
            ["tokens", "list"],
            ["why"],
            ["config", "get", "agents.main.model"],
            ["backup", "create", str(tmp_path / "copy.db")],
            ["db", "check"],
        ):
            answer = home.run(*verb)
            assert answer.returncode == 0, (verb, answer.stderr)
    finally:
        file.unlink() if before is None else file.write_bytes(before)


SERVING = ("uvicorn", "httptools", "httpx2", "rich", "prompt_toolkit", "pydantic")
PROBE = f"""
import sys
from wakeful.cli.app import main
try:
    main()
except SystemExit:
    pass
sys.stderr.write(str([name for name in {SERVING} if name in sys.modules]))
"""


@pytest.mark.parametrize("verb", [["status"], ["sessions", "list"], ["why"]], ids=" ".join)
def test_who_looks_without_a_server_loads_nothing_that_serves(
    seen: tuple[Home, list[object]], verb: list[str]
):
    """A look takes a third of a second of a slow machine, and half as long again with them."""
    home, _ = seen

    answer = subprocess.run(
        [sys.executable, "-c", PROBE, *verb],
        capture_output=True,
        text=True,
        check=True,
        env=home.environ,
    )

    assert answer.stdout
    assert answer.stderr.splitlines()[-1] == "[]"


async def test_why_tells_which_questions_failed_and_how(tmp_path: Path):
    agent = Agent(model=Scripted([Garbled("half a word"), Permanent("the key is wrong")]))
    async with Runtime(agents=[agent], home=tmp_path / "home") as runtime:
        await runtime.wait(await runtime.send("hello"))

    told = Home(tmp_path / "home").ok("why", "last").splitlines()

    first, second = [line.strip() for line in told if line.startswith("  question")]
    assert first.startswith("question of step 1 garbled, ")
    assert first.endswith(": half a word")
    assert second.startswith("question of step 1 failed, ")
    assert second.endswith(": the key is wrong")


def test_the_status_tells_that_no_server_runs(seen: tuple[Home, list[object]]):
    home, _ = seen

    assert home.json("status")["is_running"] is False
    assert home.ok("status").startswith(f"no server runs in {home.folder}\n")


def test_looking_works_after_a_kill_and_changes_nothing(home: Home):
    with home.up() as server:
        home.ok("send", "hello", "--wait", "10")
        server.kill()
    before = snapshot(home.folder)

    assert home.json("sessions", "show", "main")["entries"][0]["body"]["text"] == "hello"
    assert home.json("status")["is_running"] is False
    assert snapshot(home.folder) == before


@pytest.mark.parametrize("verb", [["status"], ["sessions", "list"], ["why"], ["agents", "list"]])
def test_looking_at_nothing_creates_nothing(home: Home, verb: list[str]):
    answer = home.run(*verb)

    assert answer.returncode == 1
    assert "there is no database" in answer.stderr
    assert not home.folder.exists()


@pytest.mark.parametrize(
    "verb", [["send", "hi"], ["chat", "hi"], ["halt"], ["resume"], ["tail"]], ids=lambda v: v[0]
)
def test_what_needs_a_server_says_so(home: Home, verb: list[str]):
    answer = home.run(*verb)

    assert answer.returncode == 3
    assert (
        answer.stderr == f"wakeful: no server runs in {home.folder}; start one with `wakeful up`\n"
    )


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (["sessions", "show", "nowhere"], 4),
        (["agents", "show", "nobody"], 4),
        (["budget", "show", "--agent", "nobody"], 4),
        (["budget", "raise", "1.00", "--agent", "nobody"], 4),
        (["quiet", "--agent", "nobody"], 4),
        (["quiet", "off", "--agent", "nobody"], 4),
        (["heartbeat", "now", "nobody"], 4),
        (["halt", "nobody"], 4),
        (["resume", "nobody"], 4),
        (["send", "hi", "--session", "agent:nobody:main"], 4),
        (["sleep", "agent:nobody:main", "2h"], 4),
        (["why", "tn_0"], 4),
        (["why", "st_0"], 4),
        (["tokens", "revoke", "nobody"], 4),
        (["sessions", "show", "../etc"], 4),
        (["nonsense"], 2),
        (["sessions", "list", "--limit", "0"], 2),
    ],
)
def test_an_exit_code_says_what_was_wrong(awake: Home, verb: list[str], code: int):
    answer = awake.run(*verb)

    assert answer.returncode == code, answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_wrong_token_is_told(awake: Home):
    stranger = Home(awake.folder, WAKEFUL_TOKEN="x" * 40)

    answer = stranger.run("sessions", "list")

    assert answer.returncode == 5
    assert "does not know this token" in answer.stderr


def test_the_token_is_not_sent_to_a_stranger_at_the_port(seen: tuple[Home, list[object]]):
    home, _ = seen
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        stranger.setblocking(False)
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        server_note.note(home.folder, RunningServer(pid=os.getpid(), url=url, started_at=1))
        try:
            assert home.json("status")["is_running"] is False
            assert home.run("send", "hi").returncode == 3
            with pytest.raises(BlockingIOError):
                stranger.accept()
        finally:
            server_note.forget(home.folder)


def test_a_broken_file_does_not_keep_anybody_from_the_switch(awake: Home, tmp_path: Path):
    broken = tmp_path / "broken.yaml"
    broken.write_text("agents: [")

    for verb in (["halt"], ["resume"], ["status"], ["sessions", "list"]):
        awake.ok(*verb, "--config", str(broken))


def test_times_are_shown_in_the_zone_of_the_settings(awake: Home, tmp_path: Path):
    awake.ok("send", "hello", "--session", "zone", "--wait", "10")
    settings = tmp_path / "other.yaml"
    settings.write_text("timezone: Asia/Tokyo\n")

    assert " JST" in awake.ok("sessions", "show", "zone", "--config", str(settings))


def test_a_debugger_sees_the_traceback(home: Home):
    assert "Traceback" in home.run("status", "--debug").stderr
    assert "Traceback" not in home.run("status").stderr


def test_tokens_come_and_go(awake: Home):
    made = awake.json("tokens", "add", "bob", "--scope", "read")
    bob = Home(awake.folder, WAKEFUL_TOKEN=made["token"])

    assert bob.json("sessions", "list")["next"] is None
    refused = bob.run("halt")
    assert refused.returncode == 5
    awake.ok("tokens", "revoke", "bob")
    assert bob.run("sessions", "list").returncode == 5
    listed = awake.ok("tokens", "list", "--json")
    assert made["token"] not in listed
    assert any(one["revoked_at"] for one in json.loads(listed)["items"])


def test_tokens_are_made_while_no_server_runs(home: Home):
    made = home.json("tokens", "add", "ops", "--scope", "operator")
    with home.up():
        ops = Home(home.folder, WAKEFUL_TOKEN=made["token"])
        assert ops.json("tokens", "list")["items"]
        assert ops.run("tokens", "add", "ops", "--scope", "read").returncode == 2


def test_a_reader_that_leaves_early_is_no_error(awake: Home):
    listing = awake.start("config", "schema")
    assert listing.stdout is not None
    listing.stdout.close()

    assert listing.stderr is not None
    assert "Traceback" not in listing.stderr.read()
    listing.wait()
    listing.stderr.close()


def test_status_and_doctor_tell_who_sleeps_until_when_and_why(tmp_path: Path):
    home = limited(tmp_path / "home")
    with home.up() as server:
        home.ok("send", "what time is it?", "--session", "My Plans", "--wait", "10")
        slept = home.ok("sleep", "My Plans", "2", "hours", "the", "build", "runs")
        shown, examined = home.ok("status"), home.ok("doctor")
        woken = home.ok("wake", "My Plans")
        off = home.ok("heartbeat", "off")
        none = home.json("agents", "show", "main")["heartbeat"]["next_due_at"]
        on = home.ok("heartbeat", "on")
        beats, more = home.ok("heartbeat"), home.ok("budget", "raise", "--turns", "5")
        week = home.ok("budget", "raise", "1.00", "--until", "7d")
        again = home.ok("budget", "raise", "1.00")
        own = home.ok("budget", "raise", "--turns", "5", "--origin", "heartbeat")
        calm = home.ok("quiet", "until", "07:00")
        quiet, mentioned = home.json("quiet"), home.ok("status")
        loud, wrong = home.json("quiet", "off", "--agent", "main"), home.run("quiet", "sometimes")
        assert server.stop() == 0
    hold_back(home)
    later, closed = home.ok("status"), home.json("quiet")

    assert slept.startswith("My Plans sleeps for 2h, until ")
    assert "sleeps until" in shown
    assert woken.startswith("My Plans was woken after ")
    assert shown.count("the build runs") == 1
    assert "the build runs" in examined
    assert "wakes     main wakes next in" in examined
    assert "`wakeful budget raise 1.00 --agent main` raises it" in examined
    assert "`wakeful budget raise 1.00 --agent main` raises it" in home.ok("doctor")
    assert (off.strip(), none) == ("the heartbeat of main is off", None)
    assert all("is on, every 30m" in told for told in (on, beats))
    assert more.strip() == "main may spend $1.0000 and take 305 turns today"
    assert week.partition(", until ")[2] == again.partition(", until ")[2] != ""
    assert own.strip() == "heartbeat at main may spend any amount and take 6 turns today"
    assert "main is quiet until " in calm
    assert "(operator); `wakeful quiet off` ends it" in calm
    assert (quiet["is_quiet"], quiet["by"]) == (True, "operator")
    assert calm.strip() in mentioned
    assert loud == closed == {"is_quiet": False, "until": None, "by": None}
    assert wrong.returncode == 2
    assert "must be nothing, until TIME, for SPAN or off" in wrong.stderr
    assert "1 message of main held back; a digest leaves" in later


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("heartbeat", "maybe"), "action: must be nothing, on, off or now, not 'maybe'"),
        (("budget", "raise"), "amount: must be above 0, such as 1.00, or --turns must be"),
        (
            ("budget", "raise", "1", "--source", "x", "--origin", "tick"),
            "source: and --origin name two limits; raise one after the other",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_a_server_is_looked_for(
    tmp_path: Path, words: tuple[str, ...], told: str
):
    refused = Home(tmp_path / "home").run(*words)

    assert refused.returncode == 2
    assert told in refused.stderr


def limited(folder: Path) -> Home:
    """Make a home whose agent may look after things once a day."""
    folder.mkdir(mode=0o700)
    limits = "agents: {main: {budget: {origins: {heartbeat: {turns_per_day: 1}}}}}\n"
    folder.joinpath("wakeful.yaml").write_text(limits)
    folder.joinpath("wakeful.yaml").chmod(0o600)
    return Home(folder)


def hold_back(home: Home) -> None:
    """Leave a message in the outbox as the throttle does."""
    with closing(sqlite3.connect(home.folder / "wakeful.db")) as database, database:
        database.execute(
            "INSERT INTO deliveries (id, target, route, session_key, text, state, attempts, "
            "due_at, filed_at, expires_at, unprompted_by) VALUES ('dl_1', 't', '{}', 's', 'hi', "
            "'held', 0, 1, 1, 1, 'main')"
        )
