"""How often an agent may wake itself in a day, whatever it costs."""

from wakeful.gate.wakes import PASSED, GateVerdict, Verdict, Wake
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.tick_times import next_tick
from wakeful.vocabulary.kinds import kinds_where

DAY_MS = 86_400_000

# A turn asks its model in the commit that opens it: what was opened has reached the model.
_OF_ITS_OWN = ", ".join(f"'{kind}'" for kind in kinds_where(lambda rule: rule.is_of_its_own))
_USED = (
    "SELECT COUNT(*) FROM turns WHERE agent_id = :agent_id AND opened_at > :since "  # noqa: S608
    f"AND kind IN ({_OF_ITS_OWN})"
)


class DailyTurns:
    """Counts ticks and wakes of proactive sessions over the last 24 hours, from the ledger."""

    def __init__(self, blocks: ProactiveBlocks) -> None:
        self._blocks = blocks

    def may_wake(self, tx: Tx, wake: Wake) -> GateVerdict:
        """Refuse what the agent gave itself to do once it has had its turns for the day."""
        if not wake.kind.rule.is_of_its_own or not self._blocks.is_any_enabled():
            return PASSED
        session = sessions.policies(tx, [wake.session_key]).get(wake.session_key)
        binding = None if session is None else session.binding
        rules = self._blocks.ticking(wake.session_key, binding)
        if rules is None or rules.daily_turn_budget == 0:
            return PASSED
        row = tx.one(_USED, agent_id=wake.agent_id, since=tx.now - DAY_MS)
        assert row is not None
        if row[0] < rules.daily_turn_budget:
            return PASSED
        look_at = next_tick(wake.session_key, tx.now, rules)
        return GateVerdict(verdict=Verdict.BUDGET, look_at=look_at)
