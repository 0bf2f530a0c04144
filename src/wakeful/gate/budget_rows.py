"""Budget rows: what each agent has spent and set aside today, and what is left of it."""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.gate.money import nano
from wakeful.store.database import Lock, LocksNeeded, LockSpace, Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.budget import BudgetRules, DayLimits
from wakeful.vocabulary.kinds import Origin
from wakeful.vocabulary.record import Record

AGENT = "agent"  # the scope of everything that an agent does
SOURCE = "source"  # the word of the scopes that have one source each
KEPT_DAYS = 7  # of a source that was not named
WARN_AT = 0.8  # of a cap: from there on people are told, once a day
NO_LIMITS = DayLimits()


class BudgetRow(Record):
    """The numbers of one scope, of one day; money in billionths of a dollar."""

    agent_id: str
    scope: str = AGENT
    day: int = 0
    cap: int | None = None
    spent: int = 0
    reserved: int = 0
    others: int = 0  # of both, what no person said or caused
    turns: int = 0
    unpriced: int = 0
    raised_money: int = 0
    raised_turns: int = 0
    raised_until: int = 0
    is_warned: bool = False
    is_exhausted: bool = False

    @property
    def used(self) -> int:
        return self.spent + self.reserved

    def today(self, day: int, now: int) -> "BudgetRow":
        """Return the row as it counts now: a new day begins with nothing spent."""
        row = self
        if self.day < day:
            row = BudgetRow(
                agent_id=self.agent_id,
                scope=self.scope,
                day=day,
                cap=self.cap,
                raised_money=self.raised_money,
                raised_turns=self.raised_turns,
                raised_until=self.raised_until,
            )
        if row.raised_until and row.raised_until <= now:
            row = replace(row, raised_money=0, raised_turns=0, raised_until=0)
        return row


BUDGETS = RowTable("budgets", BudgetRow)

_NEW = BUDGETS.insert + " ON CONFLICT DO NOTHING"
_PUT = (
    BUDGETS.insert
    + " ON CONFLICT (agent_id, scope) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in BUDGETS.fields)
)
_ZEROS = {
    name: f"'{AGENT}'" if name == "scope" else ("NULL" if name == "cap" else "0")
    for name in BUDGETS.fields
    if name != "agent_id"
}
BUDGET_LOCKS = LockSpace(
    name="budgets",
    rank=1,
    lock=(
        f"SELECT agent_id FROM budgets WHERE scope = '{AGENT}' AND agent_id IN :keys "  # noqa: S608
        "ORDER BY agent_id FOR UPDATE"
    ),
    ensure=(
        f"INSERT INTO budgets (agent_id, {', '.join(_ZEROS)}) "  # noqa: S608 (words of ours)
        f"VALUES (:key, {', '.join(_ZEROS.values())}) ON CONFLICT DO NOTHING"
    ),
)


def _begun_anew(*names: str) -> str:
    return ", ".join(f"{name} = CASE WHEN day < :day THEN 0 ELSE {name} END" for name in names)


_RESERVE = (
    "UPDATE budgets SET "  # noqa: S608 (words of ours)
    "reserved = CASE WHEN day < :day THEN 0 ELSE reserved END + :amount, "
    "others = CASE WHEN day < :day THEN 0 ELSE others END + :others, "
    "turns = CASE WHEN day < :day THEN 0 ELSE turns END + :turns, "
    f"{_begun_anew('spent', 'unpriced', 'is_warned', 'is_exhausted')}, "
    "raised_money = CASE WHEN raised_until <= :now THEN 0 ELSE raised_money END, "
    "raised_turns = CASE WHEN raised_until <= :now THEN 0 ELSE raised_turns END, "
    f"cap = CASE scope WHEN '{AGENT}' THEN CAST(:cap AS BIGINT) "
    "WHEN :origin THEN CAST(:cap_of_origin AS BIGINT) ELSE CAST(:cap_of_source AS BIGINT) END, "
    "day = CASE WHEN day < :day THEN :day ELSE day END "
    f"WHERE agent_id = :agent_id AND scope IN :scopes RETURNING {BUDGETS.columns}"
)
_CHANGE = (
    "UPDATE budgets SET reserved = reserved + :reserved, spent = spent + :spent, "  # noqa: S608
    "others = others + :others, turns = turns + :turns, unpriced = unpriced + :unpriced "
    "WHERE agent_id = :agent_id AND scope IN :scopes AND day = :day "
    f"RETURNING {BUDGETS.columns}"
)
_MARK = "UPDATE budgets SET {mark} = 1 WHERE agent_id = :agent_id AND scope = :scope AND {mark} = 0"
_MARKS = {mark: _MARK.format(mark=mark) for mark in ("is_warned", "is_exhausted")}


