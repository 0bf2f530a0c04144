"""OpenAI's older wire, which most local servers speak: Chat Completions, streamed."""

from typing import Any

from wakeful.testing.providers.plan import Step, in_pieces
from wakeful.testing.providers.wire import Body, Frame, Question, unnamed, unpaired
from wakeful.vocabulary.message import encode_message

_FIELDS = (
    *("role", "content", "tool_calls", "tool_call_id"),
    *("reasoning", "reasoning_content", "reasoning_details"),
)


class OpenAIChatStandIn:
    """How OpenAI and its many likenesses speak."""

    path = "/v1/chat/completions"

    def read(self, body: Body) -> Question:
        messages: list[dict[str, Any]] = body["messages"]
        said = [_text(message["content"]) for message in messages if message["role"] == "user"]
        pairs = [
            (
                [call["id"] for call in message.get("tool_calls") or ()],
                [message["tool_call_id"]] if message["role"] == "tool" else [],
            )
            for message in messages
        ]
        return Question(said=said, problem=_unknown(messages) or unpaired(pairs))

    def write(self, body: Body, step: Step, new_id: str) -> list[Frame]:
        def chunk(kind: str, delta: dict[str, Any], finish: str | None = None) -> Frame:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return unnamed(kind, {**head, "choices": [choice]})

        head = {
            "id": f"chatcmpl-{new_id}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": body["model"],
        }
        reason = step.stop or ("tool_calls" if step.calls else "stop")
        frames = [chunk("start", {"role": "assistant", "content": ""})]
        if step.thinking:
            frames += [chunk("thinking", thought) for thought in _thoughts(step)]
        frames += [chunk("delta", {"content": p}) for p in in_pieces(step.text, step.pieces)]
        frames += [chunk("call", {"tool_calls": [call]}) for call in _calls(step, new_id)]
        frames.append(chunk("finish", {}, reason))
        options: Body = body.get("stream_options") or {}
        if options.get("include_usage"):
            frames.append(unnamed("usage", {**head, "choices": [], "usage": _usage(step)}))
        return [*frames, Frame(kind="done", data=b"data: [DONE]\n\n")]

    def refusal(self, status: int, message: str) -> Body:
        codes = {400: "invalid_request", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
        error = {"message": message, "type": "error", "code": codes.get(status), "param": None}
        return {"error": error}


def _unknown(messages: list[dict[str, Any]]) -> str | None:
    """Return which message has a field that there is not."""
    for at, message in enumerate(messages):
        if strange := [field for field in message if field not in _FIELDS]:
            return f"messages.{at}: additional properties are not allowed: {strange[0]}"
    return None


def _thoughts(step: Step) -> list[dict[str, Any]]:
    if step.thinking_in != "reasoning_details":
        return [{step.thinking_in: step.thinking}]
    known = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    pieces: list[dict[str, Any]] = [
        {"reasoning": text, "reasoning_details": [{**known, "text": text}]}
        for text in in_pieces(step.thinking, step.pieces)
    ]
    sealed = {"type": "reasoning.encrypted", "index": 1, "id": "r1", "data": "c2VhbGVk"}
    signed = {**known, "text": "", "signature": "sig"}
    return [*pieces, {"reasoning_details": [signed]}, {"reasoning_details": [sealed]}]


def _calls(step: Step, new_id: str) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []
    for index, call in enumerate(step.calls):
        call_id = f"call_{new_id}_{index}" if call.id is None else call.id
        raw = encode_message(call.arguments).decode() if call.raw is None else call.raw
        first, *others = in_pieces(raw, step.pieces) or [""]
        function = {"name": call.name, "arguments": first}
        calls.append({"index": index, "id": call_id, "type": "function", "function": function})
        calls += [{"index": index, "function": {"arguments": piece}} for piece in others]
    return calls


def _usage(step: Step) -> dict[str, Any]:
    tokens = step.tokens
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
    }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
