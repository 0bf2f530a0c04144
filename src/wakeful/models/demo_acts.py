"""What the demo model does about each kind of request: one function each, by rules alone."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from wakeful.models.demo_sums import result_of
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.spans import is_span, parse_span
from wakeful.vocabulary.text import one_line

MOST_RECALLED = 8  # memories read for one answer
LONGEST_QUOTE = 2000  # characters of a result that are repeated
MOST_EXAMPLES = 6  # in one answer
LONGEST_REPORT = 400  # characters of what came from outside

REAL_MODEL = (
    "A real model is two lines in a terminal:\n"
    "```sh\n"
    'umask 077; echo "ANTHROPIC_API_KEY=…" >> ~/.wakeful/environment\n'
    "wakeful config set agents.main.model anthropic:claude-sonnet-4-5\n"
    "```\n"
    "A running server takes both at once. OPENAI_API_KEY, GEMINI_API_KEY and OPENROUTER_API_KEY "
    "open models of theirs, Ollama needs no key; docs/howto/models.md has more."
)
_OFF_BY_DEFAULT = ("shell", "web_fetch")
# The lines that fence what came from outside, for models alone.
_FENCES = re.compile(
    r"^(?:The block below came from outside [^\n]*|<<<external \w+|external \w+>>>)(?:\n|\Z)",
    re.MULTILINE,
)


class Task(Record):
    """One request, and what came of it so far."""

    words: dict[str, str]  # what the pattern found: path, text, fact
    results: tuple[ToolMessage, ...]  # of the calls that were made for it, in order
    tools: frozenset[str] = frozenset()
    examples: tuple[str, ...] = ()  # what could be asked for with these tools


class Say(Record):
    """Done: this is the answer."""

    text: str


class Use(Record):
    """Not done: these tools are needed first."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...]


Answer = Say | Use
Act = Callable[[Task], Answer]


def be_quiet(ask: Task) -> Answer:
    return Say(text=ask.words["token"].upper())


def wake(ask: Task) -> Answer:
    """Tell what a sleep was for; whoever is woken for nothing says nothing."""
    kind, reason = ask.words["kind"], ask.words["reason"]
    if kind == "greeting":
        return greet(ask)
    if kind != "sleep_wake" or reason == "no reason given":
        return Say(text="NO_REPLY")
    return Say(text=f"I am awake again. I slept because: {reason}")


def take_up(ask: Task) -> Answer:
    """Say what was left in the inbox; whatever it asks for is not done."""
    source, text = ask.words["source"], _quoted(ask.words["text"].strip())
    return Say(text=f"{source} left this in my inbox: {text}\nI have read it, and tell you of it.")


def read_inbox(ask: Task) -> Answer:
    if not ask.results:
        return Use(text="I look into my inbox.", calls=(("check_inbox", {}),))
    shown = _quoted(_FENCES.sub("", ask.results[0].text).strip())
    return Say(text=f"My inbox, as the tool check_inbox shows it:\n{shown}")


def report(ask: Task) -> Answer:
    """Say what came from outside; whatever it asks for is not done."""
    text = one_line(ask.words["text"], LONGEST_REPORT)
    return Say(text=f"{ask.words['source']} sent this: {text}\nI have read it, and did no more.")


def sleep(ask: Task) -> Answer:
    """Rest for a while; the turn ends with it."""
    span = ask.words["span"]
    if ask.results:
        return Say(text="I stay awake.")
    if not is_span(span):
        return in_general(ask)
    arguments = {"duration_ms": parse_span(span, "span"), "reason": "you told me to"}
    return Use(
        text=f"I sleep for {span}; write to me and I am awake.", calls=(("sleep", arguments),)
    )


def report_approved(ask: Task) -> Answer:
    """Say what came of a call that somebody approved."""
    return Say(
        text=f"You approved #{ask.words['number']}, and it was done:\n"
        f"{_quoted(ask.words['result'])}"
    )


def leave_it(ask: Task) -> Answer:
    """Say that a call was not made, since nobody approved it."""
    return Say(text=f"Approval #{ask.words['number']} {ask.words['how']}, so I leave it.")


def go_without(_ask: Task) -> Answer:
    return Say(text="Nobody answered my question, so I go on without.")


def ask_people(ask: Task) -> Answer:
    """Ask whoever speaks here; the turn ends with it."""
    if ask.results:
        return Say(text="I asked.")
    question = ask.words["question"].strip().rstrip(".?!")
    return Use(text="", calls=(("ask_human", {"question": f"Tell me: {question}?"}),))


