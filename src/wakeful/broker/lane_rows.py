"""Lane rows: one per session, locked before anything about that session is read."""

from collections.abc import Iterable, Sequence

from wakeful.broker.stimuli import NEVER, listed
from wakeful.store.database import Lock, LocksNeeded, LockSpace, Tx, Verb
from wakeful.store.rows import RowTable
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, Trust

READY = "lane.ready"  # a lane may be claimed now: its key
READY_LATER = "lane.ready_later"  # a lane may be claimed now, after those of whoever is in a hurry
DUE = "lane.due"  # a lane may be claimed later: when, in milliseconds

_HURRYING = listed(lambda rule: rule.hurries)  # as `now`

_RANK_OF_READINESS = 50  # after all other writes of a group, before the bus


class Overflow(Record):
    """What the cap dropped since the last turn; text from outside is counted, not kept."""

    count: int
    lines: tuple[str, ...]


class Lane(Record):
    """The single file of one session."""

    session_key: str
    agent_id: str
    pool: str
    owner: str | None = None
    epoch: int = 0
    seq: int = 0
    turn_id: str | None = None
    resume_at: int | None = None
    debounce_from: int | None = None
    debounce_until: int | None = None
    stopped_seq: int = 0  # nothing that people said up to this number is taken any more
    overflow: Overflow | None = None
    ready_at: int | None = None
    is_later: bool = False  # nothing waits in it but what may run later, or comes from outside


LANES = RowTable("lanes", Lane)
_INSERT = LANES.insert.replace(":epoch", "(SELECT epoch FROM lane_floor)")
LANE_LOCKS = LockSpace(
    name="lanes",
    rank=0,
    lock="SELECT session_key FROM lanes WHERE session_key IN :keys ORDER BY session_key FOR UPDATE",
)


def lock(session_key: str) -> Lock:
    """Return the lock that every transaction touching this lane takes first."""
    return Lock(LANE_LOCKS, session_key)


def require(tx: Tx, session_keys: Iterable[str]) -> None:
    """Make sure that lanes are locked, those that exist; raise LocksNeeded if one is not."""
    missing = [key for key in session_keys if not tx.holds(lock(key))]
    if missing and (known := get_all(tx, missing)):
        raise LocksNeeded(map(lock, known))


def get(tx: Tx, session_key: str) -> Lane | None:
    row = tx.one(LANES.select("WHERE session_key = :key"), key=session_key)
    return None if row is None else LANES.read(row)


def get_partly(tx: Tx, session_key: str) -> Lane | None:
    """Return a lane for whoever clears it: what cannot be read of it is None."""
    row = tx.one(LANES.select("WHERE session_key = :key"), key=session_key)
    return None if row is None else LANES.read_partly(row)


def get_all(tx: Tx, session_keys: Sequence[str]) -> dict[str, Lane]:
    rows = tx.all(LANES.select("WHERE session_key IN :keys"), keys=list(session_keys))
    return {row[0]: LANES.read(row) for row in rows}


def add_missing(tx: Tx, session_keys: Iterable[str]) -> None:
    """Make sure the lanes exist and are ours, in sorted order: two writers never deadlock.

    The update that changes nothing locks a row that another transaction made meanwhile.
    """
    wanted = sorted(session_keys)
    tx.many(
        f"{_INSERT} ON CONFLICT (session_key) DO UPDATE SET seq = lanes.seq",
        [
            LANES.params(Lane(session_key=key, agent_id=keys.agent_of(key), pool=keys.pool_of(key)))
            for key in wanted
        ],
    )
    tx.hold(map(lock, wanted))


def forget(tx: Tx, session_keys: Sequence[str]) -> None:
    """Remove lanes that nothing refers to any more; the caller holds their locks.

    Whoever still believes to own one must not be taken for the owner of a later one of that
    name: an epoch never comes twice, so new lanes begin above all those that were removed.
    """
    row = tx.one("SELECT MAX(epoch) FROM lanes WHERE session_key IN :keys", keys=list(session_keys))
    tx.run(
        "UPDATE lane_floor SET epoch = :epoch WHERE epoch < :epoch",
        epoch=(row and row[0]) or 0,
    )
    tx.run("DELETE FROM lanes WHERE session_key IN :keys", keys=list(session_keys))


def note_accepted(tx: Tx, lanes: Sequence[Lane]) -> None:
    """Keep what accepting changed: the last number, the debounce window, the overflow."""
    tx.many(
        "UPDATE lanes SET seq = :seq, debounce_from = :debounce_from, "
        "debounce_until = :debounce_until, overflow = :overflow WHERE session_key = :session_key",
        [_only(lane, "seq", "debounce_from", "debounce_until", "overflow") for lane in lanes],
    )


def claim(tx: Tx, lane: Lane, *, owner: str, turn_id: str) -> int:
    """Take the lane for a node and return the new epoch, which fences every earlier owner."""
    tx.run(
        "UPDATE lanes SET owner = :owner, epoch = epoch + 1, turn_id = :turn_id, resume_at = NULL, "
        "ready_at = NULL WHERE session_key = :key",
        key=lane.session_key,
        owner=owner,
        turn_id=turn_id,
    )
    return lane.epoch + 1


def forget_window(tx: Tx, session_key: str) -> None:
    """End the debounce window: what waited for it is taken, or gone, or need not wait."""
    tx.run(
        "UPDATE lanes SET debounce_from = NULL, debounce_until = NULL WHERE session_key = :key",
        key=session_key,
    )
    touch(tx, session_key)


def stop(tx: Tx, session_key: str) -> None:
    """Let no turn take what was said so far; what comes from now on has a higher number."""
    tx.run("UPDATE lanes SET stopped_seq = seq WHERE session_key = :key", key=session_key)


