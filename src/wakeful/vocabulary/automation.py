"""Automations: scheduled input into a session, and the runs that come of it."""

from enum import StrEnum
from typing import Any, Literal

from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Trust

TEMPLATE = "cron.agent_turn.reminder"
TEMPLATE_VERSION = 1


class AtSchedule(Record, tag="at", tag_field="kind", forbid_unknown_fields=True):
    """Once."""

    at: str  # ISO 8601; without a zone, on the user's clocks


class EverySchedule(Record, tag="every", tag_field="kind", forbid_unknown_fields=True):
    """At regular times, counted from an instant: neither runs nor restarts move them."""

    every_s: int
    anchor: str | None = None  # ISO 8601; None: when it was made


class CronSchedule(Record, tag="cron", tag_field="kind", forbid_unknown_fields=True):
    """When clocks show certain times: five fields."""

    expr: str
    tz: str | None = None  # IANA; None: the user's, which is stored


Schedule = AtSchedule | EverySchedule | CronSchedule


class AgentTurn(Record, tag="agent_turn", tag_field="kind", forbid_unknown_fields=True):
    """The agent is told something, and answers."""

    message: str
    model: str | None = None
    thinking: str | None = None


class SystemEvent(Record, tag="system_event", tag_field="kind", forbid_unknown_fields=True):
    """The agent hears of something with its next heartbeat."""

    text: str


Payload = AgentTurn | SystemEvent


class Category(StrEnum):
    BOUND = "bound"  # it runs in a session of people
    ISOLATED = "isolated"  # it runs in a session of its own, each time anew
    LEGACY = "legacy"  # isolated, with the route that another program gave it
    SYSTEM = "system"  # the runtime's own


class PostMode(StrEnum):
    SUMMARY = "summary"  # one line
    FULL = "full"
    NONE = "none"


class PostToMain(Record, forbid_unknown_fields=True):
    """What the agent's main session hears of an isolated run."""

    mode: PostMode = PostMode.SUMMARY
    prefix: str | None = None  # None: the automation's name
    max_chars: int = 8000


class WakeMode(StrEnum):
    NEXT_HEARTBEAT = "next-heartbeat"
    NOW = "now"


class MissedWithin(Record, forbid_unknown_fields=True):
    """The newest missed occurrence runs if it is not older than this."""

    within_s: int


Missed = Literal["skip", "once", "all"] | MissedWithin


class Overlap(StrEnum):
    """What becomes of an occurrence while a run waits or runs."""

    SKIP = "skip"
    QUEUE = "queue"


class DisabledReason(StrEnum):
    PAUSED = "paused"
    FINISHED = "finished"  # it will never be due again
    FAILURES = "failures"  # too many in a row


class RunAnswer(Record):
    """What becomes of the answer of a run, as it was when the run was filed."""

    post_to_main: PostToMain | None = None
    best_effort: bool = False
    wakes: bool = False  # its post asks for a heartbeat


class RunCause(StrEnum):
    SCHEDULE = "schedule"
    RETRY = "retry"
    CATCH_UP = "catch-up"
    MANUAL = "manual"


class RunState(StrEnum):
    DUE = "due"
    DEFERRED = "deferred"  # until its session is idle
    PARKED = "parked"
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    MISSED = "missed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class PromptRef(Record):
    """Names the template of a prompt and the very text that was made of it."""

    id: str
    version: int
    sha256: str  # of the rendered prompt


class AutomationLimits(Record):
    """How many automations there may be, and how often they may run."""

    per_session: int = 50
    min_spacing_s: int = 60  # of those that agents and outsiders make
    from_automations: bool = False  # whether what an automation does may make others


class Automation(Record):
    """One automation, as the ledger keeps it."""

    id: str
    agent_id: str
    name: str
    category: Category
    owner: str
    trust: Trust
    by_person: bool
    session_key: str
    schedule: Schedule
    payload: Payload
    created_at: int
    updated_at: int
    cause_id: str | None = None  # the turn that made it
    description: str | None = None
    post_to_main: PostToMain | None = None
    deliver_to: Route | None = None
    best_effort: bool = False
    wake: WakeMode | None = None
    missed: Missed = "once"
    overlap: Overlap = Overlap.SKIP
    timeout_s: int | None = None
    delete_after_run: bool = False
    respect_quiet_hours: bool = False
    enabled: bool = True
    disabled_reason: DisabledReason | None = None
    revision: int = 1
    next_run_at: int | None = None
    zone_data: str | None = None
    failures_in_a_row: int = 0
    last_run_id: str | None = None
    last_run_at: int | None = None
    last_status: RunState | None = None
    last_error: str | None = None
    last_duration_ms: int | None = None
    imported_from: str | None = None

    @property
    def is_isolated(self) -> bool:
        return self.category in (Category.ISOLATED, Category.LEGACY)


class AutomationRun(Record):
    """One run, as the ledger keeps it."""

    id: str
    job_id: str
    job_name: str
    agent_id: str
    session_key: str
    cause: RunCause
    scheduled_at: int
    filed_at: int
    starts_at: int  # not before: those that make up for lost time follow each other
    late_ms: int
    revision: int
    answer: RunAnswer = RunAnswer()
    model: str | None = None  # that it wants; None: its session's
    thinking: str | None = None
    timeout_s: int | None = None
    state: RunState = RunState.DUE
    reason: str | None = None
    attempts: int = 1
    count: int = 1
    started_at: int | None = None
    ended_at: int | None = None
    stimulus_id: str | None = None
    turn_id: str | None = None
    transcript_id: str | None = None
    cost: float | None = None
    prompt_ref: PromptRef | None = None
    prompt_variables: dict[str, Any] | None = None
    rendered_prompt: str | None = None
    error: str | None = None
    traceback: str | None = None
