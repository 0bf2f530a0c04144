"""What agents asked people, newest first."""

from wakeful.approvals import approvals
from wakeful.approvals.approvals import APPROVALS, Approval
from wakeful.store.database import Store
from wakeful.vocabulary.approving import ApprovalState

_PAGE = APPROVALS.select("WHERE number < :before ORDER BY number DESC LIMIT :limit")
_PAGE_OF_STATE = APPROVALS.select(
    "WHERE state = :state AND number < :before ORDER BY number DESC LIMIT :limit"
)
_OF_TURN = APPROVALS.select("WHERE turn_id = :id ORDER BY number")
_OF_ANSWER = APPROVALS.select("WHERE stimulus_id IS NOT NULL AND stimulus_id = :id")
COUNT_OPEN = "SELECT COUNT(*) FROM approvals WHERE state = 'open' AND agent_id = :id"
_NEWEST = 2**62  # above every number


class ApprovalView:
    """Reads what was asked and what was answered; it is the operator's alone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, state: ApprovalState | None, after: int | None, limit: int
    ) -> list[Approval]:
        """Return approvals from the newest on; `after` is the number of the last one seen."""
        before = _NEWEST if after is None else after
        if state is None:
            rows = await self._store.read(_PAGE, before=before, limit=limit)
        else:
            rows = await self._store.read(
                _PAGE_OF_STATE, state=state.value, before=before, limit=limit
            )
        return APPROVALS.read_known(rows)

    async def find(self, named: str) -> Approval:
        """Return what somebody names by its number or its id."""
        return await approvals.find(self._store, named)

    async def of_turn(self, turn_id: str, opened_by: str) -> list[Approval]:
        """Return what a turn has asked, and what it was opened by the answer to."""
        answered = await self._store.read(_OF_ANSWER, id=opened_by)
        asked = await self._store.read(_OF_TURN, id=turn_id)
        return APPROVALS.read_known([*answered, *asked])

    async def count_open(self, agent_id: str) -> int:
        """Return how much an agent waits for."""
        ((count,),) = await self._store.read(COUNT_OPEN, id=agent_id)
        return count
