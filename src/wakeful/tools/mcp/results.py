"""What a server's answer to a call says, as text for a model."""

import mcp_types as types
import msgspec

from wakeful.tools.tool import ToolResult
from wakeful.vocabulary.stimulus import Attachment
from wakeful.vocabulary.text import clean_json, one_line

_UNKNOWN = "application/octet-stream"
_NAME = 200  # characters shown of a name or an address


def as_result(answer: types.CallToolResult) -> ToolResult:
    """Return an answer as a tool's result: texts, else structured content; a note for the rest."""
    parts = [_said(block) for block in answer.content]
    attached = [one for at, block in enumerate(answer.content, 1) for one in _attached(block, at)]
    has_text = any(isinstance(block, types.TextContent) for block in answer.content)
    if answer.structured_content is not None and not has_text:
        parts.append(msgspec.json.encode(clean_json(answer.structured_content)).decode())
    return ToolResult(
        text="\n".join(part for part in parts if part) or "done",
        is_error=bool(answer.is_error),
        attachments=tuple(attached),
    )


def _attached(block: types.ContentBlock, number: int) -> list[Attachment]:
    """Return what a block has for a model that sees; the server gives it no name of its own."""
    match block:
        case types.ImageContent():
            kind, data = block.mime_type, block.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            kind, data = resource.mime_type or _UNKNOWN, resource.blob
        case _:
            return []
    kind = one_line(kind, _NAME) or _UNKNOWN
    word = kind.partition("/")[2].partition(";")[0]
    return [Attachment(name=f"{number}.{word}", media_type=kind, data=data)]


def _said(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent():
            return ""  # it goes along
        case types.AudioContent():
            size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
            return f"[{block.type}: {one_line(block.mime_type, _NAME)}, {size} bytes, not shown]"
        case types.ResourceLink():
            return f"[resource: {one_line(str(block.uri), _NAME)}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return f"[resource: {one_line(str(resource.uri), _NAME)}]\n{resource.text}"
        case types.EmbeddedResource(resource=resource):
            return f"[resource: {one_line(str(resource.uri), _NAME)}]"
