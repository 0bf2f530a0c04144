"""Automations in tests: make one, let its time come, look at what came of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.conformance.engine.conftest import SettingsFor
from wakeful.automations.runs import RUNS
from wakeful.automations.wishes import Maker, Wish
from wakeful.doors.sender import Door
from wakeful.models.model import Model, Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing import kit
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted, wait_for
from wakeful.turn.agent import Agent
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.automation import Automation, AutomationRun
from wakeful.vocabulary.clock import SystemClock, time_limit
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.stimulus import OPERATOR, Trust

MAIN = "agent:main:main"
NOON = 1_790_000_000_000 // 86_400_000 * 86_400_000 + 12 * 3_600_000
HOUR_S = 3_600
HOUR_MS = HOUR_S * 1_000
ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name=OPERATOR, is_person=True)
PATIENT = Limits(
    first_token_s=864_000,
    idle_s=864_000,
    answer_s=864_000,
    wall_s=864_000,
    automation_wall_s=864_000,
)

_WAITING = ("due", "deferred", "parked")
_ENDED = ("ok", "error", "skipped", "missed", "cancelled", "expired")


def agent(model: Model, **fields: Any) -> Agent:
    """Return the agent `main`, which nothing wakes but its automations."""
    known: dict[str, Any] = {"heartbeat": NO_HEARTBEAT, "limits": PATIENT, **fields}
    return Agent(model=model, **known)


def running(
    settings_for: SettingsFor,
    model: Model,
    clock: ManualClock,
    *,
    doors: Mapping[str, Door] | None = None,
    agents: list[Agent] | None = None,
    **fields: Any,
) -> Runtime:
    settings: Settings = replace(settings_for(), timezone="UTC", **fields)
    known = [agent(model)] if agents is None else agents
    return Runtime(agents=known, clock=clock, settings=settings, doors=doors)


async def add(runtime: Runtime, name: str = "report", **fields: Any) -> Automation:
    """Make an automation: every hour, in `main`, unless the fields say otherwise."""
    known: dict[str, Any] = {
        "name": name,
        "schedule": {"kind": "every", "every_s": HOUR_S},
        "message": "write the report",
        **({} if fields.get("isolated") else {"session_key": "main"}),
        **fields,
    }
    if "payload" in known:
        del known["message"]
    return await runtime.services.automations.add(msgspec.convert(known, Wish), ME)


async def job_of(runtime: Runtime, name: str = "report") -> dict[str, Any] | None:
    """Return the row of an automation."""
    columns = "id, enabled, disabled_reason, next_run_at, failures_in_a_row, last_status, revision"
    rows = await runtime.store.read(
        f"SELECT {columns} FROM automations WHERE name = :name",
        name=name,
    )
    return dict(zip(columns.split(", "), rows[0], strict=True)) if rows else None


async def runs_of(runtime: Runtime, name: str | None = None) -> list[AutomationRun]:
    """Return the rows of all runs, in the order in which they were filed."""
    rows = await runtime.store.read(RUNS.select("ORDER BY scheduled_at, filed_at, id"))
    return [run for run in map(RUNS.read, rows) if name in (None, run.job_name)]


async def ended(runtime: Runtime, count: int = 1, *, name: str | None = None) -> list[Event]:
    """Wait until so many runs have come to their end, since the beginning of the ledger."""
    found: list[Event] = []

    def is_last(event: Event) -> bool:
        if name in (None, event.data.get("name")):
            found.append(event)
        return len(found) == count

    await wait_for_any(runtime, [f"automation.{state}" for state in _ENDED], is_last)
    return found


async def filed(runtime: Runtime, count: int = 1) -> Event:
    """Return the event of the run that was filed as the so-manieth and did not end at once."""
    found: list[Event] = []

    def is_last(event: Event) -> bool:
        if event.data["run_id"] not in {known.data["run_id"] for known in found}:
            found.append(event)
        return len(found) == count

    return await wait_for_any(runtime, [f"automation.{state}" for state in _WAITING], is_last)


async def happened(runtime: Runtime, what: str, count: int = 1) -> Event:
    """Return the event that was the so-manieth of its kind."""
    seen = 0

    def is_last(_event: Event) -> bool:
        nonlocal seen
        seen += 1
        return seen == count

    return await wait_for(runtime, what, is_last)


async def wait_for_any(
    runtime: Runtime, kinds: Sequence[str], where: Callable[[Event], bool]
) -> Event:
    """Return the first event of these kinds that passes a test, since the ledger began."""
    start = (await runtime.cursor()).rpartition("-")[0] + "-0"
    async with time_limit(SystemClock(), kit.PATIENCE_S):
        async for event in runtime.subscribe(topics=kinds, since=start):
            if where(event):
                return event
    raise AssertionError("the subscription ended")


async def lines(runtime: Runtime, session: str = "main") -> list[Entry]:
    return list(await runtime.entries(session))


async def texts(runtime: Runtime, session: str = "main") -> list[str]:
    """Return what people read of a session, with the kind of each entry."""
    found: list[str] = []
    for entry in await lines(runtime, session):
        body: Any = entry.content()
        text = getattr(body, "text", None)
        found.append(f"{entry.kind}: {body.message.text if text is None else text}")
    return found


def said(request: Request) -> list[str]:
    """Return what a model was told, each message of people or of the runtime."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)]


def talks(_request: Request) -> str:
    return "well"


def talking() -> Scripted:
    return Scripted(talks)


class Letters:
    """A door that keeps what it is given, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.sent: list[tuple[str, str]] = []

    async def __call__(self, delivery: Any) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((delivery.route.address, delivery.text))