def lock(agent_id: str) -> Lock:
    """Return the lock of all the rows of an agent."""
    return Lock(BUDGET_LOCKS, agent_id)


def require(tx: Tx, agent_id: str) -> None:
    """Make sure that an agent's rows are locked: the store runs the transaction again if not."""
    held = lock(agent_id)
    if not tx.holds(held):
        raise LocksNeeded([held])


def of_agent(tx: Tx, agent_id: str, scopes: Sequence[str]) -> dict[str, BudgetRow]:
    """Return some rows of an agent by their scopes: there is one for each source from outside."""
    rows = tx.all(
        BUDGETS.select("WHERE agent_id = :agent_id AND scope IN :scopes"),
        agent_id=agent_id,
        scopes=list(scopes),
    )
    return {row.scope: row for row in map(BUDGETS.read, rows)}


def scopes_of(
    rules: BudgetRules, origin: Origin, source: str, *, is_external: bool
) -> tuple[str, ...]:
    """Return the scopes that something is paid from; a source has one if it has a limit."""
    is_shared = is_external and rules.share_of_a_source < 1
    own = [f"{SOURCE}:{source}"] if is_shared or source in rules.sources else []
    return (AGENT, f"origin:{origin.value}", *own)


def unused(agent_id: str, scope: str, rules: BudgetRules, day: int) -> BudgetRow:
    """Return the row of a scope in which nothing was ever spent."""
    return BudgetRow(agent_id=agent_id, scope=scope, day=day, cap=cap_of(rules, scope))


def limited_scopes(rules: BudgetRules) -> list[str]:
    """Return the scopes that the settings limit, the agent's own first."""
    origins = [f"origin:{name}" for name in sorted(rules.origins)]
    return [AGENT, *origins, *(f"{SOURCE}:{name}" for name in sorted(rules.sources))]


def limits_of(rules: BudgetRules, scope: str) -> DayLimits:
    """Return what a scope may use in a day."""
    word, _, name = scope.partition(":")
    if word == AGENT:
        return DayLimits(money_per_day=rules.money_per_day, turns_per_day=rules.turns_per_day)
    if word == "origin":
        return rules.origins.get(name, NO_LIMITS)
    return rules.sources.get(name) or _share(rules)


def _share(rules: BudgetRules) -> DayLimits:
    """Return what a source may use that came from outside and that nobody has named."""
    money, turns, share = rules.money_per_day, rules.turns_per_day, rules.share_of_a_source
    return DayLimits(
        money_per_day=None if money is None else money * share,
        turns_per_day=None if turns is None else math.ceil(turns * share),
    )


def with_share(row: BudgetRow, agent: BudgetRow | None, rules: BudgetRules) -> BudgetRow:
    """Return a row as it counts: where it is a share, it grows when its agent is given more."""
    word, _, name = row.scope.partition(":")
    if agent is None or word != SOURCE or name in rules.sources:
        return row
    share = rules.share_of_a_source
    return replace(
        row,
        raised_money=row.raised_money + int(agent.raised_money * share),
        raised_turns=row.raised_turns + math.ceil(agent.raised_turns * share),
    )


def cap_of(rules: BudgetRules, scope: str) -> int | None:
    """Return how much money a scope may use in a day, raises apart."""
    limit = limits_of(rules, scope).money_per_day
    return None if limit is None else nano(limit)


def money_left(row: BudgetRow, rules: BudgetRules, *, for_people: bool) -> int | None:
    """Return what is left of a day's money in a scope; None: there is no limit.

    What no person said or caused may use a part of it only.
    """
    cap = cap_of(rules, row.scope)
    if cap is None:
        return None
    cap += row.raised_money
    left = cap - row.used
    if for_people or row.scope != AGENT:
        return left
    return min(left, cap - round(cap * rules.reserve_for_people) - row.others)


class Amount(Record):
    """How much more or less a scope has of everything."""

    reserved: int = 0
    spent: int = 0
    others: int = 0
    turns: int = 0
    unpriced: int = 0


NOTHING = Amount()


def given_back(row: BudgetRow, own: Amount = NOTHING) -> BudgetRow:
    """Return a row as it would be if all answers under way but one's own came to nothing."""
    others = max(own.others, row.others - (row.reserved - own.reserved))
    return replace(row, reserved=own.reserved, others=others)


