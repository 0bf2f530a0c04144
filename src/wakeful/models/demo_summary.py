"""How the demo model compacts a conversation: the first and the last things people said."""

import re

from wakeful.vocabulary.text import one_line

LONGEST_LINE = 200  # characters kept of what somebody said
MOST_LINES = 5

_HEADING = re.compile(r"^## .+$", re.MULTILINE)
_PERSON = re.compile(r"^\[Person\]: (.+)$", re.MULTILINE)
_PREVIOUS = re.compile(r"<previous-summary>\n(.*?)\n</previous-summary>", re.DOTALL)


def summed_up(question: str) -> str:
    """Return a summary under the headings that the question asks for."""
    before = _PREVIOUS.search(question)
    said = [one_line(line, LONGEST_LINE) for line in _PERSON.findall(question)]
    kept = _kept(before[1]) if before else []
    lines = [*kept, *(line for line in said if line not in kept)][-MOST_LINES:]
    task = question.rpartition(">\n\n")[2]
    parts: list[str] = []
    for heading in dict.fromkeys(_HEADING.findall(task)):
        body = "none"
        if heading == "## Goal" and lines:
            body = lines[0]
        elif heading == "## Critical context" and lines:
            body = "\n".join(f"- {line}" for line in lines)
        parts.append(f"{heading}\n{body}")
    return "\n".join(parts)


def _kept(summary: str) -> list[str]:
    return [line.removeprefix("- ") for line in summary.splitlines() if line.startswith("- ")]
