"""Look at the ledger of stimuli, newest first."""

from collections.abc import Sequence

from wakeful.access import rules
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Row, Store
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Origin, State, Stimulus


class Filter(Record):
    """Which stimuli are wanted; None: any."""

    session_key: str | None = None
    state: State | None = None
    origin: Origin | None = None


ANY = Filter()


class LedgerView:
    """Reads stimuli; what a viewer may not see does not exist."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, stimulus_id: str, viewer: str = OPERATOR) -> Stimulus:
        found = await self._select(["id = :id"], viewer, "", id=stimulus_id)
        if not found:
            raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
        return found[0]

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

    async def of_turn(self, turn_id: str) -> Sequence[Stimulus]:
        """Return every stimulus that a turn took, in order."""
        return await self._select(["turn_id = :turn_id"], OPERATOR, "ORDER BY id", turn_id=turn_id)

    async def page(
        self, viewer: str, wanted: Filter, after: str | None, limit: int
    ) -> Sequence[Stimulus]:
        """Return stimuli from the newest on; `after` is the id of the last one seen."""
        conditions: list[str] = ["id < :after"] if after is not None else []
        params: dict[str, object] = {"after": after} if after is not None else {}
        for field in wanted.__struct_fields__:
            if (value := getattr(wanted, field)) is not None:
                conditions.append(f"{field} = :{field}")
                params[field] = str(value)
        rest = "ORDER BY id DESC LIMIT :limit"
        return await self._select(conditions, viewer, rest, limit=limit, **params)

    async def _select(
        self, conditions: list[str], viewer: str, rest: str, **params: object
    ) -> list[Stimulus]:
        if not rules.sees_all(viewer):
            conditions = [*conditions, f"session_key IN {OWNED}"]
            params["owner"] = viewer
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = await self._store.read(STIMULI.select(f"{where} {rest}"), **params)
        return [STIMULI.read(row) for row in rows]
