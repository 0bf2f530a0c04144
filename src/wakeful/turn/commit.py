"""One commit of a turn: the facts that it writes, and what the attempt learns of it."""

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from wakeful import attachments
from wakeful.approvals.answering import Answering
from wakeful.automations.acts import AutomationActs
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate.budgets import BudgetRefusal, Payer, PricedQuestion
from wakeful.gate.gate import WakeGate
from wakeful.gate.money import broken_off, nano
from wakeful.intake.filing import File
from wakeful.models.tariffs import tariffs_of
from wakeful.prompts.approvals import answers_next
from wakeful.prompts.automation import trigger_text
from wakeful.prompts.silence import spoken
from wakeful.store.database import Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.transcript.sessions import Session
from wakeful.triggers.heartbeat_answers import heard
from wakeful.turn.attempt import Asking, Fenced, Next, StepState, TurnAttempt
from wakeful.turn.context import Context
from wakeful.turn.ending import Ending, fail_asks
from wakeful.turn.resume import load_step
from wakeful.turns import asks, turns
from wakeful.turns.asks import AskEnd, AskState, Reserved
from wakeful.turns.turns import Phase, Turn, TurnState
from wakeful.vocabulary.entry import (
    POST_TOPIC,
    AssistantBody,
    Body,
    Entry,
    EntryKind,
    NoteBody,
    TriggerBody,
    UserBody,
    attached,
)
from wakeful.vocabulary.errors import Invariant
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Answer, View, Work
from wakeful.vocabulary.message import AssistantMessage, StopReason, Text
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import QueueSettings
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import (
    Attachment,
    KeptAttachment,
    ReadyAttachment,
    Stimulus,
    Trust,
)
from wakeful.vocabulary.text import clean
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN, counted, tokens_of_attachments

QueueSettingsOf = Callable[[Session, Stimulus], QueueSettings]
# What the settings say of a stimulus: the tools that its source is granted beyond those of its
# trust, and the session that hears of the end of its turn.
GrantsOf = Callable[[Stimulus], tuple[str, ...]]
ReportsTo = Callable[[Tx, Stimulus], str | None]
ProactiveOf = Callable[[Session], ProactiveRules]

INBOX = "inbox: "  # before who left it there, where a model reads of whom something is

NO_FAILURES: Mapping[str, str] = {}


class TurnDeps(Record):
    """What the commits of turns need of the other rooms."""

    bus: Bus
    ids: Ids
    ending: Ending
    settlement: Settlement
    gate: WakeGate
    queue_settings_of: QueueSettingsOf
    file: File
    grants_of: GrantsOf
    reports_to: ReportsTo
    proactive_of: ProactiveOf
    answering: Answering
    automations: AutomationActs


class CommitOutcome(Record):
    """What one commit wrote; the attempt takes it over once it is on disk."""

    next: Next
    turn: Turn
    step: StepState | None = None  # None: it wrote nothing
    entries: tuple[Entry, ...] = ()
    context: Context | None = None  # built anew: what the model sees is no longer what it was

    def apply(self, attempt: TurnAttempt) -> Next:
        """Bring what an attempt knows in line with what was committed."""
        attempt.turn = self.turn
        if self.context is None:
            attempt.context.extend(self.entries)
        else:
            attempt.context = self.context
        attempt.step = self.step or StepState()
        attempt.finished.clear()
        attempt.asking = Asking()
        return self.next


