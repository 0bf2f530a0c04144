"""What the demo model understands: a table of requests, each with the one who answers it."""

import re
from collections.abc import Sequence

from wakeful.models import demo_acts as acts
from wakeful.models import demo_appointments as appointments
from wakeful.models.demo_acts import LONGEST_QUOTE, Act, Answer, Say, Task, Use
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.record import Record

LONGEST_ASK = 4000  # characters


class Intent(Record):
    """One row: which words mean it, who answers, what it needs, and what to say to try it."""

    words: str  # a pattern; its groups are what the request names
    act: Act
    tool: str = ""  # without it the example is not offered
    example: str = ""


_PATH = r"[`'\"]?(?P<path>[^\s`'\"?]+\.\w{1,8})[`'\"]?"
_NAMED = r"(?:the\s+)?(?:file\s+)?"
_ZONE = (
    r"(?:.*?\bin\s+(?P<zone>[A-Z][\w+/-]*"
    r"(?:\s+(?!(?:and|or|now|please|right|today)\b)[A-Z][\w-]*)?))?"
)

# A name with an underscore is meant as a tool's, whether or not this turn has it.
_BY_NAME = (
    r"^\W*(?:please\s+)?(?:use|call)\s+(?:the\s+)?(?:tool\s+)?`?(?P<tool>[a-zA-Z][\w-]*)`?"
    r"(?:\s+with)?[:\s]*(?P<arguments>.*)"
)

_ITEM = "<inbox item>"
_OUTSIDE = r"^The block below came from outside \((?P<source>[^)\n]*)\)[^\n]*\n"

