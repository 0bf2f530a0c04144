"""Hang the real process; its watchdog ends it, and the next start goes on."""

import signal

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Place, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.operations.watchdog import STALLED
from wakeful.testing.checker.history import read_sqlite
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState

WATCHED = ("--watchdog-s", "1")


@pytest.mark.parametrize(
    ("manner", "code", "told"),
    [
        ("block", STALLED, "the event loop has hung"),
        ("spin", -signal.SIGVTALRM, "most recent call first"),
    ],
)
async def test_a_tool_that_hangs_the_process_costs_a_restart_and_nothing_else(
    place: Place, manner: str, code: int, told: str
) -> None:
    """F18: the watchdog ends what no longer answers."""
    client = Client(place)
    async with running(place, options=WATCHED) as rig:
        await client.say(rig, "b", "look.gate=g,put")
        await rig.ask("reached", gate="g")
        await rig.ask("open_later", gate="g")
        await client.say(rig, "a", f"act.{manner},put")
        ended = await rig.ended()
    await come_to_rest(place, client)

    report = await judged(place, must=("I7",))
    found = read_sqlite(place.home / "wakeful.db")
    cut = next(call for call in found.calls if call.name == "act")
    words = (place.ledgers / "stderr.log").read_text()
    assert ended == code
    assert told in words
    assert "hands.py" in words
    assert cut.state is CallState.UNKNOWN
    assert {turn.state for turn in found.turns.values()} == {TurnState.DONE}
    assert report.crashes == 1
    assert_kept(report)


async def test_a_stop_in_time_leaves_the_watchdog_nothing_to_do(place: Place) -> None:
    client = Client(place)
    async with running(place, options=WATCHED) as rig:
        await client.say(rig, "a", "look,act,put")
        await rig.rest()
        code = await rig.stop()

    assert code == 0
    assert "event loop" not in (place.ledgers / "stderr.log").read_text()
    assert_kept(await judged(place))