def forget_stop(tx: Tx, session_key: str) -> None:
    """Forget a stop: whatever was said before it is cancelled."""
    tx.run("UPDATE lanes SET stopped_seq = 0 WHERE session_key = :key", key=session_key)


def shorten_window(tx: Tx, session_key: str, until: int) -> None:
    """End the debounce window at an instant, unless it ends before."""
    tx.run(
        "UPDATE lanes SET debounce_until = :until "
        "WHERE session_key = :key AND debounce_until > :until",
        key=session_key,
        until=until,
    )
    touch(tx, session_key)


def forget_overflow(tx: Tx, session_key: str) -> None:
    """Forget what the cap dropped: the turn that opens now is told."""
    tx.run("UPDATE lanes SET overflow = NULL WHERE session_key = :key", key=session_key)


def release(tx: Tx, session_key: str, *, resume_at: int | None, keeps_turn: bool) -> None:
    """Give the lane back; with `keeps_turn` its turn stays open and goes on at `resume_at`."""
    tx.run(
        "UPDATE lanes SET owner = NULL, resume_at = :resume_at, "
        "turn_id = CASE WHEN :keeps = 1 THEN turn_id ELSE NULL END WHERE session_key = :key",
        key=session_key,
        resume_at=resume_at,
        keeps=int(keeps_turn),
    )
    touch(tx, session_key)


def resume(tx: Tx, session_key: str, at: int) -> None:
    """Let an open turn without a task go on."""
    tx.run(
        "UPDATE lanes SET resume_at = :at WHERE session_key = :key AND turn_id IS NOT NULL "
        "AND owner IS NULL",
        key=session_key,
        at=at,
    )
    touch(tx, session_key)


def resume_stalled(tx: Tx, session_key: str, at: int) -> None:
    """Let an open turn go on that would not by itself; one that waits for its model still does."""
    tx.run(
        "UPDATE lanes SET resume_at = :at WHERE session_key = :key AND turn_id IS NOT NULL "
        "AND owner IS NULL AND resume_at IS NULL",
        key=session_key,
        at=at,
    )
    touch(tx, session_key)


# Lanes whose turn is open, without a task, and would not go on by itself.
STALLED = (
    "SELECT session_key FROM lanes WHERE turn_id IS NOT NULL AND owner IS NULL "
    "AND resume_at IS NULL AND agent_id = :agent_id LIMIT :limit"
)
# Unowned lanes of a pool, those in a hurry or the others, the longest due first; those that are due
# in the future tell when to look again.
READY_LANES = (
    "SELECT session_key, ready_at FROM lanes WHERE pool = :pool AND owner IS NULL "
    "AND ready_at IS NOT NULL AND is_later = :is_later AND agent_id NOT IN :closed_to "
    "ORDER BY ready_at LIMIT :limit"
)
# Lanes that a node holds.
OWNED = "SELECT session_key FROM lanes WHERE owner = :owner"


def is_held(tx: Tx, session_key: str, owner: str, epoch: int) -> bool:
    """Tell whether an attempt still owns its lane; if not, it must change nothing."""
    row = tx.one("SELECT owner, epoch FROM lanes WHERE session_key = :key", key=session_key)
    return row is not None and row[0] == owner and row[1] == epoch


def touch(tx: Tx, session_key: str) -> None:
    """Have the lane's `ready_at` recomputed at the end of this transaction."""
    tx.gather(_READINESS, session_key)


def _recompute(tx: Tx, session_keys: Sequence[str]) -> Sequence[None]:
    """Work out when each lane is due; the only writer of `ready_at`.

    Strangers are never in a hurry: places are kept for whomever the agent works for. What a source
    that the operator let in calls urgent is no stranger's chatter.
    """
    rows = tx.all(
        "UPDATE lanes SET ready_at = CASE "  # noqa: S608 (words of ours)
        "WHEN owner IS NOT NULL THEN NULL "
        "WHEN turn_id IS NOT NULL THEN resume_at "
        "ELSE (SELECT MIN(CASE WHEN stimuli.is_debounced = 1 "
        "AND lanes.debounce_until > stimuli.due_at "
        "THEN lanes.debounce_until ELSE stimuli.due_at END) FROM stimuli "
        "WHERE stimuli.session_key = lanes.session_key "
        "AND stimuli.state IN ('pending', 'parked') "
        "AND stimuli.priority >= 0 AND stimuli.due_at < :never) END, "
        "is_later = CASE WHEN turn_id IS NOT NULL THEN is_later "
        "WHEN (SELECT MIN(CASE WHEN stimuli.trust = :external "
        f"AND NOT (stimuli.priority = 0 AND stimuli.kind IN ({_HURRYING})) THEN :later "
        "ELSE stimuli.priority END) FROM stimuli "
        "WHERE stimuli.session_key = lanes.session_key "
        "AND stimuli.state IN ('pending', 'parked') "
        "AND stimuli.priority >= 0 AND stimuli.due_at < :never) = :later "
        "THEN 1 ELSE 0 END "
        "WHERE session_key IN :keys RETURNING session_key, ready_at, is_later",
        keys=sorted(set(session_keys)),
        never=NEVER,
        later=int(Priority.LATER),
        external=Trust.EXTERNAL.value,
    )
    for key, ready_at, is_later in rows:
        if ready_at is None:
            continue
        if ready_at <= tx.now:
            tx.notify(READY_LATER if is_later else READY, key)
        else:
            tx.notify(DUE, str(ready_at))
    return [None] * len(session_keys)


_READINESS: Verb[str, None] = Verb("readiness", _recompute, rank=_RANK_OF_READINESS)


def _only(lane: Lane, *fields: str) -> dict[str, object]:
    params = LANES.params(lane)
    return {name: params[name] for name in ("session_key", *fields)}