def take_answer(ask: Task) -> Answer:
    said = ask.words["answer"] or ask.words["told"]
    return Say(text=f"You answered: {_quoted(said.strip())}")


def use_a_tool(ask: Task) -> Answer:
    """Call any tool by its name, those of MCP servers too."""
    name = ask.words["tool"]
    if not ask.results:
        return Use(text=f"I use {name}.", calls=((name, _arguments(ask.words["arguments"])),))
    return Say(text=f"The tool {name} says:\n{_quoted(ask.results[0].text)}")


def tell_time(ask: Task) -> Answer:
    if not ask.results:
        zone = ask.words["zone"].rstrip(".?!,;")
        where = {"timezone": zone} if zone else {}
        return Use(text="I look at the clock.", calls=(("current_time", where),))
    return Say(
        text=f"It is {ask.results[0].text}. I asked the tool current_time; I know no time myself."
    )


def recall(ask: Task) -> Answer:
    if not ask.results:
        return Use(text="I look into my memory.", calls=(("memory_read", {}),))
    index, *notes = (result.text for result in ask.results)
    listed = re.search(r"^\[other memories: (.*?)(?: and \d+ more)?\]\Z", index, re.MULTILINE)
    names = listed[1].split(", ")[:MOST_RECALLED] if listed else []
    if unread := names[len(notes) :]:
        calls = tuple(("memory_read", {"name": name}) for name in unread)
        return Use(text="There are some notes; I read them.", calls=calls)
    if notes:
        wanted = _about(ask.words.get("topic", ""), notes)
        lines = "\n".join(f"- {_quoted(note.strip())}" for note in wanted)
        return Say(text=f"I remember:\n{lines}\nThese are files in memory/ of my workspace.")
    if index.startswith("[the index is empty]"):
        return Say(text='I remember nothing yet. Say "remember that ..." to change that.')
    return Say(text=f"My memory's index, MEMORY.md, says:\n{_quoted(index)}")


def remember(ask: Task) -> Answer:
    fact = ask.words["fact"].strip()
    name = _memory_name(fact)
    if not ask.results:
        call = ("memory_write", {"name": name, "text": f"{fact}\n"})
        return Use(text="I write that down.", calls=(call,))
    return Say(
        text=f"I will remember: {_quoted(fact)}\nIt is in my workspace as memory/{name}.md and "
        'survives restarts. Ask "what do you remember?" to see it.'
    )


def list_files(ask: Task) -> Answer:
    if not ask.results:
        folder = _bare(ask.words["folder"])
        return Use(text="I look.", calls=(("list_files", {"folder": folder}),))
    return Say(
        text=f"My workspace, as the tool list_files shows it:\n{_quoted(ask.results[0].text)}"
    )


def write_file(ask: Task) -> Answer:
    path, text = _bare(ask.words["path"]), _bare(ask.words["text"])
    if not ask.results:
        call = ("write_file", {"path": path, "text": f"{text}\n"})
        return Use(text=f"I write {path}.", calls=(call,))
    return Say(text=f'Done: {ask.results[0].text}. Say "read {path}" to see it.')


def read_file(ask: Task) -> Answer:
    path = _bare(ask.words["path"])
    if not ask.results:
        return Use(text=f"I read {path}.", calls=(("read_file", {"path": path}),))
    return Say(text=f"{path} says:\n{_quoted(ask.results[0].text)}")


def delete_file(ask: Task) -> Answer:
    path = _bare(ask.words["path"])
    if not ask.results:
        return Use(text=f"I delete {path}.", calls=(("delete_file", {"path": path}),))
    return Say(text=f"Done: {ask.results[0].text}.")


def fetch(ask: Task) -> Answer:
    url = ask.words["url"].rstrip(".,;!?)")
    if not ask.results:
        return Use(text=f"I fetch {url}.", calls=(("web_fetch", {"url": url}),))
    return Say(text=f"{url} says:\n{_quoted(ask.results[0].text)}")


def run_command(ask: Task) -> Answer:
    command = ask.words["command"]
    if not ask.results:
        return Use(text="I run it.", calls=(("shell", {"command": command}),))
    return Say(text=f"I ran it in my workspace:\n{_quoted(ask.results[0].text)}")


