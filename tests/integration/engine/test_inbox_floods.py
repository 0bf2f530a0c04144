"""A flood of posts: none is lost or filed twice, few open turns, and nobody else waits for it."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.integration.engine.looking import turn_of
from tests.integration.engine.test_pools import HangingForStrangers
from wakeful.runtime import Runtime
from wakeful.settings.settings import LaneSettings, Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted, in_memory
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import TooOften
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Draft, Outcome, Priority, Trust

POSTS = 10_000
AT_ONCE = 200
MOST_MB = 50


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def test_ten_thousand_posts_of_one_source_open_eight_turns_a_minute_and_delay_nobody(
    tmp_path: Path,
):
    """T11, F26, I14: accepted and refused are all that was sent, and all accepted have an end."""
    clock = ManualClock()
    settings = Settings(home=tmp_path / "home")
    counts = {"accepted": 0, "refused": 0}

    async def post(number: int) -> None:
        try:
            await runtime.post(f"{number}", priority="now", source="loud")
            counts["accepted"] += 1
        except TooOften as refused:
            assert refused.retry_after_s
            counts["refused"] += 1

    async with in_memory(Scripted(lambda _: "ok"), settings=settings, clock=clock) as runtime:
        before = resident_mb()
        for first in range(0, POSTS, AT_ONCE):
            await asyncio.gather(*map(post, range(first, first + AT_ONCE)))
            clock.advance(10 * AT_ONCE / POSTS)
        grown = resident_mb() - before
        other = await runtime.post("fire", priority="now", source="alarm")
        turn = await turn_of(runtime, other)
        read = runtime.store.read
        opened = [row[0] for row in await read("SELECT opened_at FROM turns ORDER BY opened_at")]
        told = await read("SELECT 1 FROM notices WHERE kind = 'storm'")
        started = await read("SELECT 1 FROM events WHERE kind = 'storm.started'")
        rows = await read(
            "SELECT COUNT(*), SUM(CASE WHEN state = 'held' THEN 1 ELSE 0 END) FROM stimuli "
            "WHERE source = 'loud'"
        )

    assert counts["accepted"] + counts["refused"] == POSTS
    assert counts["refused"] > 8_000
    assert rows[0][0] == counts["accepted"]
    assert rows[0][1] <= 1_000
    loud = opened[:-1]
    assert all(len([at for at in loud if 0 <= at - first < 60_000]) <= 8 for first in loud)
    assert turn.source == "alarm"
    assert (len(told), len(started)) == (1, 1)
    assert grown < MOST_MB


@pytest.mark.parametrize("kind", [Kind.INBOX, Kind.WEBHOOK])
async def test_an_urgent_item_waits_behind_no_strangers_chatter(kind: Kind):
    """A `send` token's `now` does: anybody could call all they say urgent."""
    model = HangingForStrangers()
    settings = Settings(lanes=LaneSettings(main=8))
    agent = Agent(model=model, heartbeat=NO_HEARTBEAT)
    async with Runtime(agents=[agent], settings=settings) as runtime:
        chatter = Draft(
            session_key="", trust=Trust.EXTERNAL, owner="tk_a", text="hello", priority=Priority.NOW
        )
        for number in range(16):
            await runtime.accept(replace(chatter, session_key=f"agent:main:api:{number}"))
        for _ in range(7):
            await model.asked.acquire()
        item = replace(
            chatter,
            session_key="agent:main:activity",
            owner="operator",
            kind=kind,
            text="fire, says it is me",
        )
        receipt = await runtime.accept(item)
        turn = await turn_of(runtime, receipt)
        is_open = await runtime.store.read("SELECT COUNT(*) FROM turns WHERE state = 'open'")
        model.go_on.set()

    assert receipt.outcome is Outcome.STARTED
    assert turn.reply == "at once"
    assert is_open[0][0] == 7
