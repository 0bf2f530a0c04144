"""Many timers of one instant cost what filing their stimuli costs, not a commit each."""

from collections.abc import Generator
from pathlib import Path

import apsw
import msgspec
import pytest

from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Scripted, in_memory, operator_draft
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.vocabulary.kinds import Kind

COUNT = 2_000
MAIN = "agent:main:main"


class Commits:
    """Counts the commits of every connection that is opened while it watches."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, connection: apsw.Connection) -> None:
        connection.set_commit_hook(self._note)

    def _note(self) -> bool:
        self.count += 1
        return False


@pytest.fixture
def commits() -> Generator[Commits, None, None]:
    counter = Commits()
    apsw.connection_hooks.append(counter.watch)
    yield counter
    apsw.connection_hooks.remove(counter.watch)


def put(tx: Tx, due_at: int) -> None:
    for number in range(COUNT):
        draft = operator_draft(MAIN, text=f"{number}", kind=Kind.AUTOMATION)
        payload = msgspec.json.encode(draft).decode()
        timer_id = f"{number:04}"
        timers.put(
            tx, Timer(id=timer_id, due_at=due_at, kind="stimulus", target=MAIN, payload=payload)
        )


async def test_timers_of_one_instant_share_their_commits(tmp_path: Path, commits: Commits):
    clock = ManualClock()
    settings = Settings(home=tmp_path / "home")
    async with in_memory(Scripted([]), settings=settings, clock=clock) as runtime:
        await runtime.halt()  # what is filed waits
        await runtime.store.transact(lambda tx: put(tx, clock.now() + 1_000))
        before = commits.count
        clock.advance(1)
        while (await runtime.store.read("SELECT COUNT(*) FROM timers"))[0][0]:
            pass
        spent = commits.count - before
        ((filed,),) = await runtime.store.read("SELECT COUNT(*) FROM stimuli")

    assert filed == COUNT
    assert spent <= 2 * COUNT / runtime.store.yielding_rows
