"""Notice rows: one for each kind, subject and episode, written with what caused it."""

from wakeful.bus.bus import Bus
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record


class Notice(Record):
    """A sentence of the runtime for people."""

    id: str
    kind: str
    subject: str  # whom or what it is about
    episode: str  # which time it happened
    agent_id: str | None  # whose Activity it belongs to; None: everybody's
    text: str
    created_at: int
    session_key: str | None = None  # that it is about, if one is


NOTICE_STATE = "told"  # the state of a notice, among the states of turns

NOTICES = RowTable("notices", Notice)

_ADD = f"{NOTICES.insert} ON CONFLICT (kind, subject, episode) DO NOTHING"
_LAST = NOTICES.select("WHERE kind = :kind AND subject = :subject ORDER BY id DESC LIMIT 1")


class Notices:
    """Writes notices; each in the transaction of its cause."""

    def __init__(self, bus: Bus, ids: Ids) -> None:
        self._bus = bus
        self._ids = ids

    def add(
        self,
        tx: Tx,
        kind: str,
        subject: str,
        episode: str,
        text: str,
        agent_id: str | None = None,
        *,
        session_key: str | None = None,
    ) -> bool:
        """Tell people something; False if they know it already."""
        notice = Notice(
            id=self._ids.new("no"),
            kind=kind,
            subject=subject,
            episode=episode,
            agent_id=agent_id,
            text=text,
            created_at=tx.now,
            session_key=session_key,
        )
        if not tx.run(_ADD, **NOTICES.params(notice)):
            return False
        self._bus.publish(tx, "notice.added", id=notice.id, kind=kind, subject=subject, text=text)
        # Of no session: whoever may watch that session need not be told what people are.
        self._bus.publish(
            tx,
            "activity.message",
            agent_id=agent_id,
            origin=Origin.SYSTEM.value,
            source=kind,
            state=NOTICE_STATE,
            text=text,
        )
        return True

    def add_once_in(
        self,
        tx: Tx,
        period_ms: int,
        kind: str,
        subject: str,
        text: str,
        agent_id: str | None = None,
    ) -> bool:
        """Tell people something, unless they were told within a period.

        The episode is named after the notice before it, so that of two who tell at the same
        time, in two lanes or on two nodes, one does.
        """
        row = tx.one(_LAST, kind=kind, subject=subject)
        last = None if row is None else NOTICES.read(row)
        # Slightly in the future: another node's clock. Far in the future: our clock was moved back.
        if last is not None and abs(tx.now - last.created_at) < period_ms:
            return False
        episode = "" if last is None else f"after {last.id}"
        return self.add(tx, kind, subject, episode, text, agent_id)


def prune(tx: Tx, before: int, limit: int) -> str | None:
    """Forget what people were told before an instant; None when done."""
    gone = tx.run(
        "DELETE FROM notices WHERE id IN "
        "(SELECT id FROM notices WHERE created_at < :before LIMIT :limit)",
        before=before,
        limit=limit,
    )
    return "more" if gone == limit else None
