"""Turns as a forecast assumes them: opened as lanes open them, answered as it is taken for granted.

Everything that is written is written by the functions of real turns; only the model is missing,
and the words of the conversation, of which the copy holds nothing but their size.
"""

from collections import defaultdict
from collections.abc import Callable

from wakeful.broker import lane_rows
from wakeful.forecast.assumptions import Assumptions, Usual
from wakeful.forecast.simulated import AssumedAnswer, OpenTurn
from wakeful.forecast.sources import source_of
from wakeful.lanes.contexts import Contexts
from wakeful.lanes.opening import Opening
from wakeful.models.tariffs import tariffs_of
from wakeful.prompts.heartbeat_token import TOKEN
from wakeful.store.database import Tx
from wakeful.transcript import entries
from wakeful.transcript.sessions import Session
from wakeful.turn import compaction_commits, next_step
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.attempt import Ask, Compact, Fenced, Next, StepResult, TurnAttempt
from wakeful.turn.commit import TurnCommit, TurnDeps, commit_step
from wakeful.turn.compaction import CompactionPlan, PreparedCompaction
from wakeful.turn.context import Context, as_edited
from wakeful.turn.jobs import with_prompt
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.sizing import room
from wakeful.turns.turns import TURNS, End, Turn, TurnState
from wakeful.vocabulary.kinds import View
from wakeful.vocabulary.message import AssistantMessage, Text, Usage
from wakeful.vocabulary.tokens import tokens_of

OWNER = "forecast"
REPLY = "…"
SUMMARY = "…"

_OPEN = TURNS.select("WHERE state = 'open' ORDER BY id")


