"""Kill the process between a request, its grant, the call and its result: it runs once, or is lost.

An effect that was cut off after it may have begun is never tried again; the model is told.
"""

from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger
from wakeful.testing.checker.history import Database, read_postgres, read_sqlite
from wakeful.turns.tool_calls import CallState
from wakeful.vocabulary.entry import NoteBody

DAYS_MS = 3 * 86_400_000
# Where the life is killed in which the request is granted, and what came of the call.
POINTS = {
    "answer:kill": CallState.DONE,
    "answered:kill": CallState.DONE,
    "claim:kill": CallState.DONE,
    "opened:kill": CallState.UNKNOWN,
    "intended:kill": CallState.UNKNOWN,
    "tool-acts:kill": CallState.UNKNOWN,
    "result:kill": CallState.DONE,
    "close:kill": CallState.DONE,
}


async def rows(place: Place) -> Database:
    if isinstance(place.address, Path):
        return read_sqlite(place.address)
    return await read_postgres(place.address)


async def asked_and_killed(place: Place, client: Client) -> None:
    """Ask, and die; nobody comes for three days."""
    with suppress(Gone):
        async with running(place) as rig:
            await client.say(rig, "a", "dare")
            await rig.rest()
            rig.kill()
            await rig.ended()
    place.move_clock(DAYS_MS)


async def granted_and_killed(place: Place, client: Client, fail: str) -> None:
    """Grant, and die; the client grants again, since it was never answered."""
    try:
        async with running(place, env={"WAKEFUL_FAIL": fail}) as rig:
            answered = await client.tell(rig, "decide", number=1, grants=True)
            await rig.rest()
    except Gone:
        answered = None
    if answered is None:
        async with running(place) as rig:
            await client.tell(rig, "decide", number=1, grants=True)
            await rig.rest()
            await rig.stop()
    await come_to_rest(place, client)


def assert_ran_once(place: Place, found: Database, outcome: CallState) -> None:
    (approval,) = found.approvals.values()
    (call,) = [one for one in found.calls if one.call_id == approval.id]
    lines = [one for one in ledger.read(place.ledgers / "tools.jsonl") if one["tool"] == "dare"]
    acted = sum(one["what"] == "acted" for one in lines)
    shown = [
        body.text
        for entry in found.entries
        if isinstance(body := entry.content(), NoteBody) and body.topic == "approved"
    ]

    assert approval.state == "granted"
    assert call.state is outcome
    assert acted == 1 if outcome is CallState.DONE else acted <= 1
    assert len(shown) == 1
    assert shown[0].startswith("Approved #1: dare(")
    assert ("outcome unknown" in shown[0]) is (outcome is CallState.UNKNOWN)


@pytest.mark.parametrize("fail", POINTS)
async def test_what_was_granted_runs_once_wherever_the_process_is_killed(
    place: Place, fail: str
) -> None:
    client = Client(place)

    await asked_and_killed(place, client)
    await granted_and_killed(place, client, fail)

    assert_ran_once(place, await rows(place), POINTS[fail])
    assert_kept(await judged(place, must=("I7",)))


@pytest.mark.parametrize("fail", ["answered:kill", "intended:kill", "tool-acts:kill"])
async def test_the_same_on_postgresql(tmp_path: Path, postgres_url: str, fail: str) -> None:
    place = Place(tmp_path, postgres_url)
    client = Client(place)

    await asked_and_killed(place, client)
    await granted_and_killed(place, client, fail)

    assert_ran_once(place, await rows(place), POINTS[fail])
    assert_kept(await judged(place, must=("I7",)))
