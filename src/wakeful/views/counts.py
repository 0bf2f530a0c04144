"""How much there is of everything that a badge shows, each number from an index."""

from wakeful.activity.activity import MOST_UNREAD, UNREAD, unread_of
from wakeful.bus.bus import Bus
from wakeful.store.database import Store
from wakeful.vocabulary.record import Record

MOST_COUNTED = 100_000  # of anything: nobody needs to know more exactly


def _bounded(what: str) -> str:
    return f"(SELECT COUNT(*) FROM (SELECT 1 FROM {what} LIMIT :most) AS counted)"  # noqa: S608


# What has ended is not looked at, but for deliveries that failed: they have an index of their own.
COUNTS = "SELECT " + ", ".join(
    (
        _bounded("stimuli WHERE state IN ('pending', 'parked')"),
        _bounded("stimuli WHERE state = 'parked'"),
        _bounded("stimuli WHERE state = 'held'"),
        # By the turns that are open: what they took is claimed for as long as they are.
        _bounded(
            "lanes JOIN stimuli ON stimuli.turn_id = lanes.turn_id "
            "WHERE lanes.turn_id IS NOT NULL AND stimuli.state = 'claimed'"
        ),
        _bounded("lanes WHERE turn_id IS NOT NULL"),
        _bounded("sessions"),
        _bounded("sleeps"),
        _bounded("approvals WHERE state = 'open'"),
        _bounded("automations WHERE enabled = 1"),
        _bounded("deliveries WHERE state IN ('queued', 'sent')"),
        _bounded("deliveries WHERE state = 'failed'"),
    )
)


class StimulusCounts(Record):
    """Stimuli that have not ended, by state."""

    pending: int
    held: int
    parked: int
    claimed: int


class DeliveryCounts(Record):
    """Messages that are on their way, and those that will not arrive."""

    queued: int
    failed: int


class Counts(Record):
    """How much there is of everything; whoever follows events from `cursor` on misses nothing."""

    cursor: str
    stimuli: StimulusCounts
    turns: int  # that are open
    sessions: int
    asleep: int
    unread: int  # in Activity, of all agents
    approvals: int  # that are open
    automations: int  # that are on
    deliveries: DeliveryCounts


class CountsView:
    """Counts by indexes."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def get(self) -> Counts:
        """Count; the position is read first, so that what changes meanwhile comes as an event."""
        cursor = await self._bus.head()
        (row,) = await self._store.read(COUNTS, most=MOST_COUNTED)
        unparked, parked, held, claimed, turns, sessions, asleep, *row = row
        approvals, automations, queued, failed = row
        unread = unread_of(await self._store.read(UNREAD, most=MOST_UNREAD))
        return Counts(
            cursor=cursor,
            stimuli=StimulusCounts(
                pending=unparked - parked, held=held, parked=parked, claimed=claimed
            ),
            turns=turns,
            sessions=sessions,
            asleep=asleep,
            unread=sum(unread.values()),
            approvals=approvals,
            automations=automations,
            deliveries=DeliveryCounts(queued=queued, failed=failed),
        )
