"""Looking back: the conversations of the agent, what was said in them, and what was cut."""

from collections.abc import Sequence
from datetime import UTC, datetime

from wakeful.prompts.fence import fenced
from wakeful.store.database import Store
from wakeful.tools.running import LONGEST_RESULT
from wakeful.tools.tool import Effect, Tool, ToolContext, ToolResult, tool
from wakeful.transcript.sessions import Session
from wakeful.views.outputs import LARGEST_PAGE, OutputView
from wakeful.views.sessions import SessionView
from wakeful.views.transcripts import TranscriptView
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.entry import (
    AssistantBody,
    Entry,
    NoteBody,
    ToolBody,
    UserBody,
    is_external,
)
from wakeful.vocabulary.errors import InvalidInput, NotFound, Permanent
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Trust

MOST_SESSIONS = 200
MOST_ENTRIES = 200
MOST_KINDS = 10
LONGEST_ENTRY = 2000  # characters that are shown of one
_PAGE = LONGEST_RESULT - 200  # characters; the rest is for the note about what was left out


@tool(effect=Effect.READ, is_for_external=True)
async def read_output(
    context: ToolContext, id: str, offset: int = 0, limit: int = LARGEST_PAGE
) -> ToolResult:
    """Read on in a tool's output of this conversation that was cut; the cut names its id."""
    view = OutputView(_store(context))
    if await view.session_of(id) != context.session_key:
        raise NotFound("id", f"no output {id[:80]!r}")
    found = await view.read(id, offset=offset, limit=limit)
    if not found.text:
        raise InvalidInput("offset", f"the output ends at {found.size}")
    text = found.text
    if found.next is not None:
        text = f"{text}\n[up to {found.next} of {found.size}; go on with offset {found.next}]"
    return ToolResult(text=text, is_external=found.is_external)


@tool(effect=Effect.READ, is_for_external=True)
async def sessions_list(
    context: ToolContext,
    kinds: list[str] | None = None,
    limit: int = 50,
    active_minutes: int | None = None,
) -> str:
    """List your conversations, the latest first; a kind is the word that follows your name."""
    if not 1 <= limit <= MOST_SESSIONS:
        raise InvalidInput("limit", f"must be from 1 to {MOST_SESSIONS}, not {limit}")
    if active_minutes is not None and not 1 <= active_minutes <= 1_000_000:
        raise InvalidInput("active_minutes", f"must be from 1 to 1000000, not {active_minutes}")
    if len(kinds or ()) > MOST_KINDS:
        raise InvalidInput("kinds", f"must be at most {MOST_KINDS}")
    view = SessionView(_store(context))
    own = await view.get(context.session_key)
    if context.trust is not Trust.OPERATOR:
        return _line(own)
    since = None if active_minutes is None else context.clock.now() - active_minutes * 60_000
    found = await view.of_agent(
        context.agent_id, own.owner, kinds=kinds or (), active_since=since, limit=limit
    )
    return "\n".join(map(_line, found)) or "no conversations"


@tool(effect=Effect.READ, is_for_external=True)
async def sessions_history(
    context: ToolContext,
    session: str = "",
    limit: int = 20,
    include_tools: bool = False,
    before: str = "",
) -> ToolResult:
    """Read what was said in a conversation of yours, the newest last; this one if none is named.

    `before` is the id of an entry: those that led up to it are shown.
    """
    if not 1 <= limit <= MOST_ENTRIES:
        raise InvalidInput("limit", f"must be from 1 to {MOST_ENTRIES}, not {limit}")
    key = await _seen(context, session)
    view = TranscriptView(_store(context))
    found = await view.page(key, before=before or None, limit=limit, is_page=True)
    shown = [line for entry in found if (line := _said(entry, include_tools)) is not None]
    # What others said in this conversation is known to it already, as theirs.
    is_new = key != context.session_key
    return ToolResult(
        text=_fitting(shown) or "nothing was said yet",
        is_external=is_new and await _is_of_outsiders(_store(context), key, found),
    )


SESSION_TOOLS: tuple[Tool, ...] = (read_output, sessions_list, sessions_history)


def _store(context: ToolContext) -> Store:
    if context.store is None:
        raise Permanent("there is no ledger to look at")
    return context.store


async def _seen(context: ToolContext, words: str) -> SessionKey:
    """Return the key of a session that this turn may look into; others do not exist for it."""
    own = SessionKey(context.session_key)
    key = keys.canonical(words, context.agent_id, "session") if words else own
    if key == own:
        return own
    view = SessionView(_store(context))
    is_own_agent = keys.agent_of(key) == context.agent_id
    if context.trust is not Trust.OPERATOR or not is_own_agent:
        raise NotFound("session", f"no session {key!r}")
    await view.get(key, (await view.get(own)).owner)
    return key


async def _is_of_outsiders(store: Store, key: SessionKey, found: Sequence[Entry]) -> bool:
    """Tell whether somebody outside said any of it, or had the agent say it."""
    if any(is_external(entry.content()) for entry in found):
        return True
    ids = {entry.turn_id for entry in found if entry.turn_id is not None}
    turns = await store.read("SELECT trust FROM turns WHERE id IN :ids", ids=list(ids))
    if any(trust != Trust.OPERATOR for (trust,) in turns):
        return True
    # Of a turn that the ledger has forgotten only the owner of the conversation is known.
    return len(turns) < len(ids) and not await SessionView(store).is_operators(key)


def _line(session: Session) -> str:
    at = session.last_write_at or session.created_at
    return f"{session.key} ({session.leaf_depth + 1} entries, last written to {_time(at)})"


def _said(entry: Entry, include_tools: bool) -> str | None:
    match entry.content():
        case UserBody(is_external=True) as body:
            who = "outside"
            text = fenced(_short(body.text), source=body.source, entry_id=entry.id)
        case UserBody() as body:
            who, text = body.source or "user", _short(body.text)
        case AssistantBody(message=message):
            calls = ", ".join(call.name for call in message.tool_calls) if include_tools else ""
            who, text = "you", _short(message.text) + (f" [called {calls}]" if calls else "")
        case ToolBody(message=message) as body if include_tools:
            who, text = f"tool {message.name}", _short(message.text)
            if body.is_external:
                text = fenced(text, source=message.name, entry_id=entry.id)
        case NoteBody(text=note) as body:
            who, text = "note", _short(note)
            if body.is_external:
                text = fenced(text, source=entry.kind, entry_id=entry.id)
        case _:
            return None
    return f"[{entry.id} {_time(entry.at)}] {who}: {text}" if text.strip() else None


def _short(text: str) -> str:
    left = len(text) - LONGEST_ENTRY
    return text if left <= 0 else f"{text[:LONGEST_ENTRY]}… [{left} more characters]"


def _fitting(lines: list[str]) -> str:
    """Return the newest lines that fit, and say that there were more."""
    room, taken = _PAGE, len(lines)
    while taken and len(lines[taken - 1]) < room:
        taken -= 1
        room -= len(lines[taken]) + 1
    note = [f"[{taken} older entries did not fit; ask for them with `before`]"] if taken else []
    return "\n".join((*note, *lines[taken:]))


def _time(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms // 1000, UTC).isoformat().replace("+00:00", "Z")
