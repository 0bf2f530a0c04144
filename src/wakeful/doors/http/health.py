"""Health: alive, able to commit, and what was counted."""

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from wakeful.doors.http.endpoint import PUBLIC, Call, Endpoint, Nothing
from wakeful.doors.http.problems import Problem
from wakeful.services import Services
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import WakefulError
from wakeful.vocabulary.record import Record

READY_S = 2.0  # how long a commit may take
FRESH_S = 1.0  # how long an answer holds: anybody may ask, and each commit costs a sync


class Health(Record):
    """All is well."""

    status: str


class Readiness(Record):
    """Commits succeed."""

    status: str
    timers_late_s: float  # how late the timer is that should have fired first


class Probe:
    """A service that commits a row when somebody asks whether commits work.

    A service, because whoever waits for a commit cannot leave before its outcome is known.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._ready_until = float("-inf")
        self.timers_late_s = 0.0  # at the last commit
        self._asked = asyncio.Event()
        self._waiting: set[asyncio.Future[bool]] = set()

    async def run(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            waiting = tuple(self._waiting)
            try:
                self.timers_late_s = await self._store.transact(_touch)
                self._ready_until = self._clock.monotonic() + FRESH_S
                is_ready = True
            except WakefulError:
                is_ready = False
            for answer in waiting:
                if not answer.done():
                    answer.set_result(is_ready)

    async def is_ready(self) -> bool:
        """Tell whether a commit succeeded just now, or does in time."""
        if self._clock.monotonic() < self._ready_until:
            return True
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        self._asked.set()
        try:
            async with time_limit(self._clock, READY_S):
                return await answer
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(answer)


class HealthRoutes:
    """What supervisors and monitors ask."""

    def __init__(self, services: Services, probe: Probe) -> None:
        self._services = services
        self._probe = probe

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/healthz",
                scope=PUBLIC,
                summary="The process is alive",
                answer=self.healthz,
                returns={200: Health},
            ),
            Endpoint(
                method="GET",
                path="/readyz",
                scope=PUBLIC,
                summary="The database takes a commit, and how late timers are",
                answer=self.readyz,
                returns={200: Readiness},
            ),
            Endpoint(
                method="GET",
                path="/metrics",
                scope="read",
                summary="Counters, as Prometheus reads them",
                answer=self.metrics,
                returns={200: "text/plain"},
            ),
        ]

    async def healthz(self, call: Call[Nothing, Nothing]) -> Health:
        return Health(status="alive")

    async def readyz(self, call: Call[Nothing, Nothing]) -> Readiness:
        if not await self._probe.is_ready():
            raise Problem("unavailable", "no commit succeeds", retry_after_s=1)
        return Readiness(status="ready", timers_late_s=self._probe.timers_late_s)

    async def metrics(self, call: Call[Nothing, Nothing]) -> Response:
        # Read from the database: a timekeeper that died would report nothing.
        views, metrics = self._services.views, self._services.metrics
        rows = await views.store.read(timers.FIRST_DUE)
        metrics.timers_late(timers.late_s(rows[0][0], views.clock.now()))
        return Response(
            generate_latest(metrics.registry),
            headers={"Content-Type": CONTENT_TYPE_LATEST},
        )


def _touch(tx: Tx) -> float:
    """Commit a row, and return how late timers are."""
    tx.run(
        "INSERT INTO readiness (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now",
        now=tx.now,
    )
    row = tx.one(timers.FIRST_DUE)
    return timers.late_s(row[0] if row else None, tx.now)
