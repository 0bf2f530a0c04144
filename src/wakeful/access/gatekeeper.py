"""The gatekeeper: from a secret to a principal, quickly and without telling time by it."""

import hmac
from collections import Counter, OrderedDict, deque
from collections.abc import Callable

from wakeful.access import tokens
from wakeful.access.principal import Principal
from wakeful.access.tokens import TOKENS, Token
from wakeful.store.database import Store
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import TooOften

REMEMBERED = 1024  # credentials kept at hand
FRESH_S = 1.0  # how long without asking the ledger; a revocation here is seen at once

FAILURES = 20  # wrong secrets per address and window before it is told to wait
WINDOW_S = 60.0
ADDRESSES = 10_000

SESSIONS_PER_HOUR = 60  # that one token may make
MEGABYTES_PER_DAY = 500  # that one token may send
HOUR_S = 3600.0
DAY_HOURS = 24

# By the index of the times, which has at most an hour to look through.
_MADE_SINCE = (
    "SELECT created_at FROM sessions WHERE created_at > :since AND owner = :owner "
    "ORDER BY created_at"
)


class Gatekeeper:
    """Knows credentials; forgets them the moment one is changed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[Token, float]] = OrderedDict()
        self._changes = 0
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self._open: dict[str, set[Callable[[], object]]] = {}
        self.sessions_per_hour = SESSIONS_PER_HOUR
        self.megabytes_per_day = MEGABYTES_PER_DAY
        self._sent: dict[str, Counter[int]] = {}  # bytes of each token, by the hour
        self._made: dict[str, deque[float]] = {}  # when each token made its latest sessions
        self._posts: dict[str, deque[float]] = {}  # when each source of the inbox posted lately
        store.listen(tokens.CHANGED, self._changed)

    async def by_secret(self, secret: str) -> Principal | None:
        """Return who a bearer secret stands for."""
        secret_hash = tokens.digest(secret)
        token = await self._find(secret_hash, tokens.OF_SECRET)
        if token is None or not hmac.compare_digest(token.hash, secret_hash):
            return None
        return self._principal(token)

    async def by_cookie(self, cookie: str) -> Principal | None:
        """Return who a console's cookie stands for."""
        token = await self._find(tokens.digest(cookie), tokens.OF_COOKIE)
        return None if token is None else self._principal(token)

    def failed(self, address: str) -> float | None:
        """Count a wrong secret; return how many seconds to wait, if there were too many."""
        now = self._clock.monotonic()
        recent = [at for at in self._failures.pop(address, []) if at > now - WINDOW_S]
        recent.append(now)
        self._failures[address] = recent[-FAILURES - 1 :]
        while len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)
        if len(recent) <= FAILURES:
            return None
        return recent[0] + WINDOW_S - now

    async def make_session(self, principal: Principal) -> None:
        """Count a session that a token is about to make, or refuse it: each is a lane and a turn.

        Counted whatever becomes of it: one that was deleted was made all the same. Those from
        before the start of this process are read from the ledger, once for each token.
        """
        if principal.is_operator or not principal.token_id:
            return
        made = self._made.get(principal.token_id)
        if made is None:
            earlier = await self._made_earlier(principal.owner)
            made = self._made.setdefault(principal.token_id, earlier)
        now = self._clock.monotonic()
        while made and made[0] <= now - HOUR_S:
            made.popleft()
        if len(made) >= self.sessions_per_hour:
            rule = f"a token makes at most {self.sessions_per_hour} sessions in an hour"
            raise TooOften(rule, retry_after_s=made[0] + HOUR_S - now)
        made.append(now)

    def take_bytes(self, principal: Principal, size: int) -> None:
        """Count what a token sends, or refuse it: whatever is said is kept.

        Counted by this process, and forgotten with it.
        """
        if principal.is_operator or not principal.token_id:
            return
        hours = self._clock.monotonic() / HOUR_S
        sent = self._sent.setdefault(principal.token_id, Counter())
        for hour in [hour for hour in sent if hour <= hours - DAY_HOURS]:
            del sent[hour]
        if sent.total() + size > self.megabytes_per_day * 1_000_000:
            rule = f"a token sends at most {self.megabytes_per_day} megabytes in a day"
            left = min(sent, default=int(hours)) + DAY_HOURS - hours
            raise TooOften(rule, retry_after_s=max(1.0, left * HOUR_S))
        sent[int(hours)] += size

    def take_post(self, source: str, per_minute: int) -> None:
        """Count what a source posts to the inbox, or refuse it; 0: as much as it likes.

        Counted by this process, and forgotten with it.
        """
        if not per_minute:
            self._posts.pop(source, None)
            return
        now = self._clock.monotonic()
        recent = self._posts.setdefault(source, deque())
        while recent and recent[0] <= now - WINDOW_S:
            recent.popleft()
        if len(recent) >= per_minute:
            rule = f"{source!r} posts in a minute at most {per_minute}"
            raise TooOften(rule, retry_after_s=recent[0] + WINDOW_S - now)
        recent.append(now)

    async def _made_earlier(self, owner: str) -> deque[float]:
        """Return when the sessions of the last hour were made, by the clock that never jumps."""
        wall, now = self._clock.now(), self._clock.monotonic()
        since = wall - round(HOUR_S * 1000)
        rows = await self._store.read(_MADE_SINCE, owner=owner, since=since)
        return deque(now - max(0, wall - at) / 1000 for (at,) in rows)

    def while_valid(self, principal: Principal, close: Callable[[], object]) -> Callable[[], None]:
        """Call `close` when the token is revoked or expires; returns the undo.

        Whoever calls this must then ask `is_valid`: the token may have gone in between.
        """
        group = self._open.setdefault(principal.token_id, set())
        group.add(close)
        alarm = None
        if principal.expires_at is not None:
            left_s = max(0, principal.expires_at - self._clock.now()) / 1000
            alarm = self._clock.call_later(left_s, close)

        def undo() -> None:
            group.discard(close)
            if not group and self._open.get(principal.token_id) is group:
                del self._open[principal.token_id]
            if alarm is not None:
                alarm.cancel()

        return undo

    async def is_valid(self, token_id: str) -> bool:
        """Ask the ledger whether a token may still be used."""
        rows = await self._store.read(tokens.OF_ID, id=token_id)
        return bool(rows) and TOKENS.read(rows[0]).is_valid(self._clock.now())

    def _principal(self, token: Token) -> Principal | None:
        return token.principal() if token.is_valid(self._clock.now()) else None

    async def _find(self, secret_hash: str, sql: str) -> Token | None:
        known = self._known.get((sql, secret_hash))
        if known is not None and known[1] > self._clock.monotonic():
            return known[0]
        while True:
            changes = self._changes
            # Read, not written: whoever looks or stops must get in while nobody can write.
            rows = await self._store.read(sql, hash=secret_hash, now=self._clock.now())
            # What was read before a revocation must not be remembered after it.
            if changes == self._changes:
                break
        token = TOKENS.read(rows[0]) if rows else None
        self._known.pop((sql, secret_hash), None)
        if token is not None:
            self._known[sql, secret_hash] = (token, self._clock.monotonic() + FRESH_S)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return token

    def _changed(self, token_id: str) -> None:
        self._changes += 1
        self._known.clear()
        for close in tuple(self._open.get(token_id, ())):
            close()
