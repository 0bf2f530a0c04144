"""Transcripts of Claude Code, line by line, as lines of the format that is read here.

Their tree is by `uuid` and `parentUuid`. One reply comes as several lines, one per block; results
of calls that ran side by side each hang below the block that made the call. Here they become one
reply with its results after it. Lines that are no part of what was said are kept as they are.
"""

from collections import OrderedDict
from typing import Any

from wakeful.transcript.jsonl.claude_content import (
    Object,
    as_object,
    assistant,
    calls_of,
    count,
    merged,
    objects,
    spoken,
    tool_result,
    word,
)
from wakeful.transcript.jsonl.writing import VERSION

KEPT_AS = "claude-code"  # what lines are called that only leave again
MOST_CALLS = 10_000  # without a result, that are remembered
MOST_WAITING = 1000  # lines, for the one that tells whose file it is, or for the end of a reply

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_MARKS = ("parentUuid", "leafUuid", "sessionId")


def is_theirs(line: Object) -> bool:
    """Tell whether a file that begins with this line is one of Claude Code."""
    if "id" in line or line.get("type") == "session":
        return False
    return any(mark in line for mark in _MARKS) or line.get("type") == "file-history-snapshot"


class ClaudeCode:
    """Turns their lines into ours; a reply is given out when it is whole."""

    def __init__(self) -> None:
        self._has_header = False
        self._early: list[Object] = []  # lines before one that tells whose file it is
        self._count = 0  # names that were made up
        self._reply: Object | None = None  # that may go on
        self._reply_id: object = None
        self._waiting: list[Object] = []  # lines that came in between
        self._names: set[str] = set()  # so that nothing ever stands below itself
        self._stands_for: dict[str, str] = {}  # uuids of lines that are no node of their own
        self._below: dict[str, str] = {}  # nodes, and what was put between them and what follows
        self._calls: OrderedDict[str, tuple[str, str]] = OrderedDict()  # names, and their replies
        self._open: dict[str, int] = {}  # how many calls of a reply have no result yet
        self._last: str | None = None  # the node that was written last
        self._leaf: str | None = None  # the last one of the conversation itself
        self._has_asides_alone = True  # so far: what is said first goes below them
        self._is_named = False
        self._tokens = 0  # before the compaction that comes
        self._at = ""

    def take(self, line: Object) -> list[Object]:
        """Return the lines that are complete with this one."""
        if self._has_header:
            return self._taken(line)
        is_named = bool(word(line, "sessionId")) or len(self._early) >= MOST_WAITING
        if not is_named and "message" not in line:
            self._early.append(line)
            return []
        return self._begun(line, [*self._early, line])

    def _begun(self, named: Object, lines: list[Object]) -> list[Object]:
        """Return the header, and the lines that came before it could be written."""
        self._has_header = True
        return [_header(named), *(one for line in lines for one in self._taken(line))]

    def _taken(self, line: Object) -> list[Object]:
        self._at = word(line, "timestamp") or self._at
        if word(line, "uuid") in self._names:
            return [self._line("custom", word(line, "uuid"), None)]  # told to be there already
        kind = line.get("type") if isinstance(line.get("message"), dict) else None
        if kind == "assistant":
            return self._take_reply(line)
        if kind == "user" and line.get("isVisibleInTranscriptOnly") is not True:
            return [*self._flushed(), *self._user(line)]
        if _queued(line):
            return [*self._flushed(), *self._queued(line)]
        if self._reply is not None and len(self._waiting) < MOST_WAITING:
            self._waiting.append(line)
            return []
        return [*self._flushed(), *self._aside(line)]

    def end(self) -> list[Object]:
        """Return what is left, and where the conversation stands if not at its last line."""
        if not self._has_header and self._early:
            return self._begun(self._early[0], self._early)
        found = self._flushed()
        target = None if self._leaf is None else self._end_of(self._leaf)
        if target is None or target == self._last:
            return found
        fields = self._line("leaf", self._made_up("leaf"), target)
        return [*found, {**fields, "targetId": target}]

    def _take_reply(self, line: Object) -> list[Object]:
        message: Object = line["message"]
        message_id = message.get("id")
        if self._reply is not None and message_id is not None and message_id == self._reply_id:
            self._reply = merged(self._reply, assistant(line, message))
            self._stands_for[self._name(line)] = self._reply["id"]
            return []
        found = self._flushed()
        name, parent = self._name(line), self._parent(line)
        fields = self._line("message", name, parent)
        self._reply = {**fields, "message": assistant(line, message)["message"]}
        self._reply_id = message_id
        self._note(line, name)
        return found

    def _flushed(self) -> list[Object]:
        """Return the reply that goes on no longer, and the lines that came in between."""
        reply, self._reply = self._reply, None
        if reply is None:
            return []
        calls = calls_of(reply)
        for call_id, name in calls:
            self._calls[call_id] = (name, reply["id"])
        if calls:
            self._open[reply["id"]] = len(calls)
        while len(self._calls) > MOST_CALLS:
            _, (_, node) = self._calls.popitem(last=False)
            self._open.pop(node, None)
        aside, self._waiting = self._waiting, []
        return [reply, *(one for line in aside for one in self._aside(line))]

    def _user(self, line: Object) -> list[Object]:
        name = self._name(line)
        content: Any = line["message"].get("content")
        if line.get("isCompactSummary") is True:
            return [self._compaction(line, name, content)]
        results = [one for one in objects(content) if one.get("type") == "tool_result"]
        rest = content
        if results:
            rest = [one for one in objects(content) if one.get("type") != "tool_result"]
        found: list[Object] = []
        reply: str | None = None
        for at, result in enumerate(results):
            made, reply = self._result(line, name if not at else self._made_up("result"), result)
            found.append(made)
        if not results or (rest and not self._joined(found[-1], reply, rest)):
            parent = self._last if results else self._parent(line)
            own = self._made_up("text") if results else name
            found.append(self._said(line, own, parent, rest))
        if found[-1]["id"] != name:
            self._stands_for[name] = found[-1]["id"]
        return found

    def _said(self, line: Object, name: str, parent: str | None, content: Any) -> Object:
        is_meta = line.get("isMeta") is True
        fields = self._line("custom_message" if is_meta else "message", name, parent)
        said, ours = spoken(content)
        self._note(line, name)
        if is_meta:
            return {**fields, "customType": "meta", "content": said, "display": False}
        return {**fields, "message": {"role": "user", "content": said}, **ours}

    def _result(self, line: Object, name: str, result: Object) -> tuple[Object, str | None]:
        """Return a result, below its reply and the other results, and which reply that is."""
        call_id = word(result, "tool_use_id")
        tool, reply = self._calls.pop(call_id, ("", None))
        parent = self._parent(line) if reply is None else self._end_of(reply)
        if reply is not None:
            self._open[reply] = max(0, self._open.get(reply, 1) - 1)
            self._below[parent or reply] = name
        fields = self._line("message", name, parent)
        self._note(line, name)
        message, ours = tool_result(result, call_id, tool)
        return {**fields, "message": message, **ours}, reply

    def _joined(self, result: Object, reply: str | None, rest: Any) -> bool:
        """Add words to the result before them, as long as others of its reply are to come."""
        said, ours = spoken(rest)
        if ours or self._open.get(reply or "", 0) <= 0:
            return False
        result["message"]["content"] += said
        return True

    def _compaction(self, line: Object, name: str, content: Any) -> Object:
        parent = self._parent(line) or (None if self._last is None else self._end_of(self._last))
        fields = self._line("compaction", name, parent)
        self._note(line, name)
        said, _ = spoken(content)
        summary = "\n".join(word(one, "text") for one in said)
        before, self._tokens = self._tokens, 0
        return {**fields, "summary": summary, "firstKeptEntryId": name, "tokensBefore": before}

    def _queued(self, line: Object) -> list[Object]:
        """Return what somebody said while the agent worked: the model was told it."""
        name = self._name(line)
        fields = self._line("custom_message", name, self._parent(line))
        self._note(line, name)
        return [{**fields, "customType": "queued", "content": _queued(line), "display": True}]

    def _aside(self, line: Object) -> list[Object]:
        """Return a line that is no part of what was said; it parts nothing that is."""
        name = self._made_up("aside")
        if uuid := word(line, "uuid"):
            self._names.add(uuid)
            # The lines below it become children of its parent.
            above = word(line, "logicalParentUuid") or word(line, "parentUuid")
            self._stands_for[uuid] = self._stands_for.get(above, above) or name
        self._tokens = count(as_object(line.get("compactMetadata")), "preTokens") or self._tokens
        fields = self._line("custom", name, self._last)
        if self._last is not None:
            self._below[self._last] = name
        self._last = name
        title = word(line, _TITLES.get(str(line.get("type")), ""))
        is_chosen = line.get("type") == "custom-title"
        if title and (is_chosen or not self._is_named):
            self._is_named = is_chosen
            return [{**fields, "type": "session_info", "name": title}]
        return [{**fields, "customType": KEPT_AS, "data": line}]

    def _line(self, kind: str, name: str, parent: str | None) -> Object:
        return {"type": kind, "id": name, "parentId": parent, "timestamp": self._at}

    def _name(self, line: Object) -> str:
        name = word(line, "uuid") or self._made_up("line")
        self._names.add(name)
        return name

    def _made_up(self, kind: str) -> str:
        """Return a name that no line has so far."""
        name = kind
        while name == kind or name in self._names:
            self._count += 1
            name = f"{kind}-{self._count}"
        self._names.add(name)
        return name

    def _parent(self, line: Object) -> str | None:
        """Return the node below which a line goes."""
        if "parentUuid" not in line:
            return self._last
        above = line["parentUuid"]
        if isinstance(above, str):
            return self._end_of(above)
        return self._last if self._has_asides_alone else None

    def _end_of(self, name: str) -> str:
        """Return the last node of what was put below another, and remember it for next time."""
        start = end = self._stands_for.get(name, name)
        while end in self._below:
            end = self._below[end]
        while start != end:
            following = self._below[start]
            self._below[start] = end
            start = following
        return end

    def _note(self, line: Object, name: str) -> None:
        self._last, self._has_asides_alone = name, False
        if line.get("isSidechain") is not True:
            self._leaf = name


def _header(line: Object) -> Object:
    """Return the header of a file; one without an id gets another."""
    fields: Object = {"type": "session", "version": VERSION}
    if name := word(line, "sessionId") or word(line, "leafUuid"):
        fields["id"] = name
    return {**fields, "timestamp": word(line, "timestamp"), "cwd": word(line, "cwd")}


def _queued(line: Object) -> str:
    attachment = as_object(line.get("attachment"))
    return word(attachment, "prompt") if attachment.get("type") == "queued_command" else ""
