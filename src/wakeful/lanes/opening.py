"""Claim a lane and open its next turn, or reopen the one it left: one commit, question included."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wakeful.approvals import approvals
from wakeful.approvals.approvals import Approval
from wakeful.automations import runs
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.gate import halts
from wakeful.intake import stopping
from wakeful.intake.facts import wake_of
from wakeful.lanes import first_entries, poison
from wakeful.lanes.choose import Choice
from wakeful.lanes.contexts import Contexts
from wakeful.lanes.waiting import Waiting
from wakeful.store.database import Tx
from wakeful.transcript import resets, sessions
from wakeful.transcript.sessions import Session
from wakeful.turn import next_step
from wakeful.turn.agent import ReadyAgent
from wakeful.turn.attempt import LaneClaim, Next, TurnAttempt
from wakeful.turn.calls import in_doubt, may_run_again, write_outcomes
from wakeful.turn.commit import NO_FAILURES, TurnCommit, TurnDeps
from wakeful.turn.context import Context
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.turn.resume import approved_step, load_step
from wakeful.turn.sizing import is_compaction
from wakeful.turns import asks, tool_calls, turns
from wakeful.turns.asks import Purpose
from wakeful.turns.turns import ENDS, End, Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.approving import ApprovalKind, ApprovalState
from wakeful.vocabulary.automation import AutomationRun, RunState
from wakeful.vocabulary.kinds import Kind, Limit, View, Work
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Place, Stimulus, Trust

MAX_PREEMPTIONS = 3  # then a stimulus runs uninterrupted, except by stop


class Opened(Record):
    """A claimed lane: the attempt at its turn, and what it does first."""

    attempt: TurnAttempt
    next: Next


class Opening:
    """Opens turns for one node."""

    def __init__(
        self,
        deps: TurnDeps,
        agents: ReadyAgents,
        owner: str,
        contexts: Contexts | None = None,
    ) -> None:
        self._deps = deps
        self._agents = agents
        self._owner = owner
        self._waiting = Waiting(deps)
        self.contexts = contexts or Contexts()

    def open_next(
        self, tx: Tx, session_key: str, ledger_failures: Mapping[str, str] = NO_FAILURES
    ) -> Opened | None:
        """Claim the lane if it is free and due; None if there is nothing to run.

        A turn that goes on may begin with a ledger tool: what that raised, the caller hands in.
        """
        lane = lane_rows.get(tx, session_key)
        if lane is not None and lane.owner == self._owner:
            lane = self._take_back(tx, lane)
        if lane is None or lane.owner is not None:
            return None
        if self._agents.get(lane.agent_id) is None:
            return self._set_aside(tx, lane, "no-agent")
        if halts.is_halted(tx, lane.agent_id):
            return self._set_aside(tx, lane, "halted")
        session = sessions.get(tx, session_key)
        if session is None and lane.ready_at is None:
            return None  # it was deleted since somebody said that its lane is ready
        assert session is not None
        if lane.turn_id is not None:
            kind = _kind_of(tx, lane.turn_id)
            agent = self._agent_of(session, kind, _run_of_turn(tx, lane.turn_id, kind))
            if poison.must_wait(tx, lane, agent.config.limits.attempts):
                return None
            return self._reopen(tx, lane, session, agent, ledger_failures)
        if lane.stopped_seq and stopping.cancel_some(tx, self._deps.settlement, session_key):
            return None  # the lane is looked at again, until nothing of it is left
        choice = self._waiting.choose(tx, lane, session, self._agent_of(session, None))
        if choice is None:
            return None
        session, choice = self._begin_anew(tx, session, choice)
        head = choice.stimuli[0]
        agent = self._agent_of(session, head.kind, _run_of(tx, head))
        return self._open(tx, lane, session, agent, choice, ledger_failures)

    def _agent_of(
        self, session: Session, kind: Kind | None, run: AutomationRun | None = None
    ) -> ReadyAgent:
        """Return the agent that this session wants now; a reset may have forgotten some choices.

        Heartbeats may have a model of their own, and so may automations.
        """
        agent = self._agents.get(session.agent_id, session.overrides)
        assert agent is not None
        model, thinking = None if run is None else run.model, None if run is None else run.thinking
        if kind is not None and kind.rule.acknowledges:
            model = agent.config.heartbeat.model
        if model is None and thinking is None:
            return agent
        chosen = replace(
            session.overrides,
            model=model or session.overrides.model,
            thinking=thinking or session.overrides.thinking,
        )
        return self._agents.get(session.agent_id, chosen) or agent

    def undo(self, tx: Tx, session_key: str) -> None:
        """Give back a lane whose opening was committed but not heard of."""
        lane = lane_rows.get(tx, session_key)
        if lane is None or lane.owner != self._owner or lane.turn_id is None:
            return
        turns.leave(tx, lane.turn_id, failed_ask=False, used_ms=0)
        lane_rows.release(tx, session_key, resume_at=tx.now, keeps_turn=True)

    def _take_back(self, tx: Tx, lane: Lane) -> Lane:
        """Free a lane whose task has ended without giving it back: no lane has two tasks here.

        The attempt is not given back: nobody knows what became of it.
        """
        lane_rows.release(tx, lane.session_key, resume_at=tx.now, keeps_turn=True)
        return replace(lane, owner=None, resume_at=tx.now)

    def give_up(self, tx: Tx, session_key: str) -> None:
        """Fail whatever keeps the lane from being opened."""
        poison.give_up(tx, self._deps, session_key, self._owner)

    def _set_aside(self, tx: Tx, lane: Lane, reason: str) -> Opened | None:
        """Park what waits in a lane that may not run; an open turn stays, unless told to end."""
        if lane.turn_id is not None:
            return self._hold(tx, lane, lane.turn_id)
        self._waiting.set_all_aside(tx, lane.session_key, reason)
        return None

    def _hold(self, tx: Tx, lane: Lane, turn_id: str) -> Opened | None:
        """Leave an open turn without a task, or end it if it was told to end."""
        turn = turns.get(tx, turn_id)
        session = sessions.get(tx, lane.session_key)
        assert turn is not None
        assert session is not None
        agent = self._agents.get(lane.agent_id)
        if turn.interrupt is Interrupt.NONE:
            lane_rows.release(tx, lane.session_key, resume_at=None, keeps_turn=True)
            return None
        if agent is not None:
            return self._reopen(tx, lane, session, agent)
        self._deps.ending.end_turn(tx, turn, End(state=ENDS[turn.interrupt]), lane.epoch)
        return None

    def _begin_anew(self, tx: Tx, session: Session, choice: Choice) -> tuple[Session, Choice]:
        """Begin the new transcript that a reset asked for, if its turn has come."""
        if not session.resets:
            return session, choice
        found = resets.split(session.resets, [stimulus.seq for stimulus in choice.stimuli])
        fresh = session
        if found.due is not None:
            fresh = resets.begin(tx, session, self._deps.ids.new("tr"), found.due)
            self._deps.bus.publish(tx, resets.reset_event(session, fresh, found.due.by))
            self._deps.answering.cancel_all(tx, session.key)
        return fresh, choice.only(found.together)

    def _open(
        self,
        tx: Tx,
        lane: Lane,
        session: Session,
        agent: ReadyAgent,
        choice: Choice,
        ledger_failures: Mapping[str, str],
    ) -> Opened:
        """Open a turn: epoch, turn row, entries, stimuli claimed, model about to be asked.

        One that answers what the agent asked begins with the call that was granted.
        """
        head = choice.stimuli[0]
        answers = _answers(tx, choice.stimuli)
        turn = self._new_turn(tx, lane, session, agent, choice.stimuli)
        run = _run_of(tx, head)
        if run is not None:
            turn = replace(turn, wall_s=run.timeout_s)
            is_fresh = turn.view is View.FRESH
            run = runs.begin(tx, run, turn.id, session.transcript_id if is_fresh else None)
            runs.publish(tx, self._deps.bus, run, RunState.RUNNING)
        if answers:
            turn = replace(turn, granted=self._granted(choice.stimuli, answers))
        attempt = self._claim(tx, lane, session, agent, turn)
        attempt.run = run
        turns.add(tx, turn)
        ids = [stimulus.id for stimulus in choice.stimuli]
        stimuli.claim(tx, ids, turn.id)
        commit = TurnCommit(self._deps, tx, attempt, turn, session, ledger_failures)
        if not is_compaction(turn) and not next_step.is_moot(commit):
            first_entries.show(commit, lane, choice)
        commit.publish(
            "turn.started",
            epoch=attempt.claim.epoch,
            origin=head.origin.value,
            source=head.source,
            stimuli=ids,
        )
        for stimulus_id in ids:
            commit.publish("stimulus.claimed", stimulus_id, how="opened")
        next = commit.outcome(_first_step(commit, head, answers)).apply(attempt)
        return Opened(attempt=attempt, next=next)

    def _claim(
        self,
        tx: Tx,
        lane: Lane,
        session: Session,
        agent: ReadyAgent,
        turn: Turn,
        *,
        is_open: bool = False,
    ) -> TurnAttempt:
        """Take the lane for a turn and begin an attempt at it."""
        epoch = lane_rows.claim(tx, lane, owner=self._owner, turn_id=turn.id)
        return TurnAttempt(
            claim=LaneClaim(
                session_key=lane.session_key, turn_id=turn.id, owner=self._owner, epoch=epoch
            ),
            agent=agent,
            turn=turn,
            context=self._context(tx, session, turn, is_open=is_open),
        )

    def _context(self, tx: Tx, session: Session, turn: Turn, *, is_open: bool) -> Context:
        if turn.view is View.LIGHT:
            return self.contexts.light(tx, session, turn.id)
        return self.contexts.take(tx, session, turn.id if is_open else None)

    def _new_turn(
        self, tx: Tx, lane: Lane, session: Session, agent: ReadyAgent, group: Sequence[Stimulus]
    ) -> Turn:
        head = group[0]
        return Turn(
            id=self._deps.ids.turn(),
            session_key=lane.session_key,
            agent_id=lane.agent_id,
            transcript_id=session.transcript_id,
            kind=head.kind,
            priority=head.priority,
            trust=_trust(tx, group),
            source=head.source,
            route=head.route,
            root_id=head.root_id,
            depth=max(stimulus.depth for stimulus in group),
            opened_by=head.id,
            config_hash=agent.config_hash,
            state=TurnState.OPEN,
            phase=Phase.STREAMING,
            interrupt=Interrupt.NONE,
            is_preemptible=all(s.preemptions < MAX_PREEMPTIONS for s in group),
            attempts=1,
            retries=0,
            step=0,
            tool_calls=0,
            used_ms=0,
            input_tokens=0,
            output_tokens=0,
            cost=0.0,
            reply=None,
            error_kind=None,
            error=None,
            opened_at=tx.now,
            claimed_at=tx.now,
            ended_at=None,
            view=self._view(session, agent, head),
            granted=self._granted(group),
            reports_to=self._deps.reports_to(tx, head),
            for_people=self._is_for_people(tx, group),
        )

    def _view(self, session: Session, agent: ReadyAgent, head: Stimulus) -> View:
        rule = head.kind.rule
        if rule.view is not View.BY_KEY:
            return rule.view
        rules = agent.config.heartbeat if rule.acknowledges else self._deps.proactive_of(session)
        return View.LIGHT if rules.light_context else View.FULL

    def _is_for_people(self, tx: Tx, group: Sequence[Stimulus]) -> bool:
        gate = self._deps.gate
        return any(gate.is_for_people(tx, wake_of(stimulus)) for stimulus in group)

    def _granted(
        self, group: Sequence[Stimulus], answers: Sequence[Approval] = ()
    ) -> tuple[str, ...]:
        """Return the tools that each of those who open a turn is granted.

        An answer has what the turn had that asked.
        """
        others = [one for one in group if not answers or not one.kind.rule.is_answer]
        grants = [one.granted for one in answers] + [self._deps.grants_of(one) for one in others]
        first, *rest = map(frozenset, grants)
        return tuple(sorted(first.intersection(*rest)))

    def _reopen(
        self,
        tx: Tx,
        lane: Lane,
        session: Session,
        agent: ReadyAgent,
        ledger_failures: Mapping[str, str] = NO_FAILURES,
    ) -> Opened:
        """Go on with the open turn of a lane, from its last committed entry."""
        assert lane.turn_id is not None
        turns.reclaim(tx, lane.turn_id)
        turn = turns.get(tx, lane.turn_id)
        assert turn is not None
        attempt = self._claim(tx, lane, session, agent, turn, is_open=True)
        attempt.run = _run_of_turn(tx, turn.id, turn.kind)
        is_answered = load_step(tx, session, attempt)
        commit = TurnCommit(self._deps, tx, attempt, turn, session, ledger_failures)
        commit.publish("turn.resumed", epoch=attempt.claim.epoch, attempt=turn.attempts)
        next = commit.outcome(_go_on(commit, attempt, is_answered=is_answered)).apply(attempt)
        return Opened(attempt=attempt, next=next)


def _trust(tx: Tx, group: Sequence[Stimulus]) -> Trust:
    """Return how far a turn is trusted: no more than anybody who opens it together.

    Interrupted work has read what it has read: it is trusted no more than before.
    """
    if any(stimulus.trust is Trust.EXTERNAL for stimulus in group):
        return Trust.EXTERNAL
    head = group[0]
    before = (
        turns.get(tx, head.turn_id) if head.place is Place.INTERRUPTED and head.turn_id else None
    )
    return head.trust if before is None else before.trust


def _kind_of(tx: Tx, turn_id: str) -> Kind | None:
    turn = turns.get_partly(tx, turn_id)
    return None if turn is None else turn.kind


def _go_on(commit: TurnCommit, attempt: TurnAttempt, *, is_answered: bool) -> Next:
    """Go on from the last committed entry of a turn."""
    tx, turn, limits = commit.tx, commit.turn, attempt.agent.config.limits
    if turn.interrupt is not Interrupt.NONE:
        return next_step.end_interrupted(commit)
    if turn.attempts > limits.attempts:
        sentence = (
            f"This was tried {limits.attempts} times and stopped the process each time; "
            "it will not be tried again."
        )
        how = End(state=TurnState.FAILED, reply=sentence, error_kind="poisoned", error=sentence)
        return next_step.end(commit, how)
    purpose, _ = asks.last(tx, turn.id, turn.step)
    if not is_answered and purpose is Purpose.REPLY:
        return next_step.ask(commit, turn.step)
    if not is_answered:
        return next_step.compact(commit, turn.step, purpose)
    if purpose is not Purpose.REPLY:
        return next_step.next_step(commit, next_step.ask_or_compact)
    begun = tool_calls.of_step(tx, turn.id, turn.step)
    doubtful = [
        in_doubt(call)
        for call in attempt.step.open_calls
        if call.id in begun and not may_run_again(commit, call, begun[call.id].effect)
    ]
    write_outcomes(commit, doubtful)
    return next_step.go_on(commit)


def _answers(tx: Tx, group: Sequence[Stimulus]) -> list[Approval]:
    """Return what was asked and is answered by those who open a turn."""
    ids = [stimulus.id for stimulus in group if stimulus.kind.rule.is_answer]
    return approvals.answered_by(tx, ids) if ids else []


def _is_to_run(approval: Approval) -> bool:
    is_granted = approval.state is ApprovalState.GRANTED and approval.used_at is None
    return is_granted and approval.kind is ApprovalKind.TOOL


def _run_of(tx: Tx, head: Stimulus) -> AutomationRun | None:
    """Return the run that a stimulus is, if its turn is nothing else."""
    if head.kind.rule.limit is not Limit.JOB:
        return None
    return runs.of_stimuli(tx, [head.id]).get(head.id)


def _run_of_turn(tx: Tx, turn_id: str, kind: Kind | None) -> AutomationRun | None:
    is_run = kind is not None and kind.rule.limit is Limit.JOB
    return runs.of_turn(tx, turn_id) if is_run else None


def _first_step(commit: TurnCommit, head: Stimulus, answers: Sequence[Approval]) -> Next:
    """Run what was granted, or ask what the turn was opened for, if there is something to ask."""
    if commit.turn.kind.rule.work is Work.NOTHING:
        return next_step.end(commit, End(state=TurnState.DONE, reply=head.text))
    if next_step.is_moot(commit):
        return next_step.end(commit, End(state=TurnState.DONE))
    if is_compaction(commit.turn):
        return next_step.remember_or_compact(commit, 1)
    granted = next(filter(_is_to_run, answers), None)
    if granted is not None:
        commit.step = approved_step(granted)
        return next_step.go_on(commit)
    return next_step.ask_or_compact(commit, 1)
