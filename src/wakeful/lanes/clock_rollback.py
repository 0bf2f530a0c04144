"""After the wall clock was moved back: what was due stays due, what waited waits no longer.

Instants in the ledger were written by the clock as it was then. What its sender wished for later
keeps its instant; what merely waited a moment (a window, another try) must not wait for as long
as the clock was moved.
"""

import logging

from wakeful.broker import lane_rows, stimuli
from wakeful.store.database import Store, Tx
from wakeful.turns import turns
from wakeful.vocabulary.errors import UnreadableRow

STEP = 500  # lanes looked for at once

log = logging.getLogger(__name__)

# Lanes with a message that nobody wished for later, or with a window or a turn from the future.
_BELATED = (
    "SELECT session_key FROM (SELECT session_key FROM stimuli "
    "WHERE state IN ('pending', 'parked') AND state = 'pending' AND due_at > :now "
    "AND not_before <= accepted_at "
    "UNION SELECT lanes.session_key FROM lanes LEFT JOIN turns ON turns.id = lanes.turn_id "
    "WHERE lanes.owner IS NULL AND lanes.ready_at IS NOT NULL AND lanes.ready_at > :now "
    "AND (lanes.debounce_from > :now OR turns.claimed_at > :now)) belated "
    "WHERE session_key > :after ORDER BY session_key LIMIT :limit"
)


async def make_up(store: Store, now: int) -> int:
    """Let go on what waits for a time that was moved away; return how many lanes there were."""
    after, count = "", 0
    while True:
        rows = await store.read(_BELATED, after=after, now=now, limit=STEP)
        for (session_key,) in rows:
            try:
                await store.transact(
                    lambda tx, session_key=session_key: _make_up_lane(tx, session_key),
                    locks=[lane_rows.lock(session_key)],
                )
            except UnreadableRow:
                log.warning("the lane %s waits as it did", session_key, exc_info=True)
        count += len(rows)
        if len(rows) < STEP:
            return count
        after = rows[-1][0]


def _make_up_lane(tx: Tx, session_key: str) -> None:
    lane = lane_rows.get(tx, session_key)
    if lane is None:
        return
    stimuli.bring_forward(tx, session_key)
    if lane.debounce_from is not None and lane.debounce_from > tx.now:
        lane_rows.forget_window(tx, session_key)
    turn = None if lane.turn_id is None else turns.get(tx, lane.turn_id)
    if turn is not None and lane.resume_at is not None and turn.claimed_at > tx.now:
        lane_rows.resume(tx, session_key, tx.now)
    lane_rows.touch(tx, session_key)
