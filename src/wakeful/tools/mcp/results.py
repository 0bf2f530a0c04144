"""What a server's answer to a call says, as text for a model."""

import mcp_types as types
import msgspec

from wakeful.tools.tool import ToolResult
from wakeful.vocabulary.text import clean_json, one_line

_NAME = 200  # characters shown of a name or an address


def as_result(answer: types.CallToolResult) -> ToolResult:
    """Return an answer as a tool's result: texts, else structured content; a note for the rest."""
    parts = [_said(block) for block in answer.content]
    has_text = any(isinstance(block, types.TextContent) for block in answer.content)
    if answer.structured_content is not None and not has_text:
        parts.append(msgspec.json.encode(clean_json(answer.structured_content)).decode())
    return ToolResult(text="\n".join(parts) or "done", is_error=bool(answer.is_error))


def _said(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
            return f"[{block.type}: {one_line(block.mime_type, _NAME)}, {size} bytes, not shown]"
        case types.ResourceLink():
            return f"[resource: {one_line(str(block.uri), _NAME)}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return f"[resource: {one_line(str(resource.uri), _NAME)}]\n{resource.text}"
        case types.EmbeddedResource(resource=resource):
            return f"[resource: {one_line(str(resource.uri), _NAME)}, not text, not shown]"
