"""A disk that fails, or is full, under the real process; made to fail from outside, by strace."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.scenes import assert_kept, everything
from tests.proofs.client import Client
from tests.proofs.process import Failed, Gone, Place, RigProcess, running
from tests.proofs.trial import come_to_rest, judged
from wakeful.testing import ledger

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def strace(place: Place, folder: Path, call: str, fault: str) -> tuple[str, ...]:
    """Return the command that lets system calls on the database fail."""
    return (
        *("strace", "-f", "-qq", "-o", str(folder / "strace.log"), "-e", f"trace={call}"),
        *("-P", str(place.home / "wakeful.db-wal"), "-P", str(place.home / "wakeful.db")),
        *("-e", f"inject={call}:{fault}"),
    )


async def play(rig: RigProcess, client: Client) -> None:
    with suppress(Failed, Gone, TimeoutError):
        await everything(rig, client)


def refused_for_want_of_space(place: Place) -> bool:
    answers = ledger.read(place.ledgers / "client.jsonl")
    return any("StoreFull" in str(line.get("refused")) for line in answers)


@pytest.mark.parametrize("number", [8, 13, 20])
async def test_a_failed_sync_ends_the_process_and_nothing_is_acknowledged_after_it(
    place: Place, tmp_path: Path, number: int
) -> None:
    """F11: nobody carries on after a sync that failed."""
    client = Client(place)
    wrap = strace(place, tmp_path, "fdatasync", f"error=EIO:when={number}")  # once, then fine

    try:
        async with running(place, wrap=wrap) as rig:
            await play(rig, client)
            code = await rig.ended()
    except Gone:
        code = 1
    await come_to_rest(place, client)

    report = await judged(place)
    assert code != 0
    assert_kept(report)


async def test_a_full_disk_refuses_and_recovers_by_itself(place: Place, tmp_path: Path) -> None:
    """F12: refused while it is full, and nothing to mend afterwards."""
    client = Client(place)
    wrap = strace(place, tmp_path, "pwrite64", "error=ENOSPC:when=200..240")

    try:
        async with running(place, wrap=wrap) as rig:
            await play(rig, client)
            for number in range(200):  # not waiting for rest: the lanes' own tries use writes up
                if await client.say(rig, "abcd"[number % 4]) is None:
                    break
            for _ in range(200):
                if await client.say(rig, "a") is not None:
                    break
            await rig.rest()
            code = await rig.stop()
    except Gone:
        code = 1
    await come_to_rest(place, client)

    assert code == 0
    assert refused_for_want_of_space(place)
    assert_kept(await judged(place))
