"""Compaction: which part of a conversation is compacted into a summary, and which is kept.

Nothing falls in neither part: what an earlier compaction kept is compacted or kept again, and its
summary is always handed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wakeful.prompts.fence import fenced
from wakeful.turn.context import (
    OF_OUTSIDERS,
    SPOKEN,
    Context,
    as_edited,
    last_compaction,
    message_of,
)
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.entry import CompactionBody, Entry, is_external
from wakeful.vocabulary.message import AssistantMessage, Message, ToolMessage, UserMessage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN, tokens_of

LONGEST_SHARE = 8  # no message takes more than this part of what a summary is made from
SHORTEST_PART = 32  # tokens; no message is cut to less for a summary
MOST_QUESTIONS = 8  # a conversation that would take more summaries than that is read less closely
LEAST_GAIN = 256  # tokens; what is smaller is not refused for its own length
MOST_RESCUES = 4  # refusals of one turn's conversation; the last time nothing is kept

_READS = frozenset({"read_file"})
_CHANGES = frozenset({"write_file", "edit_file", "delete_file"})


class Room(Record):
    """How the tokens of a model's window are shared out."""

    window: int
    reserve: int  # for the answer
    keep: int  # what stays word for word
    soft: int  # before the reserve: where memories are written down

    @property
    def is_used_up_at(self) -> int:
        return self.window - self.reserve

    @property
    def most_known(self) -> int:
        """How much of the summary before is shown to whoever writes the next."""
        return self.is_used_up_at // 3

    @property
    def is_scarce_at(self) -> int:
        return self.window - self.reserve - self.soft


class CompactionPlan(Record):
    """What one compaction does."""

    compacted: tuple[Message, ...]  # becomes the summary, with the one before
    turn: tuple[Message, ...]  # the begun part of a turn whose rest is kept
    previous: str | None  # the summary so far
    first_kept_depth: int
    tokens_before: int
    files_read: tuple[str, ...]
    files_changed: tuple[str, ...]
    is_external: bool  # some of it is text from outside
    longest: int  # tokens of one message that the summary is made from
    most: int  # tokens of all of them together


@dataclass(frozen=True)
class PreparedCompaction:
    """A plan, and what stays of the conversation when it is carried out."""

    plan: CompactionPlan
    rest: Context


class SeenEntry(Record, gc=False):
    """An entry that a model sees, as the message it is."""

    entry: Entry
    message: Message
    tokens: int
    is_external: bool


