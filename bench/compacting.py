"""How soon a server says that it is ready while it compacts a very long conversation."""

import http.client
import json
import time
from itertools import count
from pathlib import Path

from bench import served
from bench.figures import Figure, percentile
from bench.history import add_session
from bench.ledger import opened, prepare

ENTRIES = 100_000
SESSION = "long"
PAUSE_S = 0.01  # between two questions
QUESTIONS = 600
GOAL_MS = 50
PATIENCE_S = 60


def measure(folder: Path) -> list[Figure]:
    _fill(folder / "home")
    with served.wakeful(folder / "home") as server:
        readiness, life = _Asker(server.port, "/readyz"), _Asker(server.port, "/healthz")
        idle = [(readiness.ask(), life.ask()) for _ in range(QUESTIONS)]
        _request(server.port, f"/api/sessions/{SESSION}/messages", {"text": "/compact"})
        busy = [(readiness.ask(), life.ask()) for _ in range(QUESTIONS)]
        stopped = _request(server.port, f"/api/sessions/{SESSION}/stop", {})
    if stopped["turn_id"] is None:
        raise RuntimeError("the conversation was compacted before all questions were asked")
    return [
        _figure("readyz", [ready for ready, _ in busy], [ready for ready, _ in idle]),
        _figure("healthz", [alive for _, alive in busy], [alive for _, alive in idle]),
    ]


def load(folder: Path) -> None:
    measure(folder)


def _figure(path: str, busy: list[float], idle: list[float]) -> Figure:
    return Figure(
        name=f"compacting.{path}",
        value=percentile(busy, 99),
        unit="ms",
        floor=percentile(idle, 99),
        floor_is=f"p99 of /{path} while nothing runs",
        goal=GOAL_MS,
    )


class _Asker:
    """Asks one question again and again, over one connection."""

    def __init__(self, port: int, path: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        self._path = path

    def ask(self) -> float:
        """Return how many milliseconds an answer took, after a pause."""
        time.sleep(PAUSE_S)
        started = time.perf_counter()
        self._connection.request("GET", self._path)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{self._path} answered {answer.status}")
        return (time.perf_counter() - started) * 1000


def _request(port: int, path: str, body: object) -> dict[str, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {served.TOKEN}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    return json.loads(connection.getresponse().read())


def _fill(home: Path) -> None:
    prepare(home)
    with opened(home) as ledger:
        # No model has counted this conversation: all of it is to be weighed.
        ledger.run(
            "UPDATE entries SET body = json_set(body, '$.message.usage.input', 0) "
            "WHERE json_extract(body, '$.type') = 'assistant'"
        )
        add_session(ledger, f"agent:main:{SESSION}", ENTRIES, count(), context=ENTRIES)