class TurnCommit:
    """A commit in the making; thrown away with its transaction if that must run again."""

    def __init__(
        self,
        deps: TurnDeps,
        tx: Tx,
        attempt: TurnAttempt,
        turn: Turn,
        session: Session,
        ledger_failures: Mapping[str, str] = NO_FAILURES,
    ) -> None:
        self.deps = deps
        self.tx = tx
        self.agent = attempt.agent
        self.run = attempt.run
        self.can_remember = attempt.can_remember
        self.epoch = attempt.claim.epoch
        self.turn = turn
        self.session = session
        self.step = attempt.step.copy()
        self.used_s = attempt.used_s
        self.prepared = attempt.prepared
        self.answered_by: str | None = None  # another model than the first
        self.ledger_failures = ledger_failures  # call id → what its ledger tool raised
        self.written: list[Entry] = []
        self._lines: list[NewEntry] = []
        self._context: Context | None = None  # after a compaction
        self._counted, self._counted_lines = attempt.context.tokens, 0
        self._is_counted = attempt.context.is_counted
        self._asking = attempt.asking

    def outcome(self, next: Next) -> CommitOutcome:
        """Write what was gathered and return all of it."""
        self.flush()
        return CommitOutcome(
            next=next,
            turn=self.turn,
            step=self.step,
            entries=tuple(self.written),
            context=self._context,
        )

    def add(self, body: Body, *, kind: EntryKind = EntryKind.MESSAGE) -> None:
        """Add a line to the transcript."""
        self._lines.append(
            NewEntry(
                id=self.deps.ids.entry(),
                kind=kind,
                body=body,
                turn_id=self.turn.id,
                epoch=self.epoch,
            )
        )

    def keep(self, attached: Iterable[Attachment | ReadyAttachment]) -> tuple[KeptAttachment, ...]:
        """Keep the bytes of what goes along with a line of this commit, which then holds them."""
        ready = [one for one in attached if isinstance(one, ReadyAttachment)]
        return attachments.put(self.tx, ready)

    def note(self, topic: str, text: str) -> None:
        """Add a line of the runtime's own that the model reads."""
        self.add(NoteBody(topic=topic, text=text), kind=EntryKind.CUSTOM_MESSAGE)

    def say(self, text: str, stop_reason: StopReason) -> None:
        """Add words that are no whole reply of a model: cut off, or the runtime's own."""
        said = AssistantMessage(content=(Text(text=clean(text)),), stop_reason=stop_reason)
        self.add(AssistantBody(message=said, is_silent=self._is_silent_work))

    def add_stimulus(
        self, stimulus: Stimulus, text: str | None = None, *, is_again: bool = False
    ) -> None:
        """Add the line that shows a stimulus to the model; there is one per stimulus, ever.

        What a model no longer sees is shown again, without being its line.
        """
        if not is_again:
            self._note_answer(stimulus)
        kind, body = self._line_of(stimulus, stimulus.text if text is None else text)
        self._lines.append(
            NewEntry(
                id=self.deps.ids.entry(),
                kind=kind,
                body=body,
                turn_id=self.turn.id,
                stimulus_id=None if is_again else stimulus.id,
                epoch=self.epoch,
            )
        )

    def _line_of(self, stimulus: Stimulus, text: str) -> tuple[EntryKind, Body]:
        """Return the line that shows a stimulus, by what it is."""
        is_external, run = stimulus.trust is Trust.EXTERNAL, self.run
        if stimulus.kind.rule.work is Work.NOTHING:
            post = NoteBody(topic=POST_TOPIC, text=text, is_external=is_external)
            return EntryKind.CUSTOM_MESSAGE, post
        if run is not None and run.stimulus_id == stimulus.id and run.prompt_ref is not None:
            return EntryKind.AUTOMATION_TRIGGER, TriggerBody(
                text=trigger_text(run.job_name, text),
                automation_id=run.job_id,
                automation_name=run.job_name,
                automation_run_id=run.id,
                automation_prompt_ref=run.prompt_ref,
                source=stimulus.source,
                is_external=is_external,
            )
        return EntryKind.MESSAGE, UserBody(
            text=text,
            source=f"{INBOX}{stimulus.source}" if stimulus.in_inbox else stimulus.source,
            is_external=is_external,
            attachments=stimulus.attachments,
        )

    def _note_answer(self, stimulus: Stimulus) -> None:
        """Say that a message answers what the agent has asked, if it does."""
        question = self.deps.answering.answer_by(self.tx, stimulus)
        if question is not None:
            text = answers_next(question.number, question.question or "")
            is_external = question.trust is Trust.EXTERNAL
            note = NoteBody(topic="answer", text=text, is_external=is_external)
            self.add(note, kind=EntryKind.CUSTOM_MESSAGE)

    def write_reply(self, reply: AssistantMessage) -> None:
        """Write a model's reply; it is never asked for again."""
        self.settle_ask(reply)
        is_silent = self._is_silent(reply)
        is_partial = self.turn.view is View.LIGHT
        self.add(AssistantBody(message=reply, is_silent=is_silent, is_partial=is_partial))
        self._count(counted(reply))
        # The size of what a light turn sees says nothing about its session's.
        tokens = None if is_partial else self.tokens()
        sessions.add_usage(self.tx, self.turn.session_key, reply.usage, tokens)
        self.step = StepState(reply.tool_calls, said=reply.text, thought=reply.thought)

    def settle_ask(self, answer: AssistantMessage) -> None:
        """Settle the question that was asked, and count what its answer used."""
        turn, usage = self.turn, answer.usage
        lost = self._asking.lost
        how = AskEnd(
            state=AskState.ANSWERED,
            usage=usage,
            error=" ".join(answer.failures) or None,
            cost=None if usage.cost is None else nano(usage.cost + lost),
            is_estimate=lost > 0,
        )
        self._settle(how, answer.model)
        usage = replace(usage, cost=(usage.cost or 0.0) + lost)
        model = f"{answer.provider}:{answer.model}".strip(":")
        if answer.failures:
            self.answered_by = model
            self.publish("turn.fell_back", model=answer.model, failures=list(answer.failures))
        turns.note_usage(self.tx, turn.id, usage, model)
        self.turn = replace(
            turn,
            model=model,
            input_tokens=turn.input_tokens + usage.input,
            output_tokens=turn.output_tokens + usage.output,
            cost=turn.cost + (usage.cost or 0.0),
            reserved=0,
        )

    def fail_ask(self, state: AskState, error: str | None) -> None:
        """Settle a question that has no answer, at what it may have cost."""
        asking = self._asking
        grant, cost = asking.grant, nano(asking.lost)
        if grant is not None and not asking.is_free:
            seen = asking.seen // CHARACTERS_PER_TOKEN
            cost += broken_off(tariffs_of(self.agent.model), grant, seen)
        self._fail(AskEnd(state=state, error=error, cost=cost, is_estimate=cost > 0))

    def abandon_ask(self) -> None:
        """Settle a question that an earlier attempt left behind: nobody knows what it cost."""
        self._fail(AskEnd(state=AskState.ABANDONED, is_estimate=True, costs_all=True))

    def _fail(self, how: AskEnd) -> None:
        self.turn = fail_asks(self.tx, self.deps.gate.budgets, self.turn, how, self.turn.step)

    def _settle(self, how: AskEnd, model: str) -> None:
        turn, budgets = self.turn, self.deps.gate.budgets
        for settled in asks.settle(self.tx, turn.id, turn.step, how):
            budgets.settle(self.tx, turn.agent_id, settled, model)

    def reserve(self, most: int | None) -> Reserved | BudgetRefusal:
        """Set aside what the next question of this turn may cost, or say why it may not be."""
        turn, model = self.turn, self.agent.model
        person = turn.kind.rule.is_person and turn.for_people
        payer = Payer(
            agent_id=turn.agent_id,
            origin=turn.kind.origin,
            source=turn.source,
            for_people=turn.for_people,
            is_external=self._was_begun_outside(),
            opens=turn.step == 0 and not person,
        )
        fixed = 0 if self._is_counted else self.agent.fixed_tokens
        turn_cap = nano(self.agent.config.limits.money)
        question = PricedQuestion(
            tariffs=tariffs_of(model),
            read=self.tokens() + fixed,
            most=most,
            turn_cap=turn_cap,
            allowance=turn_cap - nano(turn.cost),
        )
        return self.deps.gate.budgets.reserve(self.tx, payer, question)

    def _was_begun_outside(self) -> bool:
        """Tell whether a stranger pays for this turn: its own trust may have sunk since."""
        if self.turn.trust is Trust.OPERATOR or self.turn.for_people:
            return False
        opener = stimuli.get(self.tx, self.turn.opened_by)
        return opener is None or opener.trust is Trust.EXTERNAL

    def flush(self) -> None:
        """Write the lines gathered so far."""
        self.session, written = entries.append(self.tx, self.session, self._lines)
        self.written += written
        self._lines = []

    def tokens(self) -> int:
        """Return how large the conversation is with the lines of this commit."""
        self.flush()
        new = self.written[self._counted_lines :]
        more = sum(tokens_of_attachments(attached(line)) for line in new)
        return self._counted + more + sum(len(line.body) for line in new) // CHARACTERS_PER_TOKEN

    def show_anew(self, context: Context) -> None:
        """Go on with another view of the conversation."""
        self._context = context
        self._count(context.tokens)
        self._is_counted = context.is_counted

    def taint(self) -> None:
        """Let the turn's trust sink: its model is shown text from outside from here on."""
        if self.turn.trust is Trust.OPERATOR:
            self.turn = turns.taint(self.tx, self.turn)

    def narrow(self, granted: tuple[str, ...]) -> None:
        """Keep of the turn's grants those that somebody has who is heard in it from here on."""
        self.turn = turns.narrow(self.tx, self.turn, granted)

    def enter(self, phase: Phase, *, step: int, tool_calls: int, reserved: int = 0) -> None:
        """Note how far the turn has come, and what its question may cost."""
        turns.enter(self.tx, self.turn, phase, step=step, tool_calls=tool_calls, reserved=reserved)
        retries = 0 if step > self.turn.step else self.turn.retries
        self.turn = replace(
            self.turn,
            phase=phase,
            step=step,
            tool_calls=tool_calls,
            retries=retries,
            reserved=reserved,
        )

    def publish(self, kind: str, stimulus_id: str | None = None, **data: object) -> None:
        """Publish an event of this turn."""
        turn = self.turn
        self.deps.bus.publish(
            self.tx, kind, turn.session_key, turn_id=turn.id, stimulus_id=stimulus_id, **data
        )

    def _is_silent(self, reply: AssistantMessage) -> bool:
        """Tell whether nobody hears of a reply; of a heartbeat's, only the last is delivered."""
        if self.turn.kind.rule.acknowledges and not reply.tool_calls:
            rules = self.agent.config.heartbeat
            answer = heard(self.session, rules, reply.text, self.tx.now)
            return spoken(answer.text).is_silent
        if reply.tool_calls:
            return self.turn.kind.rule.acknowledges
        return spoken(reply.text).is_silent or self._is_silent_work

    @property
    def _is_silent_work(self) -> bool:
        rule = self.turn.kind.rule
        return rule.answer is Answer.NOBODY or rule.work is Work.COMPACT

    def _count(self, tokens: int | None) -> None:
        """Take over what the model counted, if it did, for everything up to here."""
        if tokens is not None:
            self._counted = tokens
            self._is_counted = True
            self._counted_lines = len(self.written) + len(self._lines)


