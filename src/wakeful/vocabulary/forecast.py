"""A forecast: what the schedule alone will do, as far as it is determined."""

from enum import StrEnum

from wakeful.vocabulary.record import Record

DAY_MS = 86_400_000
MOST_DAYS = 31
USUAL_DAYS = 7


class Basis(StrEnum):
    """Where an assumption comes from."""

    HISTORY = "history"  # turns of the last 30 days
    ESTIMATE = "estimate"  # there were too few


class Assumption(Record):
    """What one turn is taken to be; its cost is in US dollars, None where nobody knows it."""

    agent_id: str
    source: str
    turn_s: float
    input: int
    output: int
    cost: float | None
    basis: Basis


class ForecastRow(Record):
    """What comes of one source of an agent."""

    agent_id: str
    source: str  # tick, heartbeat, wake, cron:NAME, digest, or the origin of what waits already
    fires: int = 0
    turns: int = 0
    suppressed: dict[str, int] = {}
    parked: int = 0
    deferred: int = 0
    collisions: int = 0  # another source was due in the session within one assumed turn
    calls: int = 0
    input: int = 0
    output: int = 0
    money_p50: float = 0.0
    money_p90: float = 0.0
    unpriced: int = 0  # calls of which nobody knows the price


class What(StrEnum):
    """What happens; what comes of a fire at once stands behind it."""

    FIRE = "fire"
    TURN = "turn"
    DEFERRED = "deferred"  # until the session is idle
    SUPPRESSED = "suppressed"
    PARKED = "parked"
    DIGEST = "digest"  # the fire that shows what is held


class Happening(Record, gc=False):
    """One line of the time to come; there may be a hundred thousand."""

    at: int
    session_key: str
    source: str
    what: What
    reason: str | None = None
    until: int | None = None


class Forecast(Record):
    """What will happen from now until an instant, if nobody writes and nothing fails."""

    since: int
    until: int
    zone: str
    assumptions: tuple[Assumption, ...]
    rows: tuple[ForecastRow, ...]
    timeline: tuple[Happening, ...]
