"""A timekeeper that does not fire is noticed by whoever asks."""

import httpx2

from tests.integration.http.serving import house
from wakeful.doors.http.health import FRESH_S
from wakeful.testing.kit import ManualClock

LATE_MS = 5_000


async def told(client: httpx2.AsyncClient) -> tuple[float, str]:
    """Return how late timers are, by readiness and by the metrics."""
    ready = await client.get("/readyz")
    metrics = await client.get("/metrics")
    (line,) = [
        line for line in metrics.text.splitlines() if line.startswith("wakeful_timers_late_seconds")
    ]
    return ready.json()["timers_late_s"], line.partition(" ")[2]


async def test_a_timer_that_nobody_fires_is_told_as_late():
    clock = ManualClock()
    async with house(clock=clock) as home, home.client(home.operator) as client:
        on_time = await told(client)
        # Without a word to the timekeeper, which sleeps: as if it were dead.
        await home.runtime.store.transact(
            lambda tx: tx.run(
                "INSERT INTO timers (id, due_at, kind, target, payload) "
                "VALUES ('tea', :due_at, 'stimulus', 'agent:main:main', '{}')",
                due_at=tx.now - LATE_MS,
            )
        )
        clock.advance(FRESH_S)  # what was told a moment ago holds no longer
        late = await told(client)

    assert on_time == (0.0, "0.0")
    assert late[0] >= LATE_MS / 1000
    assert float(late[1]) >= LATE_MS / 1000
