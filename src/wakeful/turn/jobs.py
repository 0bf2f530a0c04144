"""Turns of automations: what their model reads beside the conversation, and how they end."""

from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.outbox import outbox
from wakeful.prompts import automation as prompts
from wakeful.prompts.silence import spoken
from wakeful.turn.commit import TurnCommit
from wakeful.turn.context import Context
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.automation import AutomationRun
from wakeful.vocabulary.kinds import Answer
from wakeful.vocabulary.message import Message, UserMessage

_WENT_WRONG = frozenset({TurnState.FAILED, TurnState.TIMED_OUT})


def with_prompt(context: Context, run: AutomationRun, turn_id: str) -> Sequence[Message]:
    """Return a conversation with the prompt of a run behind what its turn began with.

    The prompt is in no entry: later turns read the line alone that tells of the run. Where what
    the turn began with was compacted, the prompt follows the summary.
    """
    messages, prompt = context.messages, run.rendered_prompt
    if prompt is None:
        return messages
    opening = context.opening_of(turn_id)
    for position, message in enumerate(messages):
        if opening is not None and message is opening:
            shown = replace(opening, text=f"{opening.text}\n\n{prompt}")
            return [*messages[:position], shown, *messages[position + 1 :]]
    return [*messages[:1], UserMessage(text=prompt), *messages[1:]]


def closing(commit: TurnCommit, how: End) -> End:
    """Return how the turn of an automation ends: visibly, and without what a provider said."""
    run = commit.run
    if run is None:
        return how
    if how.state in _WENT_WRONG:
        is_out_of_time = how.state is TurnState.TIMED_OUT
        why = prompts.why_failed(how.error_kind, is_out_of_time=is_out_of_time)
        said = prompts.failed(run.job_name, why)
        return replace(how, reply=said, error=said, detail=how.error)
    is_bound = commit.turn.kind.rule.answer is not Answer.POST
    if how.state is not TurnState.DONE or not is_bound or not spoken(how.reply or "").is_silent:
        return how
    if outbox.has_sent(commit.tx, commit.turn.id):
        return how  # people have heard of it
    closure = prompts.nothing_to_report(run.job_name)
    commit.say(closure, "closure")
    return replace(how, reply=closure)
