"""An entry of a transcript, as a person reads it."""

from collections.abc import Sequence
from typing import Any, cast

from wakeful.cli.output import counted, safe

ID_DIGITS = 16  # as the ledgers have them; importing theirs would make every verb slower
_ENDED = ("aborted", "error")  # replies that people read and models do not


def said(entry: dict[str, Any]) -> tuple[str, str]:
    """Return who spoke, and what: the words, and below them what came along."""
    body: dict[str, Any] = entry["body"]
    who, text = _spoken(entry["kind"], body)
    message: dict[str, Any] = body.get("message") or {}
    attached: list[dict[str, Any]] = body.get("attachments") or message.get("attachments") or []
    return who, "\n".join(filter(None, (text, *map(_attached, attached))))


def brief(value: Any) -> str:
    """Return a value of a document in few words."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return ", ".join(
            f"{name}=({brief(one)})" if isinstance(one, dict) else f"{name}={brief(one)}"
            for name, one in pairs
        )
    if isinstance(value, list):
        return ", ".join(map(brief, cast("list[Any]", value)))
    return "–" if value is None else str(value)


def _spoken(kind: str, body: dict[str, Any]) -> tuple[str, str]:
    message: dict[str, Any] = body.get("message") or {}
    match body.get("type"):
        case "user":
            return str(body.get("source") or "user"), str(body.get("text", ""))
        case "assistant":
            reason = message.get("stop_reason")
            return f"agent, {reason}" if reason in _ENDED else "agent", _reply(message)
        case "tool":
            who = f"tool {message.get('name', '')}".strip()
            failed = ", failed" if message.get("is_error") else ""
            return who + failed, str(message.get("text", ""))
        case "compaction":
            return "summary", _compaction(body)
        case _:
            return _note(kind, body)


def _reply(message: dict[str, Any]) -> str:
    blocks: Sequence[dict[str, Any]] = message.get("content", ())
    return "\n".join(filter(None, map(_block, blocks)))


def _block(block: dict[str, Any]) -> str:
    if "arguments" in block:
        return f"→ {block.get('name')}({brief(block['arguments'])})"
    return "" if block.get("type") == "thinking" else str(block.get("text", ""))


def _compaction(body: dict[str, Any]) -> str:
    summary = str(body.get("summary") or "")
    if body.get("undoes"):
        return "\n".join(filter(None, ("what was compacted is shown again", summary)))
    details: dict[str, Any] = body.get("details") or {}
    reason = details.get("reset")
    return summary or f"the conversation begins anew{f': {reason}' if reason else ''}"


def _note(kind: str, body: dict[str, Any]) -> tuple[str, str]:
    """Return what a note says; its topic may be another program's word, and speaks for nobody."""
    topic, text = str(body.get("topic") or ""), str(body.get("text") or "")
    match kind:
        case "label":
            return "label", f"{text} (on {topic})" if text else f"taken off {topic}"
        case "model_change":
            return "model", ":".join(filter(None, (topic, text)))
        case "branch_summary":
            return "summary", text
        case "automation_trigger":
            return "automation", text
        case "context_edit":
            return "edit", f"{topic} is left out" if text == "null" else f"{topic} reads {text}"
        case "custom" if topic == "opaque":
            return "line of another program", text
        case _:
            hidden = ", for the model alone" if body.get("is_hidden") else ""
            return f"note ({topic}){hidden}" if topic else f"note{hidden}", text


def _attached(one: dict[str, Any]) -> str:
    name, kind = safe(str(one.get("name", "")), 80), safe(str(one.get("media_type", "")), 80)
    attachment_id = str(one.get("hash", ""))[:ID_DIGITS]
    return f"[attached: {name} ({kind}, {counted(one.get('size', 0), 'byte')}), {attachment_id}]"
