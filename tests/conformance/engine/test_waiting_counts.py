"""What waits is counted truly, however much it is and whoever asks."""

from tests.conformance.engine.conftest import SettingsFor
from wakeful.broker.stimuli import STIMULI
from wakeful.testing.kit import Scripted, in_memory, operator_draft
from wakeful.views.ledger import WaitingCounts
from wakeful.vocabulary.kinds import Kind

MANY = 1_203
COLUMNS = ", ".join(name for name in STIMULI.fields if name != "id")
COPY = f"""
INSERT INTO stimuli (id, {COLUMNS})
WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {MANY})
SELECT id || '-' || n, {COLUMNS} FROM stimuli, counting
"""
MOVE = (
    "UPDATE stimuli SET state = :state WHERE id IN "
    "(SELECT id FROM stimuli WHERE state = 'pending' LIMIT :count)"
)


async def test_more_than_a_page_of_waiting_stimuli_is_counted(settings_for: SettingsFor):
    async with in_memory(Scripted([]), settings=settings_for()) as runtime:
        ledger, write = runtime.services.views.ledger, runtime.store.transact
        await runtime.accept(
            operator_draft("agent:main:bulk", text="x", kind=Kind.A2A, not_before=2**52)
        )
        await write(lambda tx: tx.run(COPY))
        await write(lambda tx: tx.run(MOVE, state="parked", count=3))
        await write(lambda tx: tx.run(MOVE, state="held", count=2))
        await write(lambda tx: tx.run(MOVE, state="done", count=5))
        everybody, strangers = await ledger.waiting(), await ledger.waiting("ann")
        await write(lambda tx: tx.run("UPDATE sessions SET owner = 'ann'"))
        own = await ledger.waiting("ann")

    assert everybody == WaitingCounts(pending=MANY + 1 - 10, parked=3, held=2)
    assert strangers == WaitingCounts(pending=0, parked=0, held=0)
    assert own == everybody