def turns_left(row: BudgetRow, rules: BudgetRules) -> int | None:
    limit = limits_of(rules, row.scope).turns_per_day
    return None if limit is None else limit + row.raised_turns - row.turns


def is_nearly_spent(row: BudgetRow) -> bool:
    """Tell whether people should be told that most of a day's money is spent."""
    cap = None if row.cap is None else row.cap + row.raised_money
    is_new = row.spent > 0 and not row.is_warned
    return cap is not None and is_new and row.spent >= cap * WARN_AT


def reserve(
    tx: Tx, agent_id: str, scopes: Sequence[str], rules: BudgetRules, day: int, amount: Amount
) -> list[BudgetRow]:
    """Set an amount aside in several scopes, whatever is left there, and return what they became.

    One statement, which also begins the day anew; the caller decides whether it may stay so.
    """
    found = _reserve(tx, agent_id, scopes, rules, day, amount)
    if len(found) < len(scopes):
        missing = [scope for scope in scopes if scope not in {row.scope for row in found}]
        rows = [BudgetRow(agent_id=agent_id, scope=scope, day=day) for scope in missing]
        tx.many(_NEW, [BUDGETS.params(row) for row in rows])
        found += _reserve(tx, agent_id, missing, rules, day, amount)
    return found


def _reserve(
    tx: Tx, agent_id: str, scopes: Sequence[str], rules: BudgetRules, day: int, amount: Amount
) -> list[BudgetRow]:
    origin = next((scope for scope in scopes if scope.startswith("origin:")), "")
    source = next((scope for scope in scopes if scope.startswith(f"{SOURCE}:")), "")
    rows = tx.all(
        _RESERVE,
        agent_id=agent_id,
        scopes=list(scopes),
        day=day,
        now=tx.now,
        amount=amount.reserved,
        others=amount.others,
        turns=amount.turns,
        cap=cap_of(rules, AGENT),
        origin=origin,
        cap_of_origin=cap_of(rules, origin) if origin else None,
        cap_of_source=cap_of(rules, source) if source else None,
    )
    return [BUDGETS.read(row) for row in rows]


def change(tx: Tx, agent_id: str, scopes: Sequence[str], day: int, by: Amount) -> list[BudgetRow]:
    """Change what scopes have of one day; nothing, if another day has begun there."""
    rows = tx.all(
        _CHANGE,
        agent_id=agent_id,
        scopes=list(scopes),
        day=day,
        reserved=by.reserved,
        spent=by.spent,
        others=by.others,
        turns=by.turns,
        unpriced=by.unpriced,
    )
    return [BUDGETS.read(row) for row in rows]


def mark(tx: Tx, row: BudgetRow, what: str) -> bool:
    """Note that people were told of something; False if they had been."""
    # A limit may be reached where nothing was ever spent, and what its agent was given is not its.
    new = BudgetRow(agent_id=row.agent_id, scope=row.scope, day=row.day, cap=row.cap)
    tx.run(_NEW, **BUDGETS.params(new))
    return tx.run(_MARKS[what], agent_id=row.agent_id, scope=row.scope) == 1


def top_origin(tx: Tx, agent_id: str, day: int) -> str | None:
    """Return the origin that has spent most of an agent's money today."""
    row = tx.one(
        "SELECT scope FROM budgets WHERE agent_id = :agent_id AND day = :day "
        "AND scope LIKE 'origin:%' AND spent > 0 ORDER BY spent DESC, scope LIMIT 1",
        agent_id=agent_id,
        day=day,
    )
    return None if row is None else str(row[0]).partition(":")[2]


def raise_caps(tx: Tx, row: BudgetRow, *, money: int, turns: int, until: int) -> BudgetRow:
    """Let a scope use more until an instant; a raise that is in force is added to."""
    raised = replace(
        row,
        raised_money=row.raised_money + money,
        raised_turns=row.raised_turns + turns,
        raised_until=max(row.raised_until, until),
        is_warned=False,
        is_exhausted=False,
    )
    tx.run(_PUT, **BUDGETS.params(raised))
    return raised


def prune(tx: Tx, today: int, limit: int) -> str | None:
    """Forget sources that have asked for nothing in days; None when done."""
    gone = tx.run(
        "DELETE FROM budgets WHERE (agent_id, scope) IN (SELECT agent_id, scope FROM budgets "
        "WHERE scope LIKE :scopes AND day < :day AND raised_until < :now LIMIT :limit)",
        scopes=f"{SOURCE}:%",
        day=today - KEPT_DAYS,
        now=tx.now,
        limit=limit,
    )
    return "more" if gone == limit else None
