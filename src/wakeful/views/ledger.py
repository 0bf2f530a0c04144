"""Look at the ledger of stimuli, newest first."""

from collections.abc import Sequence

from wakeful.access import rules
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Row, Store
from wakeful.views.pages import fitting, is_full
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.kinds import Origin, kinds_of
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, State, Stimulus


class Filter(Record):
    """Which stimuli are wanted; None: any."""

    session_key: str | None = None
    state: State | None = None
    origin: Origin | None = None


# Conditions that an index covers, each of them; what has ended is not looked at.
_UNHELD = "state IN ('pending', 'parked')"
_PARKED = "state = 'parked'"
_HELD = "state = 'held'"

_ALL = STIMULI.select("")
_SIZE = "SELECT OCTET_LENGTH(text) FROM stimuli"  # known without reading the text


class WaitingCounts(Record):
    """How many stimuli wait, in each state in which one can."""

    pending: int
    parked: int
    held: int


class LedgerView:
    """Reads stimuli; what a viewer may not see does not exist."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, stimulus_id: str, viewer: str = OPERATOR) -> Stimulus:
        rows = await self._rows(_ALL, ["id = :id"], viewer, "", id=stimulus_id)
        if not rows:
            raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
        return STIMULI.read(rows[0])

    async def attachment(self, stimulus_id: str, content_hash: str, viewer: str) -> str:
        """Return the bytes of an attachment, in base64, to whoever may see its stimulus."""
        stimulus = await self.get(stimulus_id, viewer)
        rows: Sequence[Row] = ()
        if any(kept.hash == content_hash for kept in stimulus.attachments):
            rows = await self._store.read(
                "SELECT data FROM attachments WHERE hash = :hash", hash=content_hash
            )
        if not rows:
            raise NotFound("hash", f"no attachment {content_hash[:80]!r}")
        return rows[0][0]

    async def waiting(self, viewer: str = OPERATOR) -> WaitingCounts:
        """Count what waits; it costs what waits, and nothing for the history."""
        # Joined to nothing, so that no database takes the index of a session's whole history.
        is_seen = "" if rules.sees_all(viewer) else f" AND session_key || '' IN {OWNED}"
        counts = ", ".join(
            f"(SELECT COUNT(*) FROM stimuli WHERE {state}{is_seen})"  # noqa: S608 (ours)
            for state in (_UNHELD, _PARKED, _HELD)
        )
        params = {"owner": viewer} if is_seen else {}
        ((unheld, parked, held),) = await self._store.read(f"SELECT {counts}", **params)
        return WaitingCounts(pending=unheld - parked, parked=parked, held=held)

    async def ids_of_turns(self, turn_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of every stimulus that turns took, by turn, in order."""
        rows = await self._store.read(
            "SELECT turn_id, id FROM stimuli WHERE turn_id IN :ids ORDER BY id", ids=list(turn_ids)
        )
        found: dict[str, list[str]] = {}
        for turn_id, stimulus_id in rows:
            found.setdefault(turn_id, []).append(stimulus_id)
        return found

    async def page(
        self, viewer: str, wanted: Filter, after: str | None, limit: int
    ) -> Sequence[Stimulus]:
        """Return stimuli from the newest on; `after` is the id of the last one seen.

        There are fewer than `limit` where they would not fit on a page.
        """
        conditions: list[str] = []
        params: dict[str, object] = {"limit": limit}
        if wanted.session_key is not None:
            conditions.append("session_key = :session_key")
            params["session_key"] = wanted.session_key
        if wanted.state is not None:
            conditions.append("state = :state")
            params["state"] = wanted.state.value
        if wanted.origin is not None:
            conditions.append("kind IN :kinds")
            params["kinds"] = kinds_of(wanted.origin)
        rest = "ORDER BY id DESC LIMIT :limit"
        found: list[Stimulus] = []
        while len(found) < limit and not is_full(map(size_of, found)):
            place = [] if after is None else ["id < :after"]
            where = [*place, *conditions]
            sizes = await self._rows(_SIZE, where, viewer, rest, after=after, **params)
            params["limit"] = fitting(size for (size,) in sizes)
            rows = await self._rows(_ALL, where, viewer, rest, after=after, **params)
            found += STIMULI.read_known(rows)
            if not rows or len(rows) == len(sizes) < limit:
                break
            after = rows[-1][0]  # also of one that cannot be read
            params["limit"] = limit
        return found[:limit]

    async def _rows(
        self, select: str, conditions: list[str], viewer: str, rest: str, **params: object
    ) -> Sequence[Row]:
        if not rules.sees_all(viewer):
            conditions = [*conditions, f"session_key IN {OWNED}"]
            params["owner"] = viewer
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return await self._store.read(f"{select} {where} {rest}", **params)


def size_of(stimulus: Stimulus) -> int:
    """Return how much room a stimulus takes on a page."""
    return len(stimulus.text.encode())
