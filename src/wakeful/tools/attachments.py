"""Open what was attached to this conversation: read it, look at it again, or keep it as a file."""

import asyncio
import base64

from wakeful.store.database import Store
from wakeful.tools.files import workspace_of
from wakeful.tools.tool import Effect, Tool, ToolContext, ToolResult, tool
from wakeful.views.attachments import AttachmentView, FoundAttachment
from wakeful.views.outputs import LARGEST_PAGE
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.media import media_type_of, text_of
from wakeful.vocabulary.stimulus import Attachment, KeptAttachment
from wakeful.vocabulary.text import clean


@tool(effect=Effect.READ, is_for_external=True)
async def read_attachment(
    context: ToolContext, id: str, offset: int = 0, limit: int = LARGEST_PAGE
) -> ToolResult:
    """Read a text that was attached to this conversation, or look at an image again.

    The message it came with names its id; offset and limit are counted in characters.
    """
    if offset < 0:
        raise InvalidInput("offset", f"must not be negative, not {offset}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}, not {limit}")
    found, data = await _found(context, id)
    content = await asyncio.to_thread(base64.b64decode, data)
    if media_type_of(content) is not None:
        return _shown(found, data)
    text = await asyncio.to_thread(text_of, content, found.kept.media_type)
    said = _described(found.kept) if text is None else _page(clean(text), offset, limit)
    return ToolResult(text=said, is_external=found.is_external)


@tool(effect=Effect.IDEMPOTENT)
async def save_attachment(context: ToolContext, id: str, path: str) -> str:
    """Keep something that was attached to this conversation as a file of the workspace."""
    workspace = workspace_of(context)
    _, data = await _found(context, id)
    content = await asyncio.to_thread(base64.b64decode, data)
    await asyncio.to_thread(workspace.write, path, content)
    return f"wrote {len(content)} bytes to {path}"


ATTACHMENT_TOOLS: tuple[Tool, ...] = (read_attachment, save_attachment)


async def _found(context: ToolContext, name: str) -> tuple[FoundAttachment, str]:
    view = AttachmentView(_store(context))
    found = await view.find(context.session_key, name, is_current=True)
    return found, await view.read(found.kept.hash)


def _store(context: ToolContext) -> Store:
    if context.store is None:
        raise Permanent("there is no ledger to look at")
    return context.store


def _shown(found: FoundAttachment, data: str) -> ToolResult:
    """Return an image or a document as a result that the model sees."""
    kept = found.kept
    again = Attachment(name=kept.name, media_type=kept.media_type, data=data)
    return ToolResult(text="here it is", attachments=(again,), is_external=found.is_external)


def _described(kept: KeptAttachment) -> str:
    return (
        f"{kept.name} ({kept.media_type}, {kept.size} bytes) is not text; "
        "keep it as a file with save_attachment if you can work with it there"
    )


def _page(text: str, offset: int, limit: int) -> str:
    if not text:
        return "[the file is empty]"
    page = text[offset : offset + limit]
    if not page:
        raise InvalidInput("offset", f"the text ends at {len(text)}")
    end = offset + len(page)
    if end == len(text):
        return page
    return f"{page}\n[up to {end} of {len(text)}; go on with offset {end}]"
