"""Files that go out: read from the workspace, from what was attached, or from a tool's output."""

import asyncio
import base64
from mimetypes import guess_type
from pathlib import PurePosixPath

from wakeful.intake.draft import ready
from wakeful.store.database import Store
from wakeful.tools.files import workspace_of
from wakeful.tools.tool import ToolContext
from wakeful.views.attachments import AttachmentView
from wakeful.views.outputs import LARGEST_PAGE, OutputView
from wakeful.vocabulary.errors import InvalidInput, NotFound, Permanent
from wakeful.vocabulary.media import HEAD, TEXT, media_type_of, text_of
from wakeful.vocabulary.stimulus import Attachment, ReadyAttachment

MOST_FILES = 20
LARGEST_FILES = 10 * 1024 * 1024  # bytes, together
ATTACHMENT = "attachment:"
OUTPUT = "output:"
UNKNOWN = "application/octet-stream"


async def read_files(context: ToolContext, names: list[str]) -> tuple[ReadyAttachment, ...]:
    """Return the files that a call names, measured, or raise InvalidInput naming the one."""
    if len(names) > MOST_FILES:
        raise InvalidInput("files", f"must be at most {MOST_FILES}, not {len(names)}")
    found: list[Attachment] = []
    size = 0
    for name in names:
        one = await _read(context, name)
        size += len(one.data) * 3 // 4
        if size > LARGEST_FILES:
            raise InvalidInput("files", "must be at most 10 MiB together")
        found.append(one)
    return await ready(found)


async def _read(context: ToolContext, name: str) -> Attachment:
    if name.startswith(ATTACHMENT):
        return await _attached(context, name.removeprefix(ATTACHMENT).strip())
    if name.startswith(OUTPUT):
        return await _output(context, name.removeprefix(OUTPUT).strip())
    content = await asyncio.to_thread(workspace_of(context).read, name)
    return _made(PurePosixPath(name).name, content)


async def _attached(context: ToolContext, name: str) -> Attachment:
    view = AttachmentView(_store(context))
    found = await view.find(context.session_key, name, is_current=True)
    data = await view.read(found.kept.hash)
    return Attachment(name=found.kept.name, media_type=found.kept.media_type, data=data)


async def _output(context: ToolContext, name: str) -> Attachment:
    """Return all that was kept of a tool's output of this conversation."""
    view = OutputView(_store(context))
    if await view.session_of(name) != context.session_key:
        raise NotFound("files", f"no output {name[:80]!r}")
    parts: list[str] = []
    at: int | None = 0
    while at is not None:
        page = await view.read(name, offset=at, limit=LARGEST_PAGE)
        parts.append(page.text)
        at = page.next
    return _made(f"{name}.txt", "".join(parts).encode())


def _made(name: str, content: bytes) -> Attachment:
    kind = media_type_of(content[:HEAD]) or guess_type(name)[0]
    if kind is None:
        is_text = text_of(content[:4096], UNKNOWN, is_whole=len(content) <= 4096) is not None
        kind = TEXT if is_text else UNKNOWN
    return Attachment(name=name, media_type=kind, data=base64.b64encode(content).decode())


def _store(context: ToolContext) -> Store:
    if context.store is None:
        raise Permanent("there is no ledger to look at")
    return context.store