# The first that fits answers; the narrow ones come first.
INTENTS: tuple[Intent, ...] = (
    Intent(
        words=r"^\[Scheduled automation: [^\n]*\]\n.*?\n\n(?:Remind me: )?(?P<what>.+)\Z",
        act=appointments.keep_appointment,
    ),
    Intent(
        words=r"\b(?:reply|answer|respond)\b.*\b(?P<token>HEARTBEAT_OK|NO_REPLY)\b",
        act=acts.be_quiet,
    ),
    Intent(
        words=r"^<tick>\nkind: (?P<kind>\w+)\nelapsed_ms: \d+\nreason: (?P<reason>[^\n]*)",
        act=acts.wake,
    ),
    # A payload is no request, whatever words stand in it.
    Intent(words=_OUTSIDE + r"(?P<text>[{\[].*[}\]])\s*\Z", act=acts.report),
    Intent(
        words=r"^Approved #(?P<number>\d+): (?P<call>.*?) → (?P<result>.*)",
        act=acts.report_approved,
    ),
    Intent(
        words=r"^\[Approval #(?P<number>\d+) (?P<how>was denied|has expired)",
        act=acts.leave_it,
    ),
    Intent(
        words=r"^\[(?:Your question #\d+, .*, will not be answered"
        r"|Nobody answered your question #\d+ in time)",
        act=acts.go_without,
    ),
    Intent(
        words=r"^\[What follows answers your question #(?P<number>\d+): .*?\]\s+(?P<answer>.+)"
        r"|^\[The answer to your question #\d+, .*?:\]\n(?P<told>.+)",
        act=acts.take_answer,
    ),
    Intent(
        words=r"^\W*(?:please\s+)?ask\s+me\s+(?P<question>.+)",
        act=acts.ask_people,
    ),
    Intent(
        words=rf"\A{_ITEM}\nfrom: (?P<source>[^\n]*)\n(?P<text>.*)\Z",
        act=acts.take_up,
    ),
    Intent(
        words=r"^\[\d+ (?:more )?items? waits?: check_inbox\]$"
        r"|\b(?:check|read|show|look\s+(?:at|in|into)|what(?:'s|\s+is)\s+in)\s+(?:me\s+)?"
        r"(?:your|the)\s+inbox\b",
        act=acts.read_inbox,
        tool="check_inbox",
        example="check your inbox",
    ),
    Intent(
        words=_BY_NAME,
        act=acts.use_a_tool,
    ),
    Intent(
        words=r"^\W*(?:please\s+)?(?:go\s+to\s+)?(?:sleep|rest)\s+(?:for\s+)?"
        r"(?P<span>(?:\d+|an?)\s*[a-z]+)[.!]?\s*$",
        act=acts.sleep,
    ),
    Intent(
        words=r"\b(?:remind\s+(?:me|us)|wake\s+me)\s+(?:every\s+(?:(?P<every_day>day|weekday)\s+at\s+"
        r"(?P<clock>\d{1,2}(?:[:.]\d{2})?\s*(?:am|pm)?)|(?P<every>(?:\d+\s*)?[a-z]+))"
        r"|in\s+(?P<in>(?:\d+|an?)\s*[a-z]+))\s+(?:to|of|that|about|:)?\s*(?P<what>.+)",
        act=appointments.appoint,
        tool="schedule",
        example="remind me in 2 minutes to stretch",
    ),
    Intent(
        words=r"\b(?:what|which|list|show)\b.*\b(?:scheduled|reminders|appointments|automations)\b",
        act=appointments.list_appointments,
        tool="schedule",
        example="what is scheduled?",
    ),
    Intent(
        words=r"\b(?:cancel|remove|forget|delete)\s+(?:the\s+)?(?:reminder|appointment|automation)s?"
        r"\s+(?:to\s+|of\s+|about\s+)?(?P<name>.+)",
        act=appointments.cancel_appointment,
    ),
    Intent(
        words=rf"\bwrite\s+{_NAMED}{_PATH}:\s*(?P<text>.+)",
        act=acts.write_file,
        tool="write_file",
        example="write notes.md: buy milk",
    ),
    Intent(words=rf"\bwrite\s+(?P<text>.+)\s+(?:in)?to\s+{_NAMED}{_PATH}", act=acts.write_file),
    Intent(
        words=r"\bwhat\b.*\b(?:do|can)\s+you\s+(?:remember|recall|know about me)\b"
        r"(?:\s+(?:about|of)\s+(?P<topic>.*))?",
        act=acts.recall,
        tool="memory_read",
        example="what do you remember?",
    ),
    Intent(words=r"\b(?:show|read|what(?:'s| is) in)\s+(?:me\s+)?your\s+memory\b", act=acts.recall),
    Intent(words=r"\b(?:what|who)(?:'s|\s+is|\s+are)\s+my\s+(?P<topic>.+)", act=acts.recall),
    Intent(
        words=r"\bremember\b(?:\s+that\b)?[:,]?\s+(?P<fact>.*\S)",
        act=acts.remember,
        tool="memory_write",
        example="remember that my cat is called Tom",
    ),
    Intent(
        words=r"\bwhat(?:'s|\s+is)?\s+(?:the\s+)?(?:current\s+)?(?:time|date|day)\b" + _ZONE,
        act=acts.tell_time,
        tool="current_time",
        example="what time is it in Europe/Berlin?",
    ),
    Intent(
        words=r"\b(?:list|show|what)\b.*\bfiles\b(?:\s+in\s+(?:(?:the\s+)?folder\s+)?"
        r"(?P<folder>\S+/\S*|(?<=folder\s)\S+))?",
        act=acts.list_files,
        tool="list_files",
        example="list files",
    ),
    Intent(words=rf"\bdelete\s+{_NAMED}{_PATH}", act=acts.delete_file),
    Intent(
        words=r"\b(?:fetch|get|open|read|summari[sz]e)\b.*?(?P<url>https?://\S+)",
        act=acts.fetch,
        tool="web_fetch",
        example="fetch https://example.com/",
    ),
    Intent(
        words=rf"\b(?:read|show|open)\s+(?:me\s+)?{_NAMED}{_PATH}",
        act=acts.read_file,
        tool="read_file",
        example="read notes.md",
    ),
    Intent(
        words=r"\brun\s+(?:the\s+)?(?:command\s+)?`(?P<command>[^`]+)`",
        act=acts.run_command,
        tool="shell",
        example="run `uname -a`",
    ),
    Intent(
        words=r"\bwhat\b.*\b(?:(?:have|did)\s+you\s+(?:do|done|just)|happened)\b"
        r"|\bsummari[sz]e\b.*\b(?:you|we|this|our)\b",
        act=acts.look_back,
        tool="sessions_history",
        example="what have you done?",
    ),
    Intent(
        words=r"\b(?:which|what|list|show)\b.*\b(?:conversations|sessions)\b",
        act=acts.list_sessions,
        tool="sessions_list",
        example="list conversations",
    ),
    Intent(
        words=r"\bsend\s+(?:the\s+message\s+|a\s+message\s+)?(?P<text>.+?)\s+to\s+(?P<address>\S+)",
        act=acts.send,
        tool="send_message",
        example="send hello to ann",
    ),
    Intent(
        words=r"\b(?:real|another|better|other)\s+(?:model|voice|llm)\b|\bapi\s+key\b",
        act=acts.explain_models,
        example="how do I add a real model?",
    ),
    Intent(
        words=r"^\s*(?:what(?:'s|\s+is)|how\s+much\s+is|calculate|compute)?\s*"
        r"(?P<sum>[\d(][\d.,()+*/%^x×÷\s-]*[-+*/%^x×÷][\d.,()+*/%^x×÷\s-]*)\s*[=?.]*\s*$",
        act=acts.calculate,
        example="what is 12 * (3 + 4)?",
    ),
    Intent(
        words=r"\b(?:who|what)\s+are\s+you\b|\bwhat\s+can\s+you\s+do\b|\bhelp\b"
        r"|\bhow\s+(?:do|does)\s+(?:you|this|it|that)\s+work\b",
        act=acts.introduce,
    ),
    Intent(
        words=r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening))\b",
        act=acts.greet,
    ),
    Intent(words=r"\b(?:thanks|thank\s+you)\b", act=acts.welcome),
    Intent(words=r"\b(?:good\s*bye|bye|see\s+you|good\s+night)\b", act=acts.take_leave),
    Intent(words=_OUTSIDE + r"(?P<text>.*\S)", act=acts.report),
)


