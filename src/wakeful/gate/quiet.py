"""Quiet hours: only people and what is urgent wake an agent, by the settings or by hand."""

from typing import Literal

from wakeful.gate.days import Days
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.hours import DailyHours
from wakeful.vocabulary.record import Record

PARKED = "quiet-hours"  # why something is parked
LIFTED = "quiet-hours-lifted"  # why it waits no longer


class QuietRow(Record):
    """The operator's word about one agent; it counts until an instant."""

    agent_id: str
    is_quiet: bool  # False: the hours that the settings name are over before their time
    since: int
    until: int


class QuietPeriod(Record):
    """A time in which an agent is left in peace; it may be still to come."""

    since: int
    until: int
    by: Literal["settings", "operator"]


class QuietStatus(Record):
    """Whether an agent is left in peace now, until when, and by whose word."""

    is_quiet: bool
    until: int | None = None
    by: Literal["settings", "operator"] | None = None


ROWS = RowTable("quiet", QuietRow)
ALL = ROWS.select("")
OF_AGENT = ROWS.select("WHERE agent_id = :agent_id")


class QuietHours:
    """Tells when agents are quiet, by their settings and the operator's word."""

    def __init__(self, agents: Agents, days: Days) -> None:
        self._agents = agents
        self.days = days  # whose zone is the user's

    def hours_of(self, agent_id: str) -> DailyHours | None:
        config = self._agents.find(agent_id)
        return None if config is None else config.quiet_hours

    def now_in(self, tx: Tx, agent_id: str) -> QuietPeriod | None:
        """Return the quiet that an agent has now, None if it has none."""
        return of_now(self.period_in(tx, agent_id), tx.now)

    def period_in(self, tx: Tx, agent_id: str) -> QuietPeriod | None:
        """Return the quiet that an agent has now, or else has next, as far as is known."""
        return self.period(agent_id, get(tx, agent_id), tx.now)

    def period(self, agent_id: str, row: QuietRow | None, now: int) -> QuietPeriod | None:
        """Return the same, from a row that was read."""
        word = None if row is None or row.until <= now else row
        hours, zone = self.hours_of(agent_id), self.days.zone
        if word is not None and word.is_quiet:
            until = word.until
            if hours is not None and hours.cover(until, zone):
                until = hours.span(until, zone).end  # where it ends, theirs go on
            return QuietPeriod(since=word.since, until=until, by="operator")
        if hours is None:
            return None
        span = hours.span(now if word is None else word.until, zone)
        return QuietPeriod(since=span.start, until=span.end, by="settings")

    def begin(self, tx: Tx, agent_id: str, until: int) -> None:
        """Keep an agent quiet until an instant, by the operator's word."""
        _put(tx, QuietRow(agent_id=agent_id, is_quiet=True, since=tx.now, until=until))

    def end(self, tx: Tx, agent_id: str) -> None:
        """End an agent's quiet, also that of its settings; their next hours count again."""
        hours, zone = self.hours_of(agent_id), self.days.zone
        if hours is None or not hours.cover(tx.now, zone):
            forget(tx, agent_id)
            return
        until = hours.span(tx.now, zone).end
        _put(tx, QuietRow(agent_id=agent_id, is_quiet=False, since=tx.now, until=until))


def of_now(period: QuietPeriod | None, now: int) -> QuietPeriod | None:
    return None if period is None or period.since > now else period


def status_of(period: QuietPeriod | None) -> QuietStatus:
    if period is None:
        return QuietStatus(is_quiet=False)
    return QuietStatus(is_quiet=True, until=period.until, by=period.by)


def get(tx: Tx, agent_id: str) -> QuietRow | None:
    row = tx.one(OF_AGENT, agent_id=agent_id)
    return None if row is None else ROWS.read(row)


def forget(tx: Tx, agent_id: str) -> None:
    """Forget the operator's word."""
    tx.run("DELETE FROM quiet WHERE agent_id = :agent_id", agent_id=agent_id)


def forget_past(tx: Tx, agent_id: str) -> None:
    """Forget the operator's word if it counts no longer."""
    tx.run(
        "DELETE FROM quiet WHERE agent_id = :agent_id AND until <= :now",
        agent_id=agent_id,
        now=tx.now,
    )


def _put(tx: Tx, row: QuietRow) -> None:
    tx.run(
        f"{ROWS.insert} ON CONFLICT (agent_id) DO UPDATE SET is_quiet = :is_quiet, "
        "since = :since, until = :until",
        **ROWS.params(row),
    )
