"""What somebody wants to be done at certain times, checked: a wish becomes a job, or is refused."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict, replace

from wakeful.access.principal import Principal
from wakeful.automations import schedules
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import parse_thinking
from wakeful.vocabulary.automation import (
    AgentTurn,
    AtSchedule,
    Automation,
    AutomationLimits,
    Category,
    EverySchedule,
    Missed,
    MissedWithin,
    Overlap,
    Payload,
    PostToMain,
    Schedule,
    SystemEvent,
    WakeMode,
)
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import Trust
from wakeful.vocabulary.text import clean, is_plain, unsteering

LONGEST_NAME = 100
LONGEST_DESCRIPTION = 1_000
LONGEST_MESSAGE = 32_768
LONGEST_PREFIX = 100
LONGEST_POST = 8_000
LONGEST_ADDRESS = 1_000  # and likewise each other part of a route
PACED_TIMES = 30  # looked at: cron may be due after a minute in one hour, and then in none
DAY_S = 86_400
LONGEST_LATE_S = 10 * 366 * DAY_S
_PACED = "by an agent or somebody outside, must be at least {} s apart"

_TAKEN = (
    *("name", "description", "payload", "post_to_main", "deliver_to", "best_effort", "wake"),
    *("missed", "overlap", "timeout_s", "delete_after_run", "respect_quiet_hours"),
)

CheckModel = Callable[[str], object]  # raises InvalidInput for a name that means no model
KnowsDoor = Callable[[str], bool]  # whether something can be sent there


class Wish(Record, forbid_unknown_fields=True):
    """An automation as somebody asks for it; it runs in a session, or in one of its own."""

    name: str
    schedule: Schedule
    message: str | None = None  # short for a payload that is a turn
    payload: Payload | None = None
    session_key: str | None = None
    isolated: bool = False
    agent_id: str | None = None
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


class Edits(Record, forbid_unknown_fields=True):
    """What somebody changes of an automation; what is not given stays."""

    name: str | UnsetType = UNSET
    schedule: Schedule | UnsetType = UNSET
    message: str | UnsetType = UNSET
    payload: Payload | UnsetType = UNSET
    session_key: str | UnsetType | None = UNSET
    isolated: bool | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    post_to_main: PostToMain | UnsetType | None = UNSET
    deliver_to: Route | UnsetType | None = UNSET
    best_effort: bool | UnsetType = UNSET
    wake: WakeMode | UnsetType | None = UNSET
    missed: Missed | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    timeout_s: int | UnsetType | None = UNSET
    delete_after_run: bool | UnsetType = UNSET
    respect_quiet_hours: bool | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class Maker(Record):
    """Whose an automation is, and how far it is trusted."""

    owner: str
    trust: Trust
    name: str  # for the audit
    is_person: bool = False
    cause_id: str | None = None  # the turn that makes it
    is_agent: bool = False  # a tool of a turn: bound to its session, and not too often


def maker_of(principal: Principal) -> Maker:
    """Return whose an automation is that somebody makes, and how far it is trusted."""
    return Maker(
        owner=principal.owner,
        trust=principal.trust,
        name=principal.name,
        is_person=principal.trust is Trust.OPERATOR,
    )


def wish_of(job: Automation) -> Wish:
    """Return what somebody would ask for who wants just this job."""
    given = {name: getattr(job, name) for name in _TAKEN}
    key = None if job.is_isolated else job.session_key
    return Wish(
        **given,
        schedule=job.schedule,
        session_key=key,
        isolated=job.is_isolated,
        agent_id=job.agent_id,
        enabled=job.enabled,
    )


def changed(wish: Wish, changes: Edits) -> Wish:
    """Return a wish with what somebody changes of it."""
    given: dict[str, Any] = {
        name: value for name, value in asdict(changes).items() if value is not UNSET
    }
    if "message" in given and "payload" not in given:
        old = wish.payload
        if not isinstance(old, AgentTurn):
            raise InvalidInput("message", "it has an event, not a message: give it a payload")
        given["payload"] = replace(old, message=given.pop("message"))
    elif "message" in given:
        raise InvalidInput("message", "give it a message or a payload, not both")
    if given.get("isolated") is True and not wish.isolated:
        given.setdefault("session_key", None)
    elif given.get("session_key") is not None and wish.isolated:
        # It answers in that conversation from now on, and is of that conversation's agent.
        bound = {"isolated": False, "agent_id": None, "post_to_main": None, "deliver_to": None}
        given = {**bound, "best_effort": False, **given}
    elif given.get("session_key") is not None:
        given.setdefault("agent_id", None)
    return replace(wish, **given)


class Checks(Record):
    """What a wish is checked against."""

    limits: AutomationLimits
    check_model: CheckModel
    knows_door: KnowsDoor
    kept: Route | None = None  # that it has already: it stays, also while nothing is sent there


def checked(wish: Wish, maker: Maker, checks: Checks) -> Wish:
    """Return a wish that can be meant, with its payload; the schedule is checked apart."""
    payload = _payload(wish)
    is_event = isinstance(payload, SystemEvent)
    if (wish.session_key is None) is not wish.isolated:
        rule = "say where it runs: session_key, or isolated: true"
        raise InvalidInput("session_key", rule if not wish.isolated else "not with isolated: true")
    if wish.isolated and is_event:
        raise InvalidInput("payload", "an event needs a session: it cannot be isolated")
    if wish.isolated and maker.is_agent:
        raise InvalidInput("isolated", "a tool makes automations of its own conversation only")
    _check_answers(wish, checks)
    if wish.wake is not None and not wish.isolated and not is_event:
        raise InvalidInput("wake", "only for a system_event, or with isolated: true")
    if wish.timeout_s is not None and not 1 <= wish.timeout_s <= DAY_S:
        raise InvalidInput("timeout_s", f"must be from 1 to {DAY_S}, not {wish.timeout_s}")
    if wish.delete_after_run and not isinstance(wish.schedule, AtSchedule):
        raise InvalidInput("delete_after_run", "only for what runs once: a schedule of kind at")
    if isinstance(wish.missed, MissedWithin) and not 1 <= wish.missed.within_s <= LONGEST_LATE_S:
        rule = f"must be from 1 to {LONGEST_LATE_S}, not {wish.missed.within_s}"
        raise InvalidInput("missed.within_s", rule)
    if isinstance(payload, AgentTurn) and payload.model is not None:
        _check_model(payload.model, checks)
    return replace(
        wish,
        name=checked_name(wish.name),
        message=None,
        payload=payload,
        description=_description(wish.description),
    )


def _check_model(name: str, checks: Checks) -> None:
    try:
        checks.check_model(name)
    except InvalidInput as error:
        raise InvalidInput("payload.model", error.rule) from None


def checked_name(name: str) -> str:
    said = name.strip()
    if not said or len(said) > LONGEST_NAME or not _is_shown_as_it_is(said):
        raise InvalidInput("name", f"must have 1 to {LONGEST_NAME} characters in one line")
    return said


def _is_shown_as_it_is(line: str) -> bool:
    """Tell whether a line steers nothing where people read it, nor changes its order."""
    return is_plain(line) and unsteering(line) == line


def checked_session(key: SessionKey) -> SessionKey:
    """Return the key of a session that automations may be bound to, or refuse it."""
    if keys.parse(key).kind in (KeyKind.SUBAGENT, KeyKind.AUTOMATION):
        raise InvalidInput("session_key", f"{key!r} is no conversation of people")
    return key


def no_session(words: str) -> InvalidInput:
    """Return how a session is refused that is not there, or that is somebody else's."""
    return InvalidInput("session_key", f"no session {words[:120]!r}")


