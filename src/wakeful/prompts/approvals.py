"""What models and people are told of approvals and questions."""

from collections.abc import Sequence

from wakeful.vocabulary.text import one_line, shortened

LONGEST_ARGUMENTS = 2_000  # characters of a call that are repeated
LONGEST_LINE = 200  # characters of it where many are listed
MOST_LISTED = 20  # open ones that a model is reminded of

ASK_FIRST = (
    "waiting for approval #{number}: a person must allow this call of {tool} before it may run. "
    "Nothing was done yet. This turn ends now; you will be told of the decision. If it is granted, "
    "the call runs by itself: do not repeat it."
)
RUNS_NEXT = (
    "waiting for approval #{number}: it was granted, and the call runs by itself in a turn of its "
    "own. Nothing was done yet; do not repeat it."
)
NOT_ALLOWED = "not allowed: the settings deny calls of {tool}. Nothing was done."
QUESTION_ASKED = (
    "asked as #{number}; this turn ends now. The next message of a person here is the answer."
)


def call_text(tool: str, arguments: str) -> str:
    """Return a call as people and models read it."""
    return f"{tool}({shortened(arguments, LONGEST_ARGUMENTS)})"


def approved(number: int, tool: str, arguments: str, result: str) -> str:
    """Return what came of a call that was granted."""
    return f"Approved #{number}: {call_text(tool, arguments)} → {result}"


def granted(number: int, tool: str, note: str | None) -> str:
    """Tell a model that a call of its was granted; what came of it follows."""
    return f"[Approval #{number} was granted: {tool} runs now, and its result follows.]" + _of(note)


def denied(number: int, tool: str, arguments: str, note: str | None) -> str:
    return (
        f"[Approval #{number} was denied: {call_text(tool, arguments)} was not run. "
        f"Do not try to do the same in another way.]{_of(note)}"
    )


def expired(number: int, tool: str, arguments: str) -> str:
    return (
        f"[Approval #{number} has expired: nobody decided in time, and "
        f"{call_text(tool, arguments)} was not run.]"
    )


def answered(number: int, question: str, answer: str) -> str:
    """Tell a model the answer to a question of its, given elsewhere."""
    return f"[The answer to your question #{number}, {_quoted(question)}:]\n{answer}"


def unanswered(number: int, question: str, note: str | None) -> str:
    return f"[Your question #{number}, {_quoted(question)}, will not be answered.]" + _of(note)


def question_expired(number: int, question: str) -> str:
    return f"[Nobody answered your question #{number} in time: {_quoted(question)}]"


def answers_next(number: int, question: str) -> str:
    """Tell a model that what follows is the answer to a question of its."""
    return f"[What follows answers your question #{number}: {_quoted(question)}]"


def for_people(number: int, tool: str | None, question: str | None) -> str:
    """Return what people hear with the reply of a turn that has asked them something."""
    if question is not None:
        return question
    return f"Waiting for approval #{number}: {tool} (/approve {number} or /deny {number})."


def line_of(number: int, tool: str | None, arguments: str | None, question: str | None) -> str:
    """Return something that was asked, as a line."""
    if question is not None:
        return f"#{number}: {one_line(question, LONGEST_LINE)}"
    return f"#{number}: {tool}({one_line(arguments or '', LONGEST_LINE)})"


def still_open(lines: Sequence[str]) -> str:
    """Remind a model of what it waits for, when it may have forgotten."""
    listed = "".join(f"\n- {line}" for line in lines)
    return f"[You still wait for people to decide the following; do not ask again.]{listed}"


def _of(note: str | None) -> str:
    return f"\nThe operator says: {note}" if note else ""


def _quoted(question: str) -> str:
    return f'"{shortened(question, LONGEST_ARGUMENTS)}"'
