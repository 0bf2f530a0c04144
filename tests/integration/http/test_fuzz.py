"""The door keeps what its own OpenAPI document says, whatever it is sent."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from tests.integration.http.serving import house
from wakeful.vocabulary.clock import SystemClock

EXAMPLES = 15  # for each operation
TALK = "messages|stimuli|turns|entries|agents$|fork"  # what stories are made of
STORIES = 25
SECONDS = 30.0  # for all of them
NOT_ENDING = ("/api/events", "/api/sessions/{key}/stream")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "allow_header_conformance",
)


cast("Any", schemathesis).serializer.alias("application/x-ndjson", "text/plain")


@dataclass
class Running:
    """A server in a thread of its own: the fuzzer is not asynchronous."""

    url: str = ""
    token: str = ""
    stop: Any = None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture
def server() -> Iterator[Running]:
    running, is_up = Running(), threading.Event()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with house() as home:
            await home.runtime.send("hello", session="agent:main:api:x")
            running.url, running.token = home.url, home.operator
            running.stop = lambda: loop.call_soon_threadsafe(stop.set)
            is_up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_up.wait(10)
    yield running
    running.stop()
    thread.join(10)


def calm(case: Any) -> None:
    """Keep the fuzzer from waiting, and from logging itself out."""
    if case.path == "/api/turns/{id}/wait":
        case.query = {"timeout": 0.01}
    if case.path == "/api/sessions/{key}/messages" and case.query:
        case.query.pop("wait", None)
    if case.path == "/api/tokens/{name}" and case.path_parameters.get("name") == "the operator":
        case.path_parameters["name"] = "nobody"


@pytest.mark.timeout(90)
def test_no_request_breaks_the_contract(server: Running):
    kit, known = cast("Any", schemathesis), cast("Any", checks)
    wanted = known.CHECKS.get_by_names(list(CHECKS))
    api = kit.openapi.from_url(f"{server.url}/openapi.json", headers=server.headers)
    wrong = kit.GenerationMode.NEGATIVE
    clock = SystemClock()
    until = clock.monotonic() + SECONDS
    walked: set[tuple[str, str]] = set()
    for found in api.get_all_operations():
        operation: Any = found.ok()
        if operation.path in NOT_ENDING or clock.monotonic() > until:
            continue

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )
        @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=wrong))
        def ask(case: Any) -> None:
            calm(case)
            case.call_and_validate(headers=server.headers, checks=wanted, timeout=10)

        ask()
        walked.add((operation.method.upper(), operation.path))

    assert len(walked) > 10  # as far as a slow machine comes in that time


@pytest.mark.timeout(90)
def test_no_story_of_requests_breaks_the_contract(server: Running):
    kit, known = cast("Any", schemathesis), cast("Any", checks)
    wanted = known.CHECKS.get_by_names(list(CHECKS))
    api = kit.openapi.from_url(f"{server.url}/openapi.json", headers=server.headers)
    told: list[str] = []

    talk = api.include(path_regex=TALK).exclude(path=list(NOT_ENDING))

    class Story(talk.as_state_machine()):
        """Follows the links of the document from answer to question."""

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            calm(case)
            told.append(case.operation.label)
            return {"headers": server.headers, "timeout": 30}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=wanted)

    Story.run(
        settings=settings(
            max_examples=STORIES,
            derandomize=True,
            stateful_step_count=8,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
        )
    )

    assert len(set(told)) > 5
    assert "GET /api/stimuli/{id}" in told
