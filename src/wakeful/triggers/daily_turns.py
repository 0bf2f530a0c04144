"""How often an agent may wake itself in a day, whatever it costs."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from wakeful.gate.wakes import PASSED, GateVerdict, Verdict, Wake
from wakeful.notices.notices import Notices
from wakeful.store.database import Tx
from wakeful.telemetry.metrics import Metrics
from wakeful.transcript import sessions
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.tick_times import next_tick
from wakeful.triggers.ticking import timer_id
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import Kind, kinds_where
from wakeful.vocabulary.proactive import ProactiveRules

DAY_MS = 86_400_000

# A turn asks its model in the commit that opens it: what was opened has reached the model.
# Whoever rests in a session that does not tick uses up nothing: one that ticks has its timer.
_OF_ITS_OWN = ", ".join(f"'{kind}'" for kind in kinds_where(lambda rule: rule.is_of_its_own))
_USED = (
    "SELECT agent_id, COUNT(*) FROM turns "  # noqa: S608
    "WHERE agent_id IN :agent_ids AND opened_at > :since "
    f"AND kind IN ({_OF_ITS_OWN}) "
    f"AND (kind = '{Kind.TICK.value}' "
    f"OR EXISTS (SELECT 1 FROM timers WHERE timers.id = '{timer_id('')}' || turns.session_key)) "
    "GROUP BY agent_id"
)


class DailyTurns:
    """Counts ticks and wakes of proactive sessions over the last 24 hours, from the ledger."""

    def __init__(self, blocks: ProactiveBlocks, notices: Notices, metrics: Metrics) -> None:
        self._blocks = blocks
        self._notices = notices
        self._metrics = metrics

    def may_wake(self, tx: Tx, wakes: Sequence[Wake]) -> Sequence[GateVerdict]:
        """Refuse what agents gave themselves to do once they have had their turns for the day."""
        rules = self._rules(tx, [wake for wake in wakes if wake.kind.rule.is_of_its_own])
        used = _used(tx, {keys.agent_of(key) for key in rules})
        verdicts = [self._verdict(tx, wake, rules.get(wake.session_key), used) for wake in wakes]
        refused = Counter(
            wake.agent_id for wake, said in zip(wakes, verdicts, strict=True) if said is not PASSED
        )
        for agent_id, count in refused.items():
            self._tell(tx, agent_id, used[agent_id], count)
        return verdicts

    def _rules(self, tx: Tx, wakes: Sequence[Wake]) -> dict[str, ProactiveRules]:
        """Return the blocks of the sessions that tick and have a budget."""
        if not wakes or not self._blocks.is_any_enabled():
            return {}
        found: dict[str, ProactiveRules] = {}
        for key, session in sessions.policies(tx, [wake.session_key for wake in wakes]).items():
            rules = self._blocks.ticking(key, session.binding)
            if rules is not None and rules.daily_turn_budget > 0:
                found[key] = rules
        return found

    def _verdict(
        self, tx: Tx, wake: Wake, rules: ProactiveRules | None, used: Mapping[str, int]
    ) -> GateVerdict:
        if rules is None or not wake.kind.rule.is_of_its_own:
            return PASSED
        if used.get(wake.agent_id, 0) < rules.daily_turn_budget:
            return PASSED
        look_at = next_tick(wake.session_key, tx.now, rules)
        return GateVerdict(verdict=Verdict.BUDGET, look_at=look_at)

    def _tell(self, tx: Tx, agent_id: str, used: int, refused: int) -> None:
        """Tell people once a day, however many wakes are refused."""
        text = (
            f"{agent_id} has woken by itself {used} times in 24 hours, which is all it may "
            "(`proactive: {daily_turn_budget: …}` in the settings allows more; 0: any number); "
            "until some of that is over, people alone wake it."
        )
        self._notices.add_once_in(tx, DAY_MS, "daily-turns", agent_id, text, agent_id)
        tx.after_commit(lambda: self._metrics.proactive(agent_id, "budget.exhausted", refused))


def _used(tx: Tx, agent_ids: Collection[str]) -> dict[str, int]:
    """Return how many turns agents opened by themselves in the last 24 hours."""
    if not agent_ids:
        return {}
    rows = tx.all(_USED, agent_ids=sorted(agent_ids), since=tx.now - DAY_MS)
    return {row[0]: row[1] for row in rows}
