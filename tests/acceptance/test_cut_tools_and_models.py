"""A tool or a model call that the death of the process cuts off."""

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import OUT, Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger
from wakeful.testing.checker.history import read_sqlite
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import TurnState


async def die_of(place: Place, client: Client, plan: str) -> None:
    try:
        async with running(place) as rig:
            await client.say(rig, "a", plan, route=OUT)
            await rig.rest()
    except Gone:
        pass


@pytest.mark.parametrize("how", ["die-before", "die"])
@pytest.mark.parametrize(
    ("tool", "state", "runs"),
    [("look", CallState.DONE, 2), ("put", CallState.DONE, 2), ("act", CallState.UNKNOWN, 1)],
)
async def test_a_cut_tool_runs_again_only_if_that_does_no_harm(
    place: Place, tool: str, how: str, state: CallState, runs: int
) -> None:
    """F6: killed before, inside and after its effect."""
    client = Client(place)

    await die_of(place, client, f"{tool}.{how},look")
    await come_to_rest(place, client)

    report = await judged(place, must=("I7", "I11"))
    (cut, _) = read_sqlite(place.home / "wakeful.db").calls
    lines = ledger.read(place.ledgers / "tools.jsonl")
    keys = {line["key"] for line in lines if line["tool"] == tool and tool != "look"}
    begun = [line for line in lines if line["what"] == "begun" and ":1:" in line["key"]]
    assert cut.state is state
    assert len(begun) == runs
    assert len(keys) <= 1
    assert report.crashes == 1
    assert_kept(report)


async def test_calls_before_a_cut_one_keep_their_results_and_those_after_it_run(
    place: Place,
) -> None:
    client = Client(place)

    await die_of(place, client, "act&act.die&act&put")
    await come_to_rest(place, client)

    report = await judged(place, must=("I7",))
    calls = read_sqlite(place.home / "wakeful.db").calls
    assert [call.state.value for call in calls] == ["done", "unknown", "done", "done"]
    assert_kept(report)


@pytest.mark.parametrize("plan", ["die+say", "slow+die+say", "look,die+look", "look,slow+die+say"])
async def test_a_cut_model_call_is_repeated_and_answered_once(place: Place, plan: str) -> None:
    """F4: the question is repeated, one answer counts."""
    client = Client(place)

    await die_of(place, client, plan)
    await come_to_rest(place, client)

    report = await judged(place, must=("I11",))
    database = read_sqlite(place.home / "wakeful.db")
    (turn,) = database.turns.values()
    assert turn.state is TurnState.DONE
    assert [ask.state for ask in database.asks].count("abandoned") == 1
    assert report.crashes == 1
    assert_kept(report)
