"""What the demo model understands: a table of requests, each with the one who answers it."""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.record import Record

MOST_RECALLED = 8  # memories read for one answer
LONGEST_ASK = 4000  # characters
LONGEST_QUOTE = 2000  # characters of a result that are repeated


class Ask(Record):
    """One request, and what came of it so far."""

    words: dict[str, str]  # what the pattern found: path, text, fact
    results: tuple[ToolMessage, ...]  # of the calls that were made for it, in order


class Say(Record):
    """Done: this is the answer."""

    text: str


class Use(Record):
    """Not done: these tools are needed first."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


Answer = Say | Use
Intent = tuple[str, Callable[[Ask], Answer]]

WHAT_TO_TRY = (
    'Try "what time is it in Europe/Berlin?", "remember that my cat is called Tom", '
    '"what do you remember?", "write notes.md: buy milk", "list files" or "read notes.md".'
)


def understand(text: str) -> tuple[Callable[[Ask], Answer], dict[str, str]] | None:
    """Return who answers a request and what it names, or None if nobody knows it."""
    for pattern, handler in INTENTS:
        if found := re.search(pattern, text, re.IGNORECASE | re.DOTALL | re.MULTILINE):
            return handler, {name: word or "" for name, word in found.groupdict().items()}
    return None


def answer(text: str, tools: frozenset[str], results: Sequence[ToolMessage]) -> Answer:
    """Return the next thing to do about a request, given the results of what was done."""
    if len(text) > LONGEST_ASK:  # the patterns would take too long over it
        return Say(text=f"As the demo model I read requests of up to {LONGEST_ASK} characters.")
    failed = next((result for result in results if result.is_error), None)
    if failed is not None:
        return Say(text=f"I used the tool {failed.name}, but it failed: {_quoted(failed.text)}")
    handler, words = understand(text) or (in_general, {})
    step = handler(Ask(words=words, results=tuple(results)))
    if isinstance(step, Use):
        missing = sorted({name for name, _ in step.calls} - tools)
        if missing:
            return Say(
                text=f"For this I would use the tool {missing[0]}, but this turn does not have it. "
                "An agent's configuration and the trust in who asks decide which tools there are."
            )
    return step


def be_quiet(ask: Ask) -> Answer:
    return Say(text=ask.words["token"].upper())


def tell_time(ask: Ask) -> Answer:
    if not ask.results:
        zone = ask.words["zone"].rstrip(".?!,;") or "UTC"
        return Use(text="I look at the clock.", calls=(("current_time", {"timezone": zone}),))
    return Say(
        text=f"It is {ask.results[0].text}. I asked the tool current_time; I know no time myself."
    )


def recall(ask: Ask) -> Answer:
    if not ask.results:
        return Use(text="I look into my memory.", calls=(("memory_read", {}),))
    index, *notes = (result.text for result in ask.results)
    listed = re.search(r"^\[other memories: (.*?)(?: and \d+ more)?\]\Z", index, re.MULTILINE)
    names = listed[1].split(", ")[:MOST_RECALLED] if listed else []
    if unread := names[len(notes) :]:
        calls = tuple(("memory_read", {"name": name}) for name in unread)
        return Use(text="There are some notes; I read them.", calls=calls)
    if notes:
        lines = "\n".join(f"- {_quoted(note.strip())}" for note in notes)
        return Say(text=f"I remember:\n{lines}\nThese are files in memory/ of my workspace.")
    if index.startswith("[the index is empty]"):
        return Say(text='I remember nothing yet. Say "remember that ..." to change that.')
    return Say(text=f"My memory's index, MEMORY.md, says:\n{_quoted(index)}")


def remember(ask: Ask) -> Answer:
    fact = ask.words["fact"].strip()
    name = _memory_name(fact)
    if not ask.results:
        call = ("memory_write", {"name": name, "text": f"{fact}\n"})
        return Use(text="I write that down.", calls=(call,))
    return Say(
        text=f"I will remember: {_quoted(fact)}\nIt is in my workspace as memory/{name}.md and "
        'survives restarts. Ask "what do you remember?" to see it.'
    )


def list_files(ask: Ask) -> Answer:
    if not ask.results:
        folder = _bare(ask.words["folder"])
        return Use(text="I look.", calls=(("list_files", {"folder": folder}),))
    return Say(
        text=f"My workspace, as the tool list_files shows it:\n{_quoted(ask.results[0].text)}"
    )


def write_file(ask: Ask) -> Answer:
    path, text = _bare(ask.words["path"]), _bare(ask.words["text"])
    if not ask.results:
        call = ("write_file", {"path": path, "text": f"{text}\n"})
        return Use(text=f"I write {path}.", calls=(call,))
    return Say(text=f'Done: {ask.results[0].text}. Say "read {path}" to see it.')


def read_file(ask: Ask) -> Answer:
    path = _bare(ask.words["path"])
    if not ask.results:
        return Use(text=f"I read {path}.", calls=(("read_file", {"path": path}),))
    return Say(text=f"{path} says:\n{_quoted(ask.results[0].text)}")


def delete_file(ask: Ask) -> Answer:
    path = _bare(ask.words["path"])
    if not ask.results:
        return Use(text=f"I delete {path}.", calls=(("delete_file", {"path": path}),))
    return Say(text=f"Done: {ask.results[0].text}.")


def explain_sending(_: Ask) -> Answer:
    return Say(
        text="Sending is the tool send_message: it files a row in the outbox together with its "
        "own result, and whoever stands at that door sends it, again after a crash. It reaches "
        "this conversation and the routes in the agent's configuration, nobody else. I only "
        "explain it; a real model would use it."
    )


def introduce(_: Ask) -> Answer:
    return Say(
        text="I am the demo model: a small table of rules that comes with wakeful, without a "
        "network and without a key. What you say becomes a stimulus in the ledger, a lane opens a "
        "turn for it, and every answer and every tool call of mine is committed before the next "
        f"step, so that a crash loses nothing. {WHAT_TO_TRY} A real model comes by its name, "
        "provider:model."
    )


def greet(_: Ask) -> Answer:
    return Say(text=f"Hello! I am the demo model of wakeful. {WHAT_TO_TRY}")


def welcome(_: Ask) -> Answer:
    return Say(text="You are welcome.")


def in_general(_: Ask) -> Answer:
    return Say(
        text="I read that, but I am only the built-in demo model and understand a few plain "
        f"requests. {WHAT_TO_TRY} For real answers choose a model by provider:model."
    )


_PATH = r"[`'\"]?(?P<path>[^\s`'\"?]+\.\w{1,8})[`'\"]?"
_NAMED = r"(?:the\s+)?(?:file\s+)?"

# The first that fits answers; the narrow ones come first.
INTENTS: tuple[Intent, ...] = (
    (r"\b(?:reply|answer|respond)\b.*\b(?P<token>HEARTBEAT_OK|NO_REPLY)\b", be_quiet),
    (rf"\bwrite\s+{_NAMED}{_PATH}:\s*(?P<text>.+)", write_file),
    (rf"\bwrite\s+(?P<text>.+)\s+(?:in)?to\s+{_NAMED}{_PATH}", write_file),
    (r"\bwhat\b.*\b(?:do|can)\s+you\s+(?:remember|recall|know about me)\b", recall),
    (r"\b(?:show|read|what(?:'s| is) in)\s+(?:me\s+)?your\s+memory\b", recall),
    (r"\bremember\b(?:\s+that\b)?[:,]?\s+(?P<fact>.*\S)", remember),
    (
        r"\bwhat(?:'s|\s+is)?\s+(?:the\s+)?(?:current\s+)?(?:time|date|day)\b"
        r"(?:.*?\bin\s+(?P<zone>[A-Z][\w+/-]*))?",
        tell_time,
    ),
    (
        r"\b(?:list|show|what)\b.*\bfiles\b(?:\s+in\s+(?:(?:the\s+)?folder\s+)?"
        r"(?P<folder>\S+/\S*|(?<=folder\s)\S+))?",
        list_files,
    ),
    (rf"\bdelete\s+{_NAMED}{_PATH}", delete_file),
    (rf"\b(?:read|show|open)\s+(?:me\s+)?{_NAMED}{_PATH}", read_file),
    (r"\bsend\b.*\bto\b", explain_sending),
    (r"\b(?:who|what)\s+are\s+you\b|\bwhat\s+can\s+you\s+do\b|\bhelp\b", introduce),
    (r"\bhow\s+(?:do|does)\s+(?:you|this|it|that)\s+work\b", introduce),
    (r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening))\b", greet),
    (r"\b(?:thanks|thank\s+you)\b", welcome),
)


def _bare(words: str) -> str:
    """Return words without the quotes around them."""
    stripped = words.strip()
    is_quoted = len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "'\"`"
    return stripped[1:-1] if is_quoted else stripped


def _quoted(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}…"


def _memory_name(fact: str) -> str:
    """Name a memory by its first words, so that saying the same again changes nothing."""
    words = re.findall(r"[a-z0-9]+", fact.lower())[:6]
    digest = hashlib.sha256(fact.encode("utf-8", "replace")).hexdigest()[:6]
    return "-".join((*words, digest))[-64:].lstrip("-")
