"""Health: alive, able to commit, and what was counted."""

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from wakeful.doors.http.endpoint import Call, Endpoint, Nothing
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.rooms import Rooms
from wakeful.store.database import Tx
from wakeful.vocabulary.clock import time_limit
from wakeful.vocabulary.errors import WakefulError
from wakeful.vocabulary.record import Record

READY_S = 2.0  # how long a commit may take
FRESH_MS = 1_000  # how long an answer holds: anybody may ask, and each commit costs a sync


class Health(Record):
    """All is well."""

    status: str


class HealthRoutes:
    """What supervisors and monitors ask."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._ready_until = 0

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/healthz",
                scope=None,
                summary="The process is alive",
                answer=self.healthz,
                returns={200: Health},
            ),
            Endpoint(
                method="GET",
                path="/readyz",
                scope=None,
                summary="The database takes a commit",
                answer=self.readyz,
                returns={200: Health},
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

    async def readyz(self, call: Call[Nothing, Nothing]) -> Health:
        if self._rooms.clock.now() >= self._ready_until:
            try:
                async with time_limit(self._rooms.clock, READY_S):
                    await self._rooms.store.write(_touch)
            except (TimeoutError, WakefulError):
                raise Problem("unavailable", "no commit succeeds", retry_after_s=1) from None
            self._ready_until = self._rooms.clock.now() + FRESH_MS
        return Health(status="ready")

    async def metrics(self, call: Call[Nothing, Nothing]) -> Response:
        return Response(
            generate_latest(self._rooms.metrics.registry),
            headers={"Content-Type": CONTENT_TYPE_LATEST},
        )


def _touch(tx: Tx) -> None:
    tx.run(
        "INSERT INTO readiness (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now",
        now=tx.now,
    )
