"""Ask the real server to stop while a real tool runs; nothing is lost, and it leaves with 0."""

import asyncio
import signal
from pathlib import Path

import asyncpg

from tests.integration.cli.shell import Home
from tests.patience import patience
from tests.waiting import eventually_holds
from wakeful.cli.exits import ExitCode
from wakeful.testing.checker.history import Database, read_sqlite
from wakeful.testing.providers.plan import PlannedCall, Step
from wakeful.testing.providers.process import Providers, providers
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState

SETTINGS = """
drain_s: 300
agents:
  main:
    model: openai:stand-in
    tools: [shell]
"""
PATIENCE_S = patience(10)


def at_home(folder: Path, stand_ins: Providers) -> Home:
    home = Home(folder / "home", has_libraries=True, **stand_ins.environment)
    home.folder.mkdir(mode=0o700)
    (home.folder / "wakeful.yaml").write_text(SETTINGS)
    return home


def stored(home: Home) -> Database:
    return read_sqlite(home.folder / "wakeful.db")


def call(command: str) -> Step:
    return Step(calls=(PlannedCall(name="shell", arguments={"command": command}),))


def when_its_tool_runs(home: Home) -> None:
    """Send the message whose plan hangs, and return when its tool runs."""
    home.ok("send", "please {hang}")
    eventually_holds(lambda: any(stored(home).calls))


def test_the_second_signal_leaves_at_once_though_a_tool_hangs(tmp_path: Path):
    with providers(tmp_path) as stand_ins:
        home = at_home(tmp_path, stand_ins)
        stand_ins.plan(hang=[call("echo once >> ran; sleep 600"), Step(text="gave up")])
        with home.up() as server:
            when_its_tool_runs(home)
            # The hardest moment: other settings wait for the tool, too.
            (home.folder / "wakeful.yaml").write_text(SETTINGS + "max_chain_depth: 3\n")
            server.signal(signal.SIGHUP)
            home.log_line("settings read again")
            server.signal(signal.SIGTERM)
            home.log_line("asked to stop")
            server.signal(signal.SIGTERM)
            code = server.process.wait(PATIENCE_S)
        (turn,) = stored(home).turns.values()
        assert (code, turn.state) == (0, TurnState.OPEN)

        with home.up():
            # Else the question may join the turn that goes on.
            eventually_holds(lambda: all(turn.ended_at for turn in stored(home).turns.values()))
            home.ok("chat", "and now? {other}")
        first_turn, _ = stored(home).turns.values()
        (cut,) = stored(home).calls

    assert (first_turn.state, first_turn.reply) == (TurnState.DONE, "gave up")
    assert cut.state is CallState.UNKNOWN
    assert (home.folder / "workspaces" / "main" / "ran").read_text() == "once\n"


def test_a_tool_that_stops_the_server_is_finished_first(tmp_path: Path):
    with providers(tmp_path) as stand_ins:
        home = at_home(tmp_path, stand_ins)
        with home.up() as server:
            stop = f"kill -TERM {server.process.pid}; sleep 0.3; echo finished"
            stand_ins.plan(hang=[call(stop), Step(text="stopped it")])
            home.ok("send", "please {hang}")
            code = server.ended()
        (turn,) = stored(home).turns.values()
        (ran,) = stored(home).calls

    assert (code, turn.state, turn.reply) == (0, TurnState.DONE, "stopped it")
    assert ran.state is CallState.DONE


def test_a_server_answers_and_stops_while_a_stranger_holds_its_database(
    tmp_path: Path, postgres_url: str
):
    home = Home(tmp_path / "home", WAKEFUL_DATABASE=postgres_url)
    with home.up() as server, asyncio.Runner() as runner:
        stranger = runner.run(asyncpg.connect(postgres_url))
        runner.run(stranger.execute("BEGIN; SELECT 1 FROM bus_head FOR UPDATE"))
        refused = home.run("send", "hello")
        server.signal(signal.SIGTERM)
        code = server.process.wait(PATIENCE_S)
        runner.run(stranger.close())

    assert refused.returncode == ExitCode.BUSY
    assert code == 0