def room_of(rules: CompactionRules, window: int) -> Room:
    """Share out a window; a small one keeps most of itself for the conversation."""
    reserve = min(max(rules.reserve_tokens, rules.reserve_tokens_floor), window // 4)
    keep = min(rules.keep_recent_tokens, (window - reserve) // 2)
    soft = min(rules.memory_flush.soft_threshold_tokens, (window - reserve) // 4)
    return Room(window=window, reserve=reserve, keep=keep, soft=soft)


def plan(
    path: Sequence[Entry],
    room: Room,
    *,
    open_turn_id: str | None = None,
    is_needed: bool = False,
    rescues: int = 0,
    is_asked: bool = True,
) -> CompactionPlan | None:
    """Return how to make room in a conversation, or None if nothing of it can be compacted.

    `path` is what the model sees: the entries from the first kept one to the leaf. If that is
    more than one summary can be made from, the plan takes the older part of it; the next goes on.
    With `is_needed` the model itself said that there is too much, whatever our estimate says;
    `rescues` is how often it has refused the conversation in this turn: each time less is kept.
    Without `is_asked` no summary will be made: the plan takes all that must go.
    """
    before, lines = seen(path)
    total = sum(line.tokens for line in lines)
    previous = _previous(path)
    known = len(previous or "") // CHARACTERS_PER_TOKEN
    if rescues > 0 and total + known < LEAST_GAIN:
        return None
    keep = _kept(room, total, rescues) if is_needed else room.keep
    most = (room.is_used_up_at - min(known, room.most_known)) * 3 // 4
    longest = _longest(lines, room, most)
    cuts = _cuts(lines)
    wanted = _cut(lines, cuts, keep)
    if rescues == 0:
        wanted = min(wanted, _first_unread(lines, open_turn_id))
    if wanted == 0 and is_needed and (rescues > 0 or total + known > room.window):
        wanted = len(lines)  # one message is all there is: it is cut, and summed up, too
    cut = min(wanted, _largest_cut(lines, cuts, longest, most)) if is_asked else wanted
    if cut == 0:
        return None
    begun = _begun_turn(lines, cut, open_turn_id)
    read, changed = _files(lines[:cut], before)
    last = path[-1]
    return CompactionPlan(
        compacted=tuple(line.message for line in lines[:begun]),
        turn=tuple(line.message for line in lines[begun:cut]),
        previous=previous,
        first_kept_depth=lines[cut].entry.depth if cut < len(lines) else last.depth + 1,
        tokens_before=total + known,
        files_read=read,
        files_changed=changed,
        is_external=(before is not None and before.is_external)
        or any(line.is_external for line in lines[:cut]),
        longest=longest,
        most=most,
    )


def seen(path: Sequence[Entry]) -> tuple[CompactionBody | None, list[SeenEntry]]:
    """Return the compaction that counts, and the lines after it that a model reads."""
    found = last_compaction(path)
    before = None if found is None else found[1]
    first = 0 if before is None else before.first_kept_depth
    lines: list[SeenEntry] = []
    for entry in as_edited(path):
        if entry.depth < first or entry.kind not in SPOKEN:
            continue
        body = entry.content()
        message = message_of(entry, body)
        if message is not None:
            lines.append(
                SeenEntry(
                    entry=entry,
                    message=message,
                    tokens=tokens_of(message),
                    is_external=is_external(body),
                )
            )
    return before, lines


def _previous(path: Sequence[Entry]) -> str | None:
    """Return the summary so far, as the one who makes the next is shown it."""
    found = last_compaction(path)
    if found is None or not found[1].summary:
        return None
    entry, body = found
    if not body.is_external:
        return body.summary
    return fenced(body.summary, source=OF_OUTSIDERS, entry_id=entry.id)


def _cuts(lines: Sequence[SeenEntry]) -> list[int]:
    """Return where the kept part may begin, in order: before a person or the agent speaks, and
    never between a call and its result; also after everything.

    A result belongs to the reply it follows: some models use the same call ids in every reply.
    """
    cuts = [len(lines)]
    has_result = False  # between here and the next reply
    for at in reversed(range(len(lines))):
        message = lines[at].message
        if isinstance(message, ToolMessage):
            has_result = True
            continue
        if isinstance(message, AssistantMessage):
            has_result = False
        if not has_result:
            cuts.append(at)
    return cuts[::-1]


def _cut(lines: Sequence[SeenEntry], cuts: Sequence[int], keep: int) -> int:
    """Return the last cut that keeps `keep` tokens, or 0 if that leaves nothing to compact."""
    kept, start = 0, len(lines)
    while start > 0 and kept < keep:
        start -= 1
        kept += lines[start].tokens
    if kept < keep:
        return 0
    cut = next(cut for cut in cuts if cut >= start)
    if cut > 0:
        return cut
    # One large message holds nearly everything: compact it, and keep what came after it.
    return next((cut for cut in cuts if 0 < cut < len(lines)), 0)


def _first_unread(lines: Sequence[SeenEntry], open_turn_id: str | None) -> int:
    """Return where that begins which no model was shown yet: all that the open turn ends in."""
    start = len(lines)
    while start > 0 and isinstance(lines[start - 1].message, UserMessage):
        if lines[start - 1].entry.turn_id != open_turn_id:
            break
        start -= 1
    return start


def _kept(room: Room, total: int, rescues: int) -> int:
    """Return how much stays of what is too much, the less the more often it was refused."""
    return 0 if rescues >= MOST_RESCUES else min(room.keep, total >> max(1, rescues))


def _longest(lines: Sequence[SeenEntry], room: Room, most: int) -> int:
    """Return how much of one message a summary is made from."""
    longest = max(room.is_used_up_at // LONGEST_SHARE, SHORTEST_PART)
    enough = most * MOST_QUESTIONS
    while longest > SHORTEST_PART and sum(min(line.tokens, longest) for line in lines) > enough:
        longest = max(longest // 2, SHORTEST_PART)
    return longest


def _largest_cut(lines: Sequence[SeenEntry], cuts: Sequence[int], longest: int, most: int) -> int:
    """Return the last cut whose compacted part fits one question; at least the first one."""
    possible = [cut for cut in cuts if cut > 0]
    best, tokens, at = possible[0] if possible else 0, 0, 0
    for cut in possible:
        tokens += sum(min(line.tokens, longest) for line in lines[at:cut])
        at = cut
        if tokens > most:
            break
        best = cut
    return best


def _begun_turn(lines: Sequence[SeenEntry], cut: int, open_turn_id: str | None) -> int:
    """Return where the turn begins that a cut parts; the cut itself if it parts none."""
    is_between = (
        lines[-1].entry.turn_id != open_turn_id if cut == len(lines) else _begins_turn(lines, cut)
    )
    if is_between:
        return cut
    start = cut - 1
    while start > 0 and not _begins_turn(lines, start):
        start -= 1
    return start


def _begins_turn(lines: Sequence[SeenEntry], at: int) -> bool:
    """Tell whether a line opens a turn: a person's, or a note's, after another turn's."""
    line = lines[at].entry
    if isinstance(lines[at].message, AssistantMessage | ToolMessage):
        return False
    if at == 0:
        return True
    before = lines[at - 1].entry
    return line.turn_id is None or line.turn_id != before.turn_id


def _files(
    lines: Sequence[SeenEntry], before: CompactionBody | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which files were read and which changed, the earlier compactions' included."""
    read_before, changed_before = ([], []) if before is None else before.files
    read, changed = dict.fromkeys(read_before), dict.fromkeys(changed_before)
    for line in lines:
        if not isinstance(line.message, AssistantMessage):
            continue
        for call in line.message.tool_calls:
            path = call.arguments.get("path")
            if isinstance(path, str) and call.name in _READS:
                read[path] = None
            elif isinstance(path, str) and call.name in _CHANGES:
                changed[path] = None
    return tuple(path for path in read if path not in changed), tuple(changed)
