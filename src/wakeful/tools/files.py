"""Tools that read and change the files of the agent's workspace."""

from wakeful.tools.running import LONGEST_RESULT
from wakeful.tools.tool import Effect, Tool, ToolContext, tool
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.stimulus import Trust
from wakeful.vocabulary.text import clean, one_line
from wakeful.workspace import Item, Workspace

MOST_ITEMS = 1000  # of one listing
MOST_LINES = 5000  # of one reading
_PAGE = LONGEST_RESULT - 200  # characters; the rest is for the note about what follows
_LONGEST_SHOWN_NAME = 255


def workspace_of(context: ToolContext) -> Workspace:
    """Return the workspace of the calling agent, or tell that it has none.

    For a turn from outside it holds what is shared, and nothing else.
    """
    if context.workspace is None:
        raise Permanent(f"the agent {context.agent_id!r} has no workspace configured")
    shared = None if context.trust is Trust.OPERATOR else context.shared_files
    return Workspace(context.workspace, shared)


@tool(effect=Effect.READ, is_for_external=True)
def list_files(context: ToolContext, folder: str = "", limit: int = 200) -> str:
    """List a folder of the workspace; paths are relative to it, and folders end in '/'."""
    if not 1 <= limit <= MOST_ITEMS:
        raise InvalidInput("limit", f"must be from 1 to {MOST_ITEMS}, not {limit}")
    workspace = workspace_of(context)
    if not folder and not workspace.has_root():
        return "the workspace is empty"
    items, count = workspace.items(folder, limit=limit)
    if not items:
        return "the folder is empty" if folder else "the workspace is empty"
    lines = [_line(item) for item in items]
    if count > limit:
        lines.append(f"[{count - limit} more; raise limit to see them]")
    return "\n".join(lines)


@tool(effect=Effect.READ, is_for_external=True)
def read_file(context: ToolContext, path: str, start_line: int = 1, max_lines: int = 400) -> str:
    """Read a text file of the workspace, or a part of it by its lines, counted from 1."""
    if start_line < 1:
        raise InvalidInput("start_line", f"must be at least 1, not {start_line}")
    if not 1 <= max_lines <= MOST_LINES:
        raise InvalidInput("max_lines", f"must be from 1 to {MOST_LINES}, not {max_lines}")
    text = workspace_of(context).read(path).decode("utf-8", "replace")
    return _page(text, start_line, max_lines) if text else "[the file is empty]"


@tool(effect=Effect.IDEMPOTENT)
def write_file(context: ToolContext, path: str, text: str) -> str:
    """Write a text file of the workspace, replacing it as a whole; folders are made as needed."""
    data = clean(text).encode()
    workspace_of(context).write(path, data)
    return f"wrote {len(data)} bytes to {path}"


@tool(effect=Effect.EFFECT)
def edit_file(context: ToolContext, path: str, old: str, new: str) -> str:
    """Replace the one place where a file of the workspace has exactly the text `old`."""
    if not old:
        raise InvalidInput("old", "must not be empty; use write_file to write a whole file")
    line = 0

    def edited(data: bytes) -> bytes:
        nonlocal line
        text = _decoded(data, path)
        at = _only_place(text, clean(old), path)
        line = text.count("\n", 0, at) + 1
        return (text[:at] + clean(new) + text[at + len(old) :]).encode()

    workspace_of(context).change(path, edited)
    return f"edited {path} at line {line}"


@tool(effect=Effect.EFFECT)
def delete_file(context: ToolContext, path: str) -> str:
    """Delete one file of the workspace."""
    workspace_of(context).delete(path)
    return f"deleted {path}"


FILE_TOOLS: tuple[Tool, ...] = (list_files, read_file, write_file, edit_file, delete_file)


def _line(item: Item) -> str:
    name = one_line(item.name, _LONGEST_SHOWN_NAME)
    if item.is_folder:
        return f"{name}/"
    if not item.is_reachable:
        return f"{name} (a link or a device: not accessible)"
    return f"{name} ({item.size} bytes)"


def _page(text: str, start_line: int, max_lines: int) -> str:
    """Return as many whole lines as asked for and as fit, and how to read on."""
    if start_line == 1 and len(text) <= _PAGE and text.count("\n") <= max_lines - 1:
        return text
    lines = text.split("\n")
    if start_line > len(lines):
        raise InvalidInput("start_line", f"the file has only {len(lines)} lines")
    taken: list[str] = []
    room = _PAGE
    for line in lines[start_line - 1 : start_line - 1 + max_lines]:
        if taken and len(line) >= room:
            break
        taken.append(line)
        room -= len(line) + 1
    last = start_line + len(taken) - 1
    shown = "\n".join(taken)
    if len(shown) > _PAGE:  # one line longer than a page
        note = f"[the first {_PAGE} of the {len(shown)} characters of line {last}]"
        shown = f"{shown[:_PAGE]}\n{note}"
    if last == len(lines):
        return shown
    return (
        f"{shown}\n[lines {start_line} to {last} of {len(lines)}; go on with start_line {last + 1}]"
    )


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("path", f"{path!r} is not UTF-8 text and cannot be edited") from None


def _only_place(text: str, old: str, path: str) -> int:
    first = text.find(old)
    if first < 0:
        raise InvalidInput("old", f"does not occur in {path!r}; it must match exactly")
    # From the next character on: places that overlap are two places too.
    if text.find(old, first + 1) >= 0:
        raise InvalidInput(
            "old", f"occurs more than once in {path!r}; give more of its surroundings"
        )
    return first