def item_of(source: str, text: str) -> str:
    """Return what was left in the inbox as a request of its own."""
    return f"{_ITEM}\nfrom: {source}\n{text}"


def understand(text: str, tools: frozenset[str] = frozenset()) -> tuple[Act, dict[str, str]] | None:
    """Return who answers a request and what it names, or None if nobody knows it."""
    for intent in INTENTS:
        if found := re.search(intent.words, text, re.IGNORECASE | re.DOTALL | re.MULTILINE):
            words = {name: word or "" for name, word in found.groupdict().items()}
            if intent.act is acts.use_a_tool and not _is_tool(words["tool"], tools):
                continue
            return intent.act, words
    return None


def asks_for_inbox(text: str) -> bool:
    """Tell whether a request is to look into the inbox."""
    found = None if len(text) > LONGEST_ASK else understand(text)
    return found is not None and found[0] is acts.read_inbox


def _is_tool(name: str, tools: frozenset[str]) -> bool:
    """Tell whether a word is a tool's name: one of this turn's, or one that looks like any."""
    return name in tools or "_" in name.strip("_")


def answer(text: str, tools: frozenset[str], results: Sequence[ToolMessage]) -> Answer:
    """Return the next thing to do about a request, given the results of what was done."""
    if len(text) > LONGEST_ASK:  # the patterns would take too long over it
        return Say(text=f"As the demo model I read requests of up to {LONGEST_ASK} characters.")
    failed = next((result for result in results if result.is_error), None)
    if failed is not None:
        said = failed.text[:LONGEST_QUOTE]
        return Say(text=f"I used the tool {failed.name}, but it failed: {said}")
    act, words = understand(text, tools) or (acts.in_general, {})
    ask = Task(words=words, results=tuple(results), tools=tools, examples=tuple(_examples(tools)))
    step = act(ask)
    if isinstance(step, Use):
        missing = sorted({name for name, _ in step.calls} - tools)
        if missing:
            return Say(text=acts.without(missing[0]))
    return step


def _examples(tools: frozenset[str]) -> list[str]:
    return [
        intent.example
        for intent in INTENTS
        if intent.example and (not intent.tool or intent.tool in tools)
    ]
