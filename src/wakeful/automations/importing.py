"""Jobs of another program (nanobot's `jobs.json`), read as wishes of ours."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

from wakeful.automations.wishes import LONGEST_NAME, Wish
from wakeful.vocabulary.automation import (
    AtSchedule,
    CronSchedule,
    EverySchedule,
    PostMode,
    PostToMain,
    Schedule,
)
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.text import clean, one_line, unsteering

MOST_JOBS = 1_000  # of one import: it is one write

# Where an answer went before jobs were bound to conversations.
_LEGACY = ("deliver", "channel", "to", "channelMeta")
_THREADS = ("thread", "thread_id", "threadId", "thread_ts", "message_thread_id")
_LATEST_MS = 4_102_444_800_000  # in 2100: what lies beyond is no time

Object = dict[str, Any]


class ImportOutcome(StrEnum):
    IMPORTED = "imported"
    UNCHANGED = "unchanged"  # it was imported before
    SKIPPED = "skipped"
    BAD = "bad"


class ImportedJob(Record):
    """What became of one job of the file."""

    id: str  # that it has in the file
    name: str
    outcome: ImportOutcome
    why: str | None = None


class TheirJob(Record):
    """One job of the file: a wish, or why it is none."""

    id: str
    name: str
    outcome: ImportOutcome = ImportOutcome.IMPORTED
    why: str | None = None
    wish: Wish | None = None
    route: Route | None = None  # of one that was bound to no conversation

    @property
    def is_legacy(self) -> bool:
        return self.wish is not None and self.wish.isolated

    def report(self, outcome: ImportOutcome, why: str | None = None) -> ImportedJob:
        return ImportedJob(id=self.id, name=self.name, outcome=outcome, why=why or self.why)


class _Bad(Exception):
    """A job that cannot be read; the message says why."""


def read(jobs: Sequence[Any], sessions: Mapping[str, str], now: int) -> list[TheirJob]:
    """Read every job of a file; `sessions` says which of ours stands for each of theirs."""
    known: set[str] = set()
    found: list[TheirJob] = []
    for position, job in enumerate(jobs):
        one = _read(job, sessions, now, f"#{position + 1}")
        if one.id in known:
            one = refused(one, "another job of the file has its id")
        known.add(one.id)
        found.append(one)
    return found


def _read(job: Any, sessions: Mapping[str, str], now: int, place: str) -> TheirJob:
    if not isinstance(job, dict):
        return TheirJob(id=place, name="", outcome=ImportOutcome.BAD, why="it is no object")
    fields = cast("Object", job)
    payload = _object(fields, "payload")
    job_id = _word(fields, "id")[:200] or place
    message = _word(payload, "message")
    name = unsteering(one_line(_word(fields, "name") or message, LONGEST_NAME))
    unread = TheirJob(id=job_id, name=name, outcome=ImportOutcome.SKIPPED)
    if _word(payload, "kind") == "system_event":
        return _skipped(unread, "it is nanobot's own")
    try:
        schedule = _schedule(_object(fields, "schedule"), fields)
        key = _word(payload, "sessionKey")
        if not message.strip():
            raise _Bad("it has no message")
        if isinstance(schedule, AtSchedule) and _instant(schedule.at) <= now:
            return _skipped(unread, "its time has passed")
        session = _session(key, sessions) if key else None
    except _Bad as bad:
        return refused(unread, str(bad))
    is_legacy = session is None
    wish = Wish(
        name=name,
        schedule=schedule,
        message=message,
        session_key=session,
        isolated=is_legacy,
        post_to_main=PostToMain(mode=PostMode.NONE) if is_legacy else None,
        delete_after_run=isinstance(schedule, AtSchedule) and _truth(fields, "deleteAfterRun"),
        enabled=_truth(fields, "enabled", True),
    )
    route = _route(payload) if is_legacy else None
    return TheirJob(id=job_id, name=name, why=_ignored(payload, route, key), wish=wish, route=route)


def refused(job: TheirJob, why: str) -> TheirJob:
    """Return a job as one that cannot be taken over."""
    return TheirJob(id=job.id, name=job.name, outcome=ImportOutcome.BAD, why=why)


def _skipped(job: TheirJob, why: str) -> TheirJob:
    return TheirJob(id=job.id, name=job.name, outcome=ImportOutcome.SKIPPED, why=why)


def _session(key: str, sessions: Mapping[str, str]) -> str:
    ours = sessions.get(key)
    if ours is None:
        raise _Bad(f"say which session stands for {key[:120]!r}: map it, e.g. to main")
    return ours


def _schedule(fields: Object, job: Object) -> Schedule:
    match _word(fields, "kind"):
        case "at":
            return AtSchedule(at=_iso(_number(fields, "atMs")))
        case "every":
            every_ms = _number(fields, "everyMs")
            return EverySchedule(every_s=max(1, round(every_ms / 1000)), anchor=_anchor(job))
        case "cron":
            return CronSchedule(expr=_word(fields, "expr"), tz=_word(fields, "tz") or None)
        case kind:
            raise _Bad(f"its schedule is of no known kind: {kind[:40]!r}")


def _anchor(job: Object) -> str | None:
    """Return what an interval goes on from; what is damaged of a job's past keeps no job out."""
    for fields, name in ((_object(job, "state"), "nextRunAtMs"), (job, "createdAtMs")):
        try:
            return _iso(_number(fields, name))
        except _Bad:
            continue
    return None


def _route(payload: Object) -> Route | None:
    """Return where the answers of a job went that was bound to no conversation."""
    door, address = _word(payload, "channel"), _word(payload, "to")
    if not _truth(payload, "deliver") or not door or not address:
        return None
    meta = _object(payload, "channelMeta")
    thread = next((word for name in _THREADS if (word := _word(meta, name))), "")
    return Route(door=door, address=address, thread=thread)


def _ignored(payload: Object, route: Route | None, key: str) -> str | None:
    """Say which fields mean nothing here: a bound job answers in its conversation."""
    names = [name for name in _LEGACY if _value(payload, name) not in (None, "", False, {})]
    if not names or (route is not None and not key):
        return None
    return f"left out: {', '.join(names)}"


def _value(fields: Object, name: str) -> Any:
    """Return a field, whichever way it is spelt."""
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return fields.get(name, fields.get(snake))


def _object(fields: Object, name: str) -> Object:
    value = _value(fields, name)
    return cast("Object", value) if isinstance(value, dict) else {}


def _word(fields: Object, name: str) -> str:
    value = _value(fields, name)
    return clean(str(value)) if isinstance(value, str | int) and value is not True else ""


def _truth(fields: Object, name: str, default: bool = False) -> bool:
    value = _value(fields, name)
    return default if value is None else value is True or str(value).lower() in ("true", "1")


def _number(fields: Object, name: str) -> int:
    value = _value(fields, name)
    try:
        number = round(float(value))
    except (TypeError, ValueError, OverflowError):
        raise _Bad(f"its {name} is no number") from None
    if not 0 < number < _LATEST_MS:
        raise _Bad(f"its {name} is out of bounds")
    return number


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def _instant(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def held_back(one: ImportedJob) -> ImportedJob:
    """Return what is said of a job that waits for the others to be mended."""
    if one.outcome is not ImportOutcome.IMPORTED:
        return one
    why = "nothing was imported: others are bad"
    return ImportedJob(id=one.id, name=one.name, outcome=ImportOutcome.SKIPPED, why=why)


def are_all_good(outcomes: Iterable[ImportedJob]) -> bool:
    return all(one.outcome is not ImportOutcome.BAD for one in outcomes)
