"""Memory: what the agent writes down for its later selves, as files of its workspace."""

import re

from wakeful.tools.files import workspace_of
from wakeful.tools.tool import Effect, Tool, ToolContext, tool
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.text import clean
from wakeful.workspace import Workspace

INDEX = "MEMORY"
FOLDER = "memory"
LARGEST_MEMORY = 64 * 1024  # bytes of one file
_MOST_NAMES = 200

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@tool(effect=Effect.READ, is_for_external=True)
def memory_read(context: ToolContext, name: str = INDEX) -> str:
    """Read a memory by its name; MEMORY is the index and also tells which others there are."""
    workspace, path = workspace_of(context), _path(name)
    text = _text(workspace, path)
    if path != _path(INDEX):
        if text is None:
            raise NotFound("name", f"there is no memory {name!r} ({_others(workspace)})")
        return text or "[the memory is empty]"
    return f"{text or '[the index is empty]'}\n[{_others(workspace)}]"


@tool(effect=Effect.IDEMPOTENT)
def memory_write(context: ToolContext, name: str, text: str) -> str:
    """Write a memory as a whole, replacing what it held; keep MEMORY, the index, short.

    A name is 1 to 64 letters, digits, '-' and '_'; capitals make no difference.
    """
    data = clean(text).encode()
    if len(data) > LARGEST_MEMORY:
        raise InvalidInput("text", f"must be at most {LARGEST_MEMORY} bytes, not {len(data)}")
    path = _path(name)
    workspace_of(context).write(path, data)
    return f"wrote {len(data)} bytes to {path}"


MEMORY_TOOLS: tuple[Tool, ...] = (memory_read, memory_write)


def _path(name: str) -> str:
    stem = name.removesuffix(".md")
    # By a list of characters: lower-casing first would let foreign letters become these.
    if not _NAME.fullmatch(stem):
        raise InvalidInput(
            "name",
            f"must be 1 to 64 letters, digits, '-' and '_', or {INDEX}, not {name[:80]!r}",
        )
    if stem.upper() == INDEX:
        return f"{INDEX}.md"
    return f"{FOLDER}/{stem.lower()}.md"


def _text(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.read(path).decode("utf-8", "replace")
    except NotFound:
        return None


def _others(workspace: Workspace) -> str:
    try:
        items, count = workspace.items(FOLDER, limit=_MOST_NAMES)
    except NotFound:
        return "no other memories"
    names = [item.name.removesuffix(".md") for item in items if item.name.endswith(".md")]
    more = f" and {count - len(items)} more" if count > len(items) else ""
    return f"other memories: {', '.join(names)}{more}" if names else "no other memories"