def check_pace(schedule: Schedule, now: int, least_s: int) -> None:
    """Refuse what an agent, or somebody outside, wants done more often than it may."""
    is_fixed = isinstance(schedule, EverySchedule)
    times = schedules.upcoming(schedule, now, 2 if is_fixed else PACED_TIMES)
    if any(after - before < least_s * 1_000 for before, after in pairwise(times)):
        field = "schedule.every_s" if isinstance(schedule, EverySchedule) else "schedule"
        raise InvalidInput(field, _PACED.format(least_s))


def fields_of(wish: Wish) -> dict[str, Any]:
    """Return what an automation takes over of a wish that was checked."""
    taken = {name: getattr(wish, name) for name in _TAKEN}
    if wish.isolated:
        taken["post_to_main"] = wish.post_to_main or PostToMain()
    taken["category"] = Category.ISOLATED if wish.isolated else Category.BOUND
    return taken


def _payload(wish: Wish) -> Payload:
    if (wish.message is None) is (wish.payload is None):
        raise InvalidInput("message", "give it a message or a payload, not both and not neither")
    payload = wish.payload or AgentTurn(message=wish.message or "")
    match payload:
        case AgentTurn():
            field = "payload.message" if wish.message is None else "message"
            said = _text(payload.message, field)
            thinking = payload.thinking and parse_thinking(payload.thinking, "payload.thinking")
            return replace(payload, message=said, thinking=thinking)
        case SystemEvent():
            return replace(payload, text=_text(payload.text, "payload.text"))


def _text(text: str, field: str) -> str:
    said = clean(text).strip()
    if not said or len(said) > LONGEST_MESSAGE:
        raise InvalidInput(field, f"must have 1 to {LONGEST_MESSAGE} characters")
    return said


def _description(text: str | None) -> str | None:
    said = clean(text or "").strip()
    if len(said) > LONGEST_DESCRIPTION:
        raise InvalidInput("description", f"must have at most {LONGEST_DESCRIPTION} characters")
    return said or None


def _check_answers(wish: Wish, checks: Checks) -> None:
    """Check where the answers of an isolated automation go; a bound one has its conversation."""
    given = {
        "post_to_main": wish.post_to_main is not None,
        "deliver_to": wish.deliver_to is not None,
        "best_effort": wish.best_effort,
    }
    for name, is_given in given.items():
        if is_given and not wish.isolated:
            raise InvalidInput(name, "only with isolated: true; this one answers in its session")
    post = wish.post_to_main
    if post is not None and not 1 <= post.max_chars <= LONGEST_POST:
        raise InvalidInput("post_to_main.max_chars", f"must be from 1 to {LONGEST_POST}")
    prefix = "" if post is None else post.prefix or ""
    if len(prefix) > LONGEST_PREFIX or not _is_shown_as_it_is(prefix):
        rule = f"must have at most {LONGEST_PREFIX} characters in one line"
        raise InvalidInput("post_to_main.prefix", rule)
    route = wish.deliver_to
    is_new = route is not None and route != checks.kept
    if route is not None and is_new and not (route.is_sent_to and checks.knows_door(route.door)):
        raise InvalidInput("deliver_to.door", f"no door {route.door[:80]!r} that sends is open")
    if route is not None and max(map(len, asdict(route).values())) > LONGEST_ADDRESS:
        raise InvalidInput("deliver_to", f"must have at most {LONGEST_ADDRESS} characters in each")
    if wish.best_effort and route is None:
        raise InvalidInput("best_effort", "says what a failed delivery means: give deliver_to")
