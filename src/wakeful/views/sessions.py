"""Look at sessions: which there are, and whose they are."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

from wakeful.access import rules
from wakeful.store.database import Row, Store
from wakeful.transcript.sessions import DELETED, SESSIONS, Session
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.stimulus import OPERATOR

REMEMBERED = 4096  # owners kept at hand

# By creation a page never skips one that was used meanwhile; by use people find theirs.
Order = Literal["created", "used"]
_COLUMNS: dict[Order, str] = {
    "created": "created_at",
    "used": "COALESCE(last_write_at, created_at)",
}
_CREATED_AT = SESSIONS.fields.index("created_at")
_USED_AT = SESSIONS.fields.index("last_write_at")
_OWNER = SESSIONS.fields.index("owner")

# The second half is always true; it lets the database use its index of owned sessions.
OWNED = "(SELECT key FROM sessions WHERE owner = :owner AND owner <> 'operator')"


class SessionView:
    """Reads sessions; what a viewer (the name of an owner) may not see does not exist."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners: OrderedDict[str, str] | None = None  # None: nobody asked for one yet
        self._deletions = 0

    async def get(self, key: str, viewer: str = OPERATOR) -> Session:
        rows = await self._store.read(SESSIONS.select("WHERE key = :key"), key=key)
        # First of all, so that nobody learns from what cannot be read that it is there.
        if not rows or not rules.sees(viewer, rows[0][_OWNER]):
            raise NotFound("session", f"no session {key!r}")
        return SESSIONS.read(rows[0])

    async def is_operators(self, key: str) -> bool:
        """Tell whether the operator made a session."""
        owner = await self.owner_of(key)
        return owner is not None and rules.sees_all(owner)

    async def owner_of(self, key: str) -> str | None:
        """Return who made a session; an owner never changes as long as there is the session."""
        if self._owners is None:
            self._owners = OrderedDict()
            self._store.listen(DELETED, self._forget)
        known = self._owners.get(key)
        if known is not None:
            return known
        deletions = self._deletions
        rows = await self._store.read("SELECT owner FROM sessions WHERE key = :key", key=key)
        if not rows:
            return None
        if deletions == self._deletions:  # else it may be gone since it was read
            self._owners[key] = rows[0][0]
            while len(self._owners) > REMEMBERED:
                self._owners.popitem(last=False)
        return rows[0][0]

    async def last_owner_of(self, key: str) -> str | None:
        """Return who made a session, or, when it was deleted, whose it was."""
        owner = await self.owner_of(key)
        if owner is not None:
            return owner
        rows = await self._store.read(
            "SELECT owner FROM deleted_sessions WHERE key = :key", key=key
        )
        return rows[0][0] if rows else None

    def _forget(self, key: str) -> None:
        self._deletions += 1
        if self._owners is not None:
            self._owners.pop(key, None)

    async def of_agent(
        self,
        agent_id: str,
        viewer: str,
        *,
        kinds: Sequence[str] = (),
        active_since: int | None = None,
        limit: int,
    ) -> Sequence[Session]:
        """Return an agent's sessions, the one that was written to last first.

        A kind is the first word of a key after its agent: `main`, `web`, `api`.
        """
        conditions = ["agent_id = :agent_id"]
        params: dict[str, object] = {"agent_id": agent_id, "limit": limit}
        if not rules.sees_all(viewer):
            conditions.append(f"key IN {OWNED}")
            params["owner"] = viewer
        if active_since is not None:
            conditions.append("last_write_at >= :since")
            params["since"] = active_since
        starts = [f"agent:{agent_id}:{kind}" for kind in kinds]
        for number, start in enumerate(starts):
            params |= {f"kind{number}": start, f"start{number}": f"{start}:"}
        if starts:
            fits = (
                f"key = :kind{number} OR SUBSTR(key, 1, {len(start) + 1}) = :start{number}"
                for number, start in enumerate(starts)
            )
            conditions.append(f"({' OR '.join(fits)})")
        rows = await self._store.read(
            SESSIONS.select(
                f"WHERE {' AND '.join(conditions)} "
                "ORDER BY COALESCE(last_write_at, created_at) DESC, key LIMIT :limit"
            ),
            **params,
        )
        return SESSIONS.read_known(rows)

    async def page(
        self, viewer: str, after: str | None, limit: int, order: Order = "created"
    ) -> Sequence[Session]:
        """Return sessions, the newest first; `after` is the `place` of the last one seen."""
        found: list[Session] = []
        while len(found) < limit:
            rows = await self._rows(viewer, after, limit, order)
            found += SESSIONS.read_known(rows)
            if len(rows) < limit:
                break
            last = rows[-1]  # also one that cannot be read
            at = last[_CREATED_AT] if order == "created" else last[_USED_AT] or last[_CREATED_AT]
            after = f"{at}.{last[0]}"
        return found[:limit]

    async def _rows(
        self, viewer: str, after: str | None, limit: int, order: Order
    ) -> Sequence[Row]:
        column = _COLUMNS[order]
        conditions: list[str] = []
        params: dict[str, object] = {"limit": limit}
        if not rules.sees_all(viewer):
            conditions.append(f"key IN {OWNED}")
            params["owner"] = viewer
        if after is not None:
            created_at, key = _place(after)
            conditions.append(f"({column} < :at OR ({column} = :at AND key < :key))")
            params |= {"at": created_at, "key": key}
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return await self._store.read(
            SESSIONS.select(f"{where} ORDER BY {column} DESC, key DESC LIMIT :limit"),
            **params,
        )


def place(session: Session, order: Order = "created") -> str:
    """Return the cursor after this session."""
    used_at = session.last_write_at or session.created_at
    return f"{session.created_at if order == 'created' else used_at}.{session.key}"


def _place(cursor: str) -> tuple[int, str]:
    at, _, key = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < 16):
        raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return int(at), key
