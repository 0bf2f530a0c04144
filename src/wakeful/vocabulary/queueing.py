"""How a session treats what arrives while it is busy: queue modes as three fields."""

from enum import StrEnum
from typing import Literal

from msgspec.structs import replace

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record, fitting


class Mode(StrEnum):
    STEER = "steer"
    FOLLOWUP = "followup"
    COLLECT = "collect"
    STEER_BACKLOG = "steer-backlog"
    QUEUE = "queue"
    INTERRUPT = "interrupt"


class Drop(StrEnum):
    OLD = "old"  # the oldest waiting one goes
    NEW = "new"  # the arriving one goes
    SUMMARIZE = "summarize"  # the oldest goes, one line of it is kept for the next turn


class ModeRule(Record):
    """What a mode means, field by field."""

    while_running: Literal["steer", "steer-if-able", "queue", "interrupt"]
    drain: Literal["together", "one-each", "collected"]
    debounces: bool  # the first stimuli of an idle lane wait for the debounce window
    debounces_drain: bool  # so do those that waited for a turn to end


RULES: dict[Mode, ModeRule] = {
    Mode.STEER: ModeRule(
        while_running="steer", drain="together", debounces=True, debounces_drain=False
    ),
    Mode.FOLLOWUP: ModeRule(
        while_running="queue", drain="one-each", debounces=True, debounces_drain=True
    ),
    Mode.COLLECT: ModeRule(
        while_running="queue", drain="collected", debounces=True, debounces_drain=True
    ),
    Mode.STEER_BACKLOG: ModeRule(
        while_running="steer-if-able", drain="together", debounces=True, debounces_drain=False
    ),
    Mode.QUEUE: ModeRule(
        while_running="queue", drain="one-each", debounces=False, debounces_drain=False
    ),
    Mode.INTERRUPT: ModeRule(
        while_running="interrupt", drain="together", debounces=True, debounces_drain=False
    ),
}


class QueueSettings(Record):
    """A session's queue settings, all known."""

    mode: Mode = Mode.STEER
    debounce_ms: int = 0
    debounce_max_ms: int = 5000  # since the first stimulus of a window
    cap: int = 20  # waiting messages of people and agents
    drop: Drop = Drop.SUMMARIZE


class QueueOverrides(Record):
    """Queue settings of one level; what is None is left to the level below."""

    mode: Mode | None = None
    debounce_ms: int | None = None
    debounce_max_ms: int | None = None
    cap: int | None = None
    drop: Drop | None = None

    def under(self, stronger: "QueueOverrides") -> "QueueOverrides":
        """Return these settings with each key that a stronger level has in its place."""
        given = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(stronger, name)) is not None
        }
        return replace(self, **given)


DEFAULTS = QueueSettings()
NO_OVERRIDES = QueueOverrides()


def resolve(*levels: QueueOverrides | None) -> QueueSettings:
    """Return the settings of the first level that has each key, the strongest level first."""
    known: dict[str, object] = {}
    for level in levels:
        if level is None or level is NO_OVERRIDES:
            continue
        for field in QueueOverrides.__struct_fields__:
            value = getattr(level, field)
            if value is not None and field not in known:
                known[field] = value
    return QueueSettings(**known) if known else DEFAULTS  # pyright: ignore[reportArgumentType]


def never_joining(settings: QueueSettings) -> QueueSettings:
    """Return the settings for what may not join a running turn, though it may end it."""
    if not RULES[settings.mode].while_running.startswith("steer"):
        return settings
    return QueueSettings(
        mode=Mode.QUEUE,
        debounce_ms=settings.debounce_ms,
        debounce_max_ms=settings.debounce_max_ms,
        cap=settings.cap,
        drop=settings.drop,
    )


def checked(settings: QueueOverrides, field: str = "queue") -> QueueOverrides:
    """Return the settings, or refuse the first bad word or number among them."""
    settings = fitting(settings, f"{field}.")
    bounds = {"debounce_ms": (0, 3_600_000), "debounce_max_ms": (0, 3_600_000), "cap": (1, 10_000)}
    for name, (low, high) in bounds.items():
        value: int | None = getattr(settings, name)
        if value is not None and not low <= value <= high:
            raise InvalidInput(f"{field}.{name}", f"must be from {low} to {high}, not {value}")
    return settings
