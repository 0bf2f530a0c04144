"""Kill the process while it compacts a conversation: the old view or the new, never a mix."""

import pytest

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, RigProcess, running
from tests.proofs.stand_in import TAKES
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger
from wakeful.testing.checker.history import read_sqlite
from wakeful.vocabulary.entry import EntryKind


async def long_talk(rig: RigProcess, client: Client) -> None:
    """Say so much that the conversation is compacted after a turn, before one and within one."""
    for plan in ("long+say", "long+say", "long+look,look,say", "say"):
        await client.say(rig, "a", plan)
        await rig.rest()


async def talk_and_die(place: Place, client: Client, fail: str, options: tuple[str, ...]) -> None:
    try:
        async with running(place, env={"WAKEFUL_FAIL": fail}, options=options) as rig:
            await long_talk(rig, client)
            await rig.stop()
    except Gone:
        pass


async def check(place: Place, client: Client) -> None:
    await come_to_rest(place, client)
    report = await judged(place, must=("I17",))
    entries = read_sqlite(place.home / "wakeful.db").entries

    assert_kept(report)
    assert sum(entry.kind is EntryKind.COMPACTION for entry in entries) >= 2


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("number", range(4, 22, 3))
async def test_a_kill_around_any_commit_leaves_one_view(
    place: Place, number: int, where: str
) -> None:
    """F27: the old view or the new one, never a mix."""
    client = Client(place)

    await talk_and_die(place, client, "", ("--die", f"{where}:{number}"))
    async with running(place) as rig:
        await long_talk(rig, client)
        await rig.stop()

    await check(place, client)


@pytest.mark.parametrize("die", ["before:8", "after:8", "before:11", "after:14", "before:17"])
async def test_a_kill_among_refused_questions_leaves_one_view(place: Place, die: str) -> None:
    """F23, F27: the model takes less than it says, and refuses questions for summaries, too."""
    client, narrow = Client(place), {TAKES: "1500"}
    try:
        async with running(place, env=narrow, options=("--die", die)) as rig:
            await long_talk(rig, client)
            await rig.stop()
    except Gone:
        pass
    async with running(place, env=narrow) as rig:
        await long_talk(rig, client)
        await rig.stop()

    lines = ledger.read(place.ledgers / "model.jsonl")
    await check(place, client)
    assert sum(line["what"] == "overflowed" for line in lines) >= 2


@pytest.mark.parametrize("passage", [2, 4])
@pytest.mark.parametrize("point", ["ask", "reply"])
async def test_a_kill_around_the_question_for_a_summary_leaves_one_view(
    place: Place, point: str, passage: int
) -> None:
    client = Client(place)

    await talk_and_die(place, client, f"{point}:kill:{passage}", ())
    async with running(place) as rig:
        await long_talk(rig, client)
        await rig.stop()

    await check(place, client)
