"""Plans: what a message tells the stand-in model to do, readable in the message itself.

`{m7:look&look,slow+act.die,long+say}` is the plan of the message with the mark `m7`. Steps are
parted by commas, one for each time the model is asked: first its manners, parted by `+`, then the
tool calls of its reply, parted by `&`, each with a manner of its own after a dot; `say` is a reply
without calls. When the steps are used up the model says its last word.
"""

from collections.abc import Sequence

from wakeful.prompts import notes
from wakeful.testing.checker.marks import MARK
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage, UserMessage
from wakeful.vocabulary.record import Record

CHECK = "check_inbox"


class Planned(Record):
    """One tool call of a plan."""

    tool: str
    how: str = ""


class Step(Record):
    """What the model does when it is asked once."""

    manners: tuple[str, ...] = ()
    calls: tuple[Planned, ...] = ()


LAST_WORD = Step()


class Situation(Record):
    """What the messages of a request ask for."""

    marks: tuple[str, ...]
    step: Step


def marked(mark: str, plan: str = "") -> str:
    """Return the text of a message with a mark and a plan."""
    return f"Please {{{mark}:{plan}}}" if plan else f"Please {{{mark}}}"


# What came before these is over: it ended without a reply, or is named again right here.
_OVER = (notes.STOPPED, notes.FAILED, notes.still_to_do([]))


def situation(messages: Sequence[Message]) -> Situation:
    """Return whose plans count, those after the last final reply, and the step that is next."""
    marks: list[str] = []
    steps: list[Step] = []
    done = 0
    for message in messages:
        if isinstance(message, UserMessage):
            text = message.text
            for over in _OVER:
                if over in text:
                    marks, steps, done = [], [], 0
                    text = text.rpartition(over)[2]
            for match in MARK.finditer(text):
                marks.append(match[1])
                steps += [_step(text) for text in (match[2] or "").split(",") if text]
        elif isinstance(message, AssistantMessage):
            done += 1
            if not message.tool_calls:
                marks, steps, done = [], [], 0
    return Situation(marks=tuple(marks), step=steps[done] if done < len(steps) else LAST_WORD)


def shown_marks(messages: Sequence[Message]) -> list[str]:
    """Return the marks of all that people say in a request, whether or not it is still to do.

    What was read of the inbox stands in the result of a call.
    """
    said = (
        message.text
        for message in messages
        if isinstance(message, UserMessage)
        or (isinstance(message, ToolMessage) and message.name == CHECK)
    )
    return [match[1] for text in said for match in MARK.finditer(text)]


def _step(text: str) -> Step:
    *manners, batch = text.split("+")
    calls = [_planned(word) for word in batch.split("&") if word not in ("", "say")]
    return Step(manners=tuple(manners), calls=tuple(calls))


def _planned(word: str) -> Planned:
    tool, _, how = word.partition(".")
    return Planned(tool=tool, how=how)
