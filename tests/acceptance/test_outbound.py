"""Webhooks of the real process, killed before and after it sends: perhaps twice, never lost."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.children import partner
from tests.integration.net.receiver import Receiver, answers, receiving
from tests.patience import patience
from wakeful.vocabulary.failpoints import VARIABLE

SCRIPT = Path(__file__).with_name("outbound_process.py")
SECRETS = {
    "crm": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "ops": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
}
TEXTS = [f"question {number}" for number in range(6)]
LIFE_S = patience(30)


class Home:
    """A home with receivers in its settings file."""

    def __init__(self, folder: Path, **receivers: Receiver) -> None:
        self.folder = folder
        folder.mkdir()
        lines = ["outbound:"]
        for name, receiver in receivers.items():
            (folder / f"{name}.secret").write_text(SECRETS[name] + "\n")
            given = f"url: '{receiver.url}', secret_file: {name}.secret, allow_private: true"
            lines.append(f"  {name}: {{{given}}}")
        (folder / "wakeful.yaml").write_text("\n".join(lines))

    async def live(self, *texts: str, fail: str = "") -> int:
        """Run the process to its end, whichever it is; return its code."""
        errors = self.folder.with_suffix(".stderr")
        process = await partner(
            [str(SCRIPT), str(self.folder), *texts], environ={VARIABLE: fail}, errors=errors
        )
        try:
            async with asyncio.timeout(LIFE_S):
                code = await process.wait()
        finally:
            process.signal_all(signal.SIGKILL)
        assert "Traceback" not in errors.read_text(), errors.read_text()
        return code

    def deliveries(self, door: str) -> dict[str, str]:
        """Return the ids of a receiver's deliveries, in order, and their states."""
        with closing(sqlite3.connect(self.folder / "wakeful.db")) as database:
            rows = database.execute("SELECT id, target, state FROM deliveries ORDER BY id")
            return {row[0]: row[2] for row in rows if row[1].startswith(f"{door}\x1f")}


def assert_delivered(home: Home, door: str, receiver: Receiver) -> None:
    """Each delivery came at least once, in order, as itself each time, and is known to have."""
    deliveries = home.deliveries(door)
    assert list(dict.fromkeys(receiver.ids)) == list(deliveries)
    assert set(deliveries.values()) == {"acknowledged"}
    for received in receiver.requests:
        verified = Webhook(SECRETS[door]).verify(received.body, received.headers)
        assert verified["id"] == received.id
    assert len({(received.id, received.body) for received in receiver.requests}) == len(deliveries)


@pytest.mark.parametrize("passage", [1, 2, 4])
async def test_killed_before_sending_only_what_was_under_way_comes_again(
    tmp_path: Path, passage: int
):
    """F8: one delivery per receiver is under way at a time, so no more may come twice."""
    async with receiving() as crm, receiving() as ops:
        home = Home(tmp_path / "home", crm=crm, ops=ops)
        died = await home.live(*TEXTS, fail=f"send:kill:{passage}")
        ended = await home.live(*TEXTS[passage:])

    assert (died, ended) == (-signal.SIGKILL, 0)
    for door, receiver in (("crm", crm), ("ops", ops)):
        assert_delivered(home, door, receiver)
        assert 0 < len(receiver.ids) <= len(set(receiver.ids)) + (passage > 1)


@pytest.mark.parametrize("passage", [1, 2, 4])
async def test_killed_after_sending_one_webhook_comes_again_under_its_id(
    tmp_path: Path, passage: int
):
    async with receiving() as crm, receiving() as ops:
        home = Home(tmp_path / "home", crm=crm, ops=ops)
        died = await home.live(*TEXTS, fail=f"sent:kill:{passage}")
        ended = await home.live(*TEXTS[passage:])

    assert (died, ended) == (-signal.SIGKILL, 0)
    repeats = 0
    for door, receiver in (("crm", crm), ("ops", ops)):
        assert_delivered(home, door, receiver)
        repeats += len(receiver.ids) - len(set(receiver.ids))
    assert repeats >= 1


async def test_killed_again_and_again_nothing_is_lost(tmp_path: Path):
    async with receiving() as crm:
        home = Home(tmp_path / "home", crm=crm)
        codes = [await home.live("first", fail="sent:kill")]
        codes += [await home.live(fail=fail) for fail in ("send:kill", "sent:kill", "send:kill")]
        codes.append(await home.live())

    assert codes == [-signal.SIGKILL] * 4 + [0]
    assert_delivered(home, "crm", crm)
    assert len(crm.ids) == 3


async def test_a_receiver_that_was_away_gets_it_from_the_next_life(tmp_path: Path):
    async with receiving(answers(503)) as crm:
        home = Home(tmp_path / "home", crm=crm)
        async with asyncio.TaskGroup() as group:
            life = group.create_task(home.live("hello", fail="send:kill:2"))
            await crm.next()
            died = await life
        crm.manner = answers(200)
        ended = await home.live()

    assert (died, ended) == (-signal.SIGKILL, 0)
    assert_delivered(home, "crm", crm)
    assert len(crm.ids) == 2
