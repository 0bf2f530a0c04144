"""The built-in demo model: no network, no key, always the same answer to the same conversation."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence

from wakeful.models.demo_acts import Say, Use
from wakeful.models.demo_intents import LONGEST_ASK, answer, asks_for_inbox, item_of, understand
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.tariffs import FREE
from wakeful.vocabulary.message import (
    AssistantMessage,
    Block,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from wakeful.vocabulary.text import one_line

CHARACTERS_PER_TOKEN = 4
LONGEST_LINE = 200  # characters that a summary keeps of what somebody said
MOST_LINES = 5
MOST_ASKS = 20  # requests answered in one turn, the newest

_QUEUED = re.compile(r"(?:\A|\n)(?:\[Queued messages[^\n]*\]\s*)?---\nQueued #\d+\n")
_FENCE = re.compile(r"<<<external (\w+)\n(.*?)\nexternal \1>>>", re.DOTALL)
_WAITS = "waiting for approval #"
_ITEM = re.compile(
    r"The block below came from outside \(inbox: ([^\n]*?)\)\. It is data[^\n]*\n"
    r"<<<external (\w+)\n(.*?)\nexternal \2>>>",
    re.DOTALL,
)
LONGEST_ITEM = 500  # characters that are said of what was left in the inbox
_STOPPED = "[The last turn was stopped"
_HEADING = re.compile(r"^## .+$", re.MULTILINE)
_PERSON = re.compile(r"^\[Person\]: (.+)$", re.MULTILINE)
_PREVIOUS = re.compile(r"<previous-summary>\n(.*?)\n</previous-summary>", re.DOTALL)


class Demo:
    """Answers plain requests by rules, with the tools it is offered."""

    tariffs = (FREE,)

    @property
    def name(self) -> str:
        return "demo"

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        text, calls = _next_step(request)
        for word in re.findall(r"\S+\s*|\s+", text):
            yield Delta(text=word)
        content: tuple[Block, ...] = (Text(text=text), *calls)
        yield Reply(
            content=content,
            stop_reason="tool_use" if calls else "stop",
            usage=Usage(
                input=_tokens(_characters(request)), output=_tokens(sum(map(_size, content)))
            ),
            provider="demo",
            model="demo",
        )


def _next_step(request: Request) -> tuple[str, list[ToolCall]]:
    """Return what to say, and the calls that must come first if any request needs one."""
    if request.purpose == "summary":
        return summed_up("".join(message.text for message in request.messages)), []
    messages = _of_this_turn(request.messages)
    results = {item.call_id: item for item in messages if isinstance(item, ToolMessage)}
    tools = frozenset(spec.name for spec in request.tools)
    said: list[str] = []
    needed: list[str] = []
    calls: list[ToolCall] = []
    asks = _asks(messages, tools)
    for number in range(max(0, len(asks) - MOST_ASKS), len(asks)):
        first = f"{_beginning(request)}_{number}"
        tried = _results_of(first, results)
        match answer(asks[number], tools, [result for result in tried if not _is_skipped(result)]):
            case Say(text=text):
                said.append(text)
            case Use(text=text, calls=wanted):
                needed.append(text)
                calls += [
                    ToolCall(id=f"{first}_{position}", name=name, arguments=arguments)
                    for position, (name, arguments) in enumerate(wanted, len(tried))
                ]
    # What is known already is said at the end, together with the rest.
    return ("\n\n".join(said), []) if not calls else (" ".join(needed), calls)


def _of_this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return what came after the last finished answer."""
    for position in range(len(messages) - 1, -1, -1):
        match messages[position]:
            case AssistantMessage(tool_calls=()):
                return messages[position + 1 :]
            case ToolMessage(name="sleep" | "ask_human", is_error=False):
                return messages[position + 1 :]  # it ended its turn
            case ToolMessage(text=text) if text.startswith(_WAITS):
                return messages[position + 1 :]  # so did this: somebody must approve it
            case UserMessage(text=text) if text.startswith(_STOPPED):
                return messages[position:]
            case _:
                pass
    return messages


def _asks(messages: Sequence[Message], tools: frozenset[str]) -> list[str]:
    texts = [message.text for message in messages if isinstance(message, UserMessage)]
    return _with_one_look([ask for text in texts for ask in _split(text, tools)]) or [""]


def _with_one_look(asks: Sequence[str]) -> list[str]:
    """Leave out what asks for the inbox a second time: who looks there sees all that waits."""
    looks = [number for number, ask in enumerate(asks) if asks_for_inbox(ask)][1:]
    return [ask for number, ask in enumerate(asks) if number not in looks]


def _split(text: str, tools: frozenset[str]) -> list[str]:
    """Return the requests that one prompt holds: several people may have spoken."""
    items = [item_of(item[1], item[3][:LONGEST_ITEM]) for item in _ITEM.finditer(text)]
    plain = _FENCE.sub(lambda fence: fence[2], _ITEM.sub("", text))
    queued = [part.strip() for part in _QUEUED.split(plain) if part.strip()]
    asks = items
    for part in queued:
        pieces = [piece for piece in part.split("\n\n") if piece.strip()]
        # Paragraphs are requests of their own only if each of them is one.
        is_many = len(pieces) > 1 and all(
            len(piece) <= LONGEST_ASK and understand(piece, tools) for piece in pieces
        )
        asks += pieces if is_many else [part]
    return asks


def _beginning(request: Request) -> str:
    """Return what the ids of a turn's calls begin with: no other turn's begin so."""
    return f"demo_{hashlib.blake2b(request.turn_id.encode(), digest_size=6).hexdigest()}"


def _results_of(first: str, results: dict[str, ToolMessage]) -> list[ToolMessage]:
    """Return the results of the calls that one request led to so far, in their order."""
    found: list[ToolMessage] = []
    while (result := results.get(f"{first}_{len(found)}")) is not None:
        found.append(result)
    return found


def _is_skipped(result: ToolMessage) -> bool:
    """Tell whether a call never began, because somebody spoke first: it is made again."""
    return result.is_error and result.text.startswith("skipped:")


def _characters(request: Request) -> int:
    count = len(request.system) + sum(len(spec.description) for spec in request.tools)
    for message in request.messages:
        match message:
            case AssistantMessage(content=content):
                count += sum(map(_size, content))
            case UserMessage(text=text) | ToolMessage(text=text):
                count += len(text)
    return count


def _size(block: Block) -> int:
    if isinstance(block, ToolCall):
        return len(block.name) + len(str(block.arguments))
    return len(block.text)


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def summed_up(question: str) -> str:
    """Return a summary under the headings that the question asks for: first and last words."""
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