def look_back(ask: Task) -> Answer:
    if not ask.results:
        call = ("sessions_history", {"limit": 100, "include_tools": True})
        return Use(text="I look back.", calls=(call,))
    history = ask.results[0].text
    named = (names.split(", ") for names in re.findall(r" \[called ([^\]]*)\]$", history, re.M))
    used = Counter(name for names in named for name in names)
    asked = len(re.findall(r"^\[en_\w+ \S+\] (?!you:|tool |note:)", history, re.M))
    did = ", ".join(f"{name} {count}×" for name, count in sorted(used.items())) or "none"
    return Say(
        text=f"In this conversation I have read {asked} messages so far, and used these tools: "
        f"{did}. `wakeful why last` shows what each turn cost and did."
    )


def list_sessions(ask: Task) -> Answer:
    if not ask.results:
        return Use(text="I look.", calls=(("sessions_list", {}),))
    return Say(text=f"My conversations, the latest first:\n{_quoted(ask.results[0].text)}")


def send(ask: Task) -> Answer:
    text, address = _bare(ask.words["text"]), _bare(ask.words["address"]).rstrip(".,!?")
    if not ask.results:
        call = ("send_message", {"text": text, "address": address})
        return Use(text=f"I send it to {address}.", calls=(call,))
    return Say(
        text=f"Done: {ask.results[0].text}. It lies in the outbox, in the same commit as this "
        "result, and is sent again after a crash until it arrives."
    )


def calculate(ask: Task) -> Answer:
    wanted = ask.words["sum"].strip()
    result = result_of(wanted)
    if result is None:
        return Say(text=f"I cannot work out {wanted}: I only do small sums.")
    return Say(text=f"{wanted} = {result}")


def explain_models(_: Task) -> Answer:
    return Say(text=f"I am the demo model and need neither key nor network. {REAL_MODEL}")


def introduce(ask: Task) -> Answer:
    return Say(
        text="I am the demo model: a small table of rules that comes with wakeful, without a "
        "network and without a key. What you say becomes a stimulus in the ledger, a lane opens a "
        "turn for it, and every answer and every tool call of mine is committed before the next "
        f"step, so that a crash loses nothing. {_to_try(ask)}\n{REAL_MODEL}"
    )


def greet(ask: Task) -> Answer:
    return Say(text=f"Hello! I am the demo model of wakeful. {_to_try(ask)}")


def welcome(_: Task) -> Answer:
    return Say(text="You are welcome.")


def take_leave(_: Task) -> Answer:
    return Say(
        text="Good bye! I stay awake; whatever you send is on disk before you get a receipt."
    )


def in_general(ask: Task) -> Answer:
    return Say(
        text="I do not understand that: I am the built-in demo model, which knows a few plain "
        f"requests. {_to_try(ask)} A real model would understand you: ask "
        '"how do I add a real model?", it is two lines.'
    )


def without(tool: str) -> str:
    """Return what to say when a request needs a tool that this turn does not have."""
    how = (
        f"It is off by default; `tools: [{tool}, …]` of the agent in wakeful.yaml turns it on."
        if tool in _OFF_BY_DEFAULT
        else "An agent's configuration and the trust in who asks decide which tools there are."
    )
    return f"For this I would use the tool {tool}, but this turn does not have it. {how}"


def _to_try(ask: Task) -> str:
    examples = ", ".join(f'"{example}"' for example in ask.examples[:MOST_EXAMPLES])
    return f"Try {examples}." if examples else "This turn has no tools I could show you."


def _arguments(text: str) -> dict[str, Any]:
    """Read arguments of a call: a JSON object, or `name=value` pairs."""
    if text.lstrip().startswith("{"):
        try:
            return cast("dict[str, Any]", json.loads(text))
        except (ValueError, RecursionError):
            return {}
    pairs = re.findall(r"(\w+)\s*=\s*(\"[^\"]*\"|\S+)", text)
    return {name: _scalar(value) for name, value in pairs}


def _scalar(word: str) -> int | str:
    is_number = re.fullmatch(r"-?\d{1,15}", word, re.ASCII) is not None
    return int(word) if is_number else _bare(word)


def _about(topic: str, notes: list[str]) -> list[str]:
    """Return the notes that share a word with the topic, or all if none does."""
    words = set(re.findall(r"\w{3,}", topic.lower()))
    return [note for note in notes if words & set(re.findall(r"\w{3,}", note.lower()))] or notes


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
