"""Anthropic's wire: the Messages interface, streamed."""

import re
from collections.abc import Sequence
from typing import Any, cast

from wakeful.testing.providers.plan import Step, in_pieces
from wakeful.testing.providers.wire import Body, Frame, Question, frame, unpaired
from wakeful.vocabulary.message import encode_message

Blocks = list[dict[str, Any]]

_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LATER = {429: "rate_limit_error", 529: "overloaded_error"}


class Anthropic:
    """How Anthropic speaks."""

    path = "/v1/messages"

    def read(self, body: Body) -> Question:
        turns = [(message["role"], _blocks(message["content"])) for message in body["messages"]]
        said = [block["text"] for role, blocks in turns if role == "user" for block in blocks
                if block["type"] == "text"]  # fmt: skip
        pairs = [(_ids(blocks, "tool_use", "id"), _ids(blocks, "tool_result", "tool_use_id"))
                 for _, blocks in turns]  # fmt: skip
        calls = [call_id for ids, _ in pairs for call_id in ids]
        return Question(said=said, problem=_unsaid(turns) or unpaired(pairs) or _refused_ids(calls))

    def write(self, body: Body, step: Step, new_id: str) -> list[Frame]:
        tokens = step.tokens
        usage = {
            "input_tokens": tokens.input - tokens.cache_read - tokens.cache_write,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write,
            "output_tokens": 1,
        }
        start: Body = {
            "id": f"msg_{new_id}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        reason = step.stop or ("tool_use" if step.calls else "end_turn")
        return [
            frame("message_start", message=start),
            frame("ping"),
            *_content(step, new_id),
            frame(
                "message_delta",
                delta={"stop_reason": reason, "stop_sequence": None},
                usage={"output_tokens": tokens.output},
            ),
            frame("message_stop"),
        ]

    def refusal(self, status: int, message: str) -> Body:
        kind = _ERRORS.get(status) or _LATER.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


def _refused_ids(calls: Sequence[str]) -> str | None:
    """Return what the provider says about ids that it does not take."""
    for call_id in calls:
        if not _CALL_ID.fullmatch(call_id):
            return f"tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {call_id!r}"
    return None if len(set(calls)) == len(calls) else "`tool_use` ids must be unique"


def _content(step: Step, new_id: str) -> list[Frame]:
    frames: list[Frame] = []
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if step.thinking:
        deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": step.thinking}]
        deltas.append({"type": "signature_delta", "signature": f"sig_{new_id}"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if step.text:
        pieces = in_pieces(step.text, step.pieces)
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces])
        )
    for number, call in enumerate(step.calls):
        call_id = f"toolu_{new_id}_{number}" if call.id is None else call.id
        raw = encode_message(call.arguments).decode() if call.raw is None else call.raw
        head: Body = {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}
        pieces = in_pieces(raw, step.pieces)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append((head, deltas))
    for index, (head, deltas) in enumerate(blocks):
        frames.append(frame("content_block_start", index=index, content_block=head))
        frames += [frame("content_block_delta", index=index, delta=delta) for delta in deltas]
        frames.append(frame("content_block_stop", index=index))
    return frames


def _blocks(content: object) -> Blocks:
    return (
        [{"type": "text", "text": content}] if isinstance(content, str) else cast(Blocks, content)
    )


def _ids(blocks: Blocks, kind: str, key: str) -> list[str]:
    return [block[key] for block in blocks if block["type"] == kind]


def _unsaid(turns: list[tuple[str, Blocks]]) -> str | None:
    """Return which message says nothing, or comes in the wrong place."""
    for at, (_, blocks) in enumerate(turns):
        if not blocks or any(block["type"] == "text" and not block["text"] for block in blocks):
            return f"message {at}: text content blocks must be non-empty"
    return None if turns and turns[0][0] == "user" else "the first message must be a user's"