def commit_step(
    deps: TurnDeps,
    tx: Tx,
    attempt: TurnAttempt,
    act: Callable[[TurnCommit], Next],
    ledger_failures: Mapping[str, str] = NO_FAILURES,
) -> CommitOutcome:
    """Make one commit of an attempt: `act` writes it and decides, under the lock, what is next."""
    commit = _begin(deps, tx, attempt, ledger_failures)
    if commit is None:
        return CommitOutcome(next=Fenced(), turn=attempt.turn)
    return commit.outcome(act(commit))


def is_fenced(tx: Tx, attempt: TurnAttempt) -> bool:
    """Tell whether another attempt owns the lane."""
    claim = attempt.claim
    return not lane_rows.is_held(tx, claim.session_key, claim.owner, claim.epoch)


def _begin(
    deps: TurnDeps, tx: Tx, attempt: TurnAttempt, ledger_failures: Mapping[str, str]
) -> TurnCommit | None:
    if is_fenced(tx, attempt):
        return None
    key = attempt.claim.session_key
    turn, session = turns.get(tx, attempt.claim.turn_id), sessions.get(tx, key)
    if turn is None or session is None or turn.state is not TurnState.OPEN:
        raise Invariant(f"the lane of {key!r} is held without an open turn")
    if attempt.is_stale:
        _catch_up(tx, attempt, turn, session)
    return TurnCommit(deps, tx, attempt, turn, session, ledger_failures)


def _catch_up(tx: Tx, attempt: TurnAttempt, turn: Turn, session: Session) -> None:
    """Drop what an attempt takes for news although a commit it never heard of has it."""
    if turn.step != attempt.turn.step:
        attempt.partial.clear()
        attempt.finished.clear()
    attempt.turn = turn
    if load_step(tx, session, attempt):
        attempt.partial.clear()