class AssumedContexts(Contexts):
    """Contexts whose beginning is known by its size alone."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Context] = {}  # of each session, without words

    def take(self, tx: Tx, session: Session, open_turn_id: str | None) -> Context:
        known = self._of(session)
        context = _sized(known.branch, known.tokens)
        context.is_counted = known.is_counted
        context.depth, context.hash = known.depth, known.hash
        if session.leaf_depth > known.depth:
            context.extend(as_edited(entries.path(tx, session, known.depth)))
        context.is_stale = False
        return context

    def light(self, tx: Tx, session: Session, turn_id: str) -> Context:
        self._of(session)  # what is written from now on is not in its size
        return super().light(tx, session, turn_id)

    def _of(self, session: Session) -> Context:
        """Return what is known of a session: its size when it was first asked for, or since."""
        known = self._known.get(session.key)
        if known is None or known.branch != session.branch:
            known = _sized(session.branch, session.context_tokens if session.leaf_id else 0)
            known.depth, known.hash = session.leaf_depth, session.leaf_hash
            self._known[session.key] = known
        return known

    def keep(self, session_key: str, context: Context) -> None:
        if not context.is_stale:
            context.messages.clear()
            self._known[session_key] = context


class AssumedTurns:
    """Opens turns and ends them; what each asked, `answered` is told."""

    def __init__(
        self,
        deps: TurnDeps,
        agents: ReadyAgents,
        assumptions: Assumptions,
        answered: Callable[[AssumedAnswer], None],
    ) -> None:
        self._deps = deps
        self._assumptions = assumptions
        self._answered = answered
        self._contexts = AssumedContexts()
        self._opening = Opening(deps, agents, OWNER, self._contexts)
        self._said: defaultdict[str, int] = defaultdict(int)  # tokens added to each conversation
        self._can_remember: dict[str, bool] = {}  # by agent: asked of its folder once

    def open(self, tx: Tx, session_key: str) -> OpenTurn | None:
        """Open the next turn of a lane; None if there is none, or it has ended already."""
        opened = self._opening.open_next(tx, session_key)
        if opened is None:
            return None
        opened.attempt.can_remember = self._may_remember(opened.attempt.agent)
        return self._rested(tx, opened.attempt, opened.next)

    def go_on(self, tx: Tx, turn: OpenTurn) -> OpenTurn | None:
        """Write the answer; None if the turn has ended with it, or was left."""
        attempt: TurnAttempt = turn.attempt
        reply = self._reply(attempt, turn.next)

        def act(commit: TurnCommit) -> Next:
            if isinstance(turn.next, Compact):
                made = _compaction(commit, attempt)
                return compaction_commits.compacted(commit, made, reply, turn.next.purpose)
            return next_step.advance(commit, StepResult(reply=reply))

        next = commit_step(self._deps, tx, attempt, act).apply(attempt)
        return self._rested(tx, attempt, next)

    def end_open(self, tx: Tx) -> None:
        """End the turns that were open when the copy was made, at what was set aside for them."""
        for row in tx.all(_OPEN):
            turn = TURNS.read(row)
            lane = lane_rows.get(tx, turn.session_key)
            assert lane is not None
            self._deps.ending.end_turn(tx, turn, End(state=TurnState.DONE), lane.epoch)

    def _rested(self, tx: Tx, attempt: TurnAttempt, next: Next) -> OpenTurn | None:
        """Return a turn that asks, and when it is answered; keep the context of one that rests."""
        key = attempt.claim.session_key
        if isinstance(next, Ask | Compact):
            answered_at = tx.now + self._usual(attempt.turn).turn_ms
            return OpenTurn(session_key=key, answered_at=answered_at, attempt=attempt, next=next)
        if attempt.turn.view is not View.LIGHT and not isinstance(next, Fenced):
            self._contexts.keep(key, attempt.context)
        return None

    def _reply(self, attempt: TurnAttempt, next: Ask | Compact) -> AssistantMessage:
        """Return the assumed answer, and count it."""
        turn, agent, usual = attempt.turn, attempt.agent, self._usual(attempt.turn)
        key, is_alone = turn.session_key, turn.view is not View.FULL
        context = attempt.context
        before = context.tokens + (0 if context.is_counted else agent.fixed_tokens)
        before += _of_prompt(attempt)
        is_summary = isinstance(next, Compact)
        most = next.grant.max_tokens
        more = 0 if is_alone else self._said[key]
        usage, dear = (
            Usage(
                input=before if read is None or is_summary else read + more,
                output=written if most is None else min(most, written),
            )
            for read, written in (
                (usual.input, usual.output),
                (usual.input_p90, usual.output_p90),
            )
        )
        if not is_alone and not is_summary and not turn.kind.rule.acknowledges:
            self._said[key] += usage.output + _asked(context)
        price = tariffs_of(agent.model)[0].price
        cost = None if price is None else price.cost(usage)
        self._answered(
            AssumedAnswer(
                agent_id=turn.agent_id,
                source=source_of(turn.origin, turn.source),
                input=usage.input,
                output=usage.output,
                cost=cost,
                cost_p90=None if price is None else price.cost(dear),
            )
        )
        said = SUMMARY if is_summary else TOKEN if turn.kind.rule.acknowledges else REPLY
        return AssistantMessage(
            content=(Text(text=said),),
            model=agent.model.name,
            usage=Usage(input=usage.input, output=usage.output, cost=cost),
        )

    def _usual(self, turn: Turn) -> Usual:
        return self._assumptions.of(turn.agent_id, source_of(turn.origin, turn.source))

    def _may_remember(self, agent: ReadyAgent) -> bool:
        if agent.agent_id not in self._can_remember:
            self._can_remember[agent.agent_id] = agent.is_writable
        return self._can_remember[agent.agent_id]


def _sized(branch: str, tokens: int) -> Context:
    """Return a context of so many tokens, as a model counted them."""
    context = Context(branch)
    context.tokens, context.is_counted = tokens, tokens > 0
    return context


def _of_prompt(attempt: TurnAttempt) -> int:
    """Return the tokens of the prompt of a job, which its model is shown and no entry holds."""
    run, context = attempt.run, attempt.context
    if run is None:
        return 0
    shown = with_prompt(context, run, attempt.turn.id)
    return sum(map(tokens_of, shown)) - sum(map(tokens_of, context.messages))


def _asked(context: Context) -> int:
    """Return the tokens of what the turn itself was asked."""
    return tokens_of(context.messages[-1]) if context.messages else 0


def _compaction(commit: TurnCommit, attempt: TurnAttempt) -> PreparedCompaction:
    """Return a compaction that keeps as much as the settings say, and no words."""
    session, keep = commit.session, room(attempt.agent).keep
    plan = CompactionPlan(
        compacted=(),
        turn=(),
        previous=None,
        first_kept_depth=session.leaf_depth + 1,
        tokens_before=commit.tokens(),
        files_read=(),
        files_changed=(),
        is_external=False,
        longest=0,
        most=0,
    )
    rest = _sized(session.branch, keep + _asked(attempt.context))
    rest.is_counted = False
    rest.hash = session.leaf_hash
    rest.messages = attempt.context.messages[-1:]
    return PreparedCompaction(plan, rest)
