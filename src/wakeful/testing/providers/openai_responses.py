"""OpenAI's newer wire: the Responses interface, streamed."""

from itertools import count
from typing import Any

from wakeful.testing.providers.plan import Step, in_pieces
from wakeful.testing.providers.wire import Body, Frame, Question, frame, unpaired
from wakeful.vocabulary.message import encode_message

Item = dict[str, Any]


class OpenAIResponsesStandIn:
    """How OpenAI itself speaks."""

    path = "/v1/responses"

    def read(self, body: Body) -> Question:
        items: list[Item] = body["input"]
        said = [_text(item["content"]) for item in items if item.get("role") == "user"]
        return Question(said=said, problem=unpaired(_pairs(items)))

    def write(self, body: Body, step: Step, new_id: str) -> list[Frame]:
        response: Body = {
            "id": f"resp_{new_id}",
            "object": "response",
            "created_at": 1_700_000_000,
            "model": body["model"],
            "status": "in_progress",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        items = _items(step, new_id)
        tokens = step.tokens
        usage = {
            "input_tokens": tokens.input,
            "input_tokens_details": {
                "cached_tokens": tokens.cache_read,
                "cache_write_tokens": tokens.cache_write,
            },
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens.input + tokens.output,
        }
        ending, how = _ending(step.stop)
        whole = {**response, "output": items, "usage": usage, **how}
        numbers = count()
        events: list[tuple[str, dict[str, Any]]] = [("response.created", {"response": response})]
        for index, item in enumerate(items):
            events += _item_events(index, item, step)
        events.append((ending, {"response": whole}))
        return [frame(kind, sequence_number=next(numbers), **data) for kind, data in events]

    def refusal(self, status: int, message: str) -> Body:
        codes = {400: "invalid_request", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
        error = {"message": message, "type": "error", "code": codes.get(status), "param": None}
        return {"error": error}


def _ending(stop: str) -> tuple[str, Item]:
    """Return the last event, and what it says about how the answer ended."""
    if not stop:
        return "response.completed", {"status": "completed"}
    if stop == "failed":
        error = {"code": "server_error", "message": "it failed"}
        return "response.failed", {"status": stop, "error": error}
    return "response.incomplete", {"status": "incomplete", "incomplete_details": {"reason": stop}}


def _items(step: Step, new_id: str) -> list[Item]:
    items: list[Item] = []
    if step.thinking:
        summary = [{"type": "summary_text", "text": step.thinking}]
        sealed = f"sealed_{new_id}"
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{new_id}",
                "summary": summary,
                "encrypted_content": sealed,
            }
        )
    if step.text:
        part: Item = {"type": "output_text", "text": step.text, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{new_id}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for number, call in enumerate(step.calls):
        raw = encode_message(call.arguments).decode() if call.raw is None else call.raw
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{new_id}_{number}",
                "call_id": f"call_{new_id}_{number}" if call.id is None else call.id,
                "name": call.name,
                "arguments": raw,
                "status": "completed",
            }
        )
    return items


def _item_events(index: int, item: Item, step: Step) -> list[tuple[str, dict[str, Any]]]:
    place = {"output_index": index, "item_id": item["id"]}
    begun: Item
    part: Item
    middle: list[tuple[str, Item]]
    match item["type"]:
        case "message":
            begun = {**item, "content": [], "status": "in_progress"}
            part = {"type": "output_text", "text": "", "annotations": []}
            text = {**place, "content_index": 0}
            middle = [
                ("response.content_part.added", {**text, "part": part}),
                *(
                    ("response.output_text.delta", {**text, "delta": piece, "logprobs": []})
                    for piece in in_pieces(step.text, step.pieces)
                ),
                ("response.output_text.done", {**text, "text": step.text, "logprobs": []}),
                ("response.content_part.done", {**text, "part": item["content"][0]}),
            ]
        case "function_call":
            begun = {**item, "arguments": "", "status": "in_progress"}
            kind = "response.function_call_arguments"
            pieces = in_pieces(item["arguments"], step.pieces)
            middle = [(f"{kind}.delta", {**place, "delta": piece}) for piece in pieces]
            middle.append((f"{kind}.done", {**place, "arguments": item["arguments"]}))
        case _:
            begun = {**item, "summary": []}
            summary = {**place, "summary_index": 0}
            part = item["summary"][0]
            kind = "response.reasoning_summary"
            middle = [
                (f"{kind}_part.added", {**summary, "part": {**part, "text": ""}}),
                (f"{kind}_text.delta", {**summary, "delta": part["text"]}),
                (f"{kind}_text.done", {**summary, "text": part["text"]}),
                (f"{kind}_part.done", {**summary, "part": part}),
            ]
    return [
        ("response.output_item.added", {"output_index": index, "item": begun}),
        *middle,
        ("response.output_item.done", {"output_index": index, "item": item}),
    ]


def _pairs(items: list[Item]) -> list[tuple[list[str], list[str]]]:
    """Return calls and results; calls in a row belong together."""
    pairs: list[tuple[list[str], list[str]]] = []
    for item in items:
        match item.get("type"):
            case "function_call" if pairs and pairs[-1][0]:
                pairs[-1][0].append(item["call_id"])
            case "function_call":
                pairs.append(([item["call_id"]], []))
            case "function_call_output":
                pairs.append(([], [item["call_id"]]))
            case "reasoning":
                pass
            case _:
                pairs.append(([], []))
    return pairs


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
