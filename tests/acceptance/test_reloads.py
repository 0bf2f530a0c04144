"""New settings are taken by a server at work: nobody waits for it, and no turn is cut."""

import signal
from pathlib import Path

from tests.acceptance.test_stops_of_the_server import (
    SETTINGS,
    at_home,
    call,
    stored,
    when_its_tool_runs,
)
from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.process import providers
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState

LONG = "echo once >> ran; while [ ! -e go ]; do sleep 0.05; done; echo finished"


def test_a_long_turn_goes_on_and_others_are_answered_while_settings_change(tmp_path: Path):
    with providers(tmp_path) as stand_ins:
        home = at_home(tmp_path, stand_ins)
        stand_ins.plan(hang=[call(LONG), Step(text="done at last")])
        with home.up() as server:
            when_its_tool_runs(home)
            (home.folder / "wakeful.yaml").write_text(f"{SETTINGS}max_chain_depth: 3\n")
            server.signal(signal.SIGHUP)
            home.log_line("changed: max_chain_depth")
            other = home.json("send", "hello {other}", "-s", "api:other", "--wait", "10")
            open_turns = [turn.state for turn in stored(home).turns.values()]
            (home.folder / "workspaces" / "main" / "go").touch()
            home.ok("send", "and now? {other}", "--mode", "queue", "--wait", "10")
            assert server.stop() == 0
        long = next(iter(stored(home).turns.values()))
        (ran,) = stored(home).calls

    assert other["turn"]["state"] == "done"
    assert open_turns.count(TurnState.OPEN) == 1
    assert (long.state, long.reply, long.attempts) == (TurnState.DONE, "done at last", 1)
    assert ran.state is CallState.DONE
    assert (home.folder / "workspaces" / "main" / "ran").read_text() == "once\n"
