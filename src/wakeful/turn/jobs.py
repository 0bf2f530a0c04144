"""Turns of automations: what their model reads beside the conversation, and how they end."""

from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.outbox import outbox
from wakeful.prompts import automation as prompts
from wakeful.prompts.silence import spoken
from wakeful.turn.commit import TurnCommit
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.automation import AutomationRun
from wakeful.vocabulary.kinds import Answer
from wakeful.vocabulary.message import Message, UserMessage

_WENT_WRONG = frozenset({TurnState.FAILED, TurnState.TIMED_OUT})


def with_prompt(messages: Sequence[Message], run: AutomationRun) -> Sequence[Message]:
    """Return a conversation with the prompt of a run behind the line that tells of it.

    The prompt is in no entry: later turns read that line alone. Where the line was compacted, the
    prompt follows the summary.
    """
    prompt = run.rendered_prompt
    if prompt is None:
        return messages
    trigger = prompts.trigger_text(run.job_name, str((run.prompt_variables or {})["message"]))
    for position in reversed(range(len(messages))):
        message = messages[position]
        if isinstance(message, UserMessage) and trigger in message.text:
            shown = replace(message, text=f"{message.text}\n\n{prompt}")
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
        return replace(how, reply=prompts.failed(run.job_name, why))
    is_bound = commit.turn.kind.rule.answer is not Answer.POST
    if how.state is not TurnState.DONE or not is_bound or not spoken(how.reply or "").is_silent:
        return how
    if outbox.has_sent(commit.tx, commit.turn.id):
        return how  # people have heard of it
    closure = prompts.nothing_to_report(run.job_name)
    commit.say(closure, "closure")
    return replace(how, reply=closure)
