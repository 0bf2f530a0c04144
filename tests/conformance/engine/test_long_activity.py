"""Activity after 10 000 turns: compacted, paged, and its prompt no longer than any other."""

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.integration.engine.small import summary
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Scripted, wait_for
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TURNS
from wakeful.vocabulary.entry import AssistantBody, EntryKind, UserBody
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import AssistantMessage, Text

ACTIVITY = "system:activity"
KEY = "agent:main:activity"
TURNS_BEFORE = 10_000
STEP = 1_000  # that one commit writes
PAGE = 500

_OTHERS = ", ".join(name for name in TURNS.fields if name not in ("id", "ended_at"))
COPY = f"""
INSERT INTO turns (id, ended_at, is_news, {_OTHERS})
WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < :count)
SELECT id || '-' || n, ended_at - n, 1, {_OTHERS} FROM turns, counting
"""


class Roomy(Scripted):
    """A model that sums up when it is asked to, with a window that 10 000 turns do not fit."""

    context_window = 40_000

    def shown(self) -> list[int]:
        """Return how many characters each question for a reply showed."""
        return [
            sum(len(message.text) for message in request.messages)
            for request in self.requests
            if request.purpose == "reply"
        ]


def answer(request: Request) -> str:
    return summary("a long year") if request.purpose == "summary" else "well"


async def lengthen(runtime: Runtime) -> None:
    """Write what 10 000 turns would have left, without asking anybody."""
    ids = Ids(runtime.clock)

    def part(tx: Tx, start: int) -> None:
        session = sessions.get(tx, KEY)
        assert session is not None
        lines: list[NewEntry] = []
        for number in range(start, start + STEP):
            said = AssistantMessage(content=(Text(text=f"{number} was looked at"),))
            bodies = (UserBody(text=f"news {number}", source="feed"), AssistantBody(message=said))
            lines += [
                NewEntry(id=ids.new("en"), kind=EntryKind.MESSAGE, body=one) for one in bodies
            ]
        entries.append(tx, session, lines)

    for start in range(0, TURNS_BEFORE, STEP):
        await runtime.store.transact(lambda tx, start=start: part(tx, start))
    await runtime.store.transact(lambda tx: tx.run(COPY, count=TURNS_BEFORE))


@pytest.mark.timeout(60)
async def test_activity_after_10_000_turns_is_compacted_paged_and_bounded(lasting: SettingsFor):
    model = Roomy(answer)
    agent = Agent(model=model, heartbeat=HeartbeatRules(every=0))
    async with Runtime(agents=[agent], settings=lasting(), clock=ManualClock()) as runtime:
        await runtime.ask("begin", session=ACTIVITY)
        await lengthen(runtime)
        await runtime.ask("and now?", session=ACTIVITY)
        await wait_for(runtime, "session.compacted")
        for number in range(3):
            await runtime.ask(f"go on {number}", session=ACTIVITY)
        view = runtime.services.views
        paths = set[str]()
        page = await view.transcripts.page(KEY, limit=PAGE)
        pages = 0
        while page:
            pages += 1
            paths |= {entry.id for entry in page}
            page = await view.transcripts.page(KEY, before=page[0].id, limit=PAGE)
        feed = await runtime.activity(limit=200)
        unread = (await runtime.counts()).unread

    window = Roomy.context_window * 4  # characters
    assert max(model.shown()) < window
    assert model.shown()[-1] < window / 2
    assert len(paths) > 2 * TURNS_BEFORE
    assert pages <= len(paths) // PAGE + 1
    assert len(feed.rows) == 200
    assert feed.next is not None
    assert unread == 1_000  # that, or more
