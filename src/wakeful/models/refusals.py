"""Refusals that mean "this is too long": the sentences of the providers, as they are really said.

A pure function of what came back and of how much was sent, for every adapter alike.
"""

import re
from http import HTTPStatus

from wakeful.vocabulary.record import Record

LONG_REQUEST = 4_000  # tokens by our estimate: from here on a refusal without a word may mean it
LONGEST_ANSWER = 20_000  # characters of a refusal that are looked at
LEAST_WINDOW = 256  # tokens; a smaller number in a sentence is something else

_NEVER = frozenset(  # statuses that are about who asks, or how often
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
_WORDLESS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})


class Sentence(Record):
    """How one provider says that a request is too long.

    `example` is such an answer, with {asked} and {window} where it has numbers.
    """

    who: str
    sign: str  # a pattern; its group `window` is how many tokens the model takes
    example: str
    status: int = 400


class TooLong(Record):
    """A request was refused for its length."""

    window: int | None = None  # how many tokens the model takes, if the refusal says so
    is_in_bytes: bool = False  # bytes are what there were too many of


_NUMBER = r"(?P<window>\d[\d,]*)"

# Each row names who says it. The sentences are collected from the providers' own documentation and
# sources, from `packages/ai/src/utils/overflow.ts` of earendil-works/pi, and from answers that
# people have quoted in issues of the servers named.
SENTENCES = (
    Sentence(  # docs: "Errors", type invalid_request_error
        who="Anthropic",
        sign=rf"prompt is too long(?:: \d[\d,]* tokens > {_NUMBER} maximum)?",
        example="prompt is too long: {asked} tokens > {window} maximum",
    ),
    Sentence(  # docs: "Context windows": input and output together
        who="Anthropic, with the answer",
        sign=rf"exceed context limit(?:: \d+ \+ \d+ > {_NUMBER})?",
        example="input length and `max_tokens` exceed context limit: {asked} + 4096 > {window}, "
        "decrease input length or `max_tokens` and try again",
    ),
    Sentence(  # docs: "Errors", more than 32 MB
        who="Anthropic, in bytes",
        sign=r"request_too_large|request exceeds the maximum (?:allowed )?(?:size|number of bytes)",
        example="request_too_large: Request exceeds the maximum size",
        status=413,
    ),
    Sentence(  # docs: error code context_length_exceeded, Chat Completions
        who="OpenAI",
        sign=rf"maximum context length (?:is|of) (?:only )?{_NUMBER} tokens",
        example="This model's maximum context length is {window} tokens. However, your messages "
        "resulted in {asked} tokens. Please reduce the length of the messages.",
    ),
    Sentence(  # Responses
        who="OpenAI Responses",
        sign=r"exceeds the context window",
        example="Your input exceeds the context window of this model. "
        "Please adjust your input and try again.",
    ),
    Sentence(  # google.rpc.Status INVALID_ARGUMENT of generateContent
        who="Google",
        sign=rf"input token count.{{0,40}}exceeds the maximum(?: number of tokens allowed "
        rf"\(?{_NUMBER})?",
        example="The input token count ({asked}) exceeds the maximum number of tokens allowed "
        "({window}).",
    ),
    Sentence(  # ValidationException of InvokeModel
        who="Amazon Bedrock",
        sign=r"input is too long for (?:the )?requested model",
        example="Input is too long for requested model.",
    ),
    Sentence(  # ValidationException of Converse, newer
        who="Amazon Bedrock, Converse",
        sign=rf"exceeds the (?:model.s )?maximum (?:number of )?input tokens?(?: of {_NUMBER})?",
        example="The number of input tokens {asked} exceeds the maximum input tokens of {window}.",
    ),
    Sentence(  # server/routes.go and runner
        who="Ollama",
        sign=r"prompt too long; exceeded (?:max )?context length",
        example="prompt too long; exceeded max context length by 1200 tokens",
    ),
    Sentence(  # server/routes.go, for embeddings and chats without truncation
        who="Ollama, without truncation",
        sign=r"input length exceeds (?:the )?(?:maximum )?context length",
        example="the input length exceeds the context length",
        status=500,
    ),
    Sentence(  # tools/server: exceed_context_size_error, with the numbers as fields of their own
        who="llama.cpp",
        sign=rf"exceeds the available context size(?: \({_NUMBER} tokens\))?"
        r"|exceed_context_size_error",
        example="request ({asked} tokens) exceeds the available context size ({window} tokens), "
        "try increasing it",
    ),
    Sentence(  # says how many tokens it was loaded with
        who="LM Studio",
        sign=rf"loaded with context length of only {_NUMBER}",
        example="Trying to keep the first {asked} tokens when context the overflows. However, the "
        "model is loaded with context length of only {window} tokens, which is not enough.",
    ),
    Sentence(
        who="LM Studio, older",
        sign=r"greater than the context length",
        example="The number of tokens to keep from the initial prompt is greater than the context "
        "length. Try to load the model with a larger context length.",
    ),
    Sentence(  # vllm/entrypoints, since 0.8
        who="vLLM",
        sign=rf"maximum model length of {_NUMBER}",
        example="The decoder prompt (length {asked}) is longer than the maximum model length of "
        "{window}. Make sure that `max_model_len` is no smaller.",
    ),
    Sentence(  # vllm/entrypoints, for what the answer may take
        who="vLLM, with the answer",
        sign=rf"max_(?:completion_)?tokens.{{0,60}}too large: \d+\. this model.s maximum context "
        rf"length is {_NUMBER}",
        example="'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum "
        "context length is {window} tokens and your request has {asked} input tokens.",
    ),
    Sentence(  # and other servers of OpenAI's format; some hand it on with the status 503
        who="LiteLLM, SGLang",
        sign=rf"(?:longer than|exceeds) (?:the )?(?:model.?s )?(?:maximum )?context length"
        rf"(?:(?: of)? \(?{_NUMBER})?",
        example="Requested token count exceeds the model's maximum context length of {window} "
        "tokens. You requested a total of {asked} tokens.",
        status=503,
    ),
    Sentence(
        who="Together",
        sign=rf"input \(\d+ tokens\) is longer than the model.?s context length \({_NUMBER}",
        example="The input ({asked} tokens) is longer than the model's context length ({window} "
        "tokens).",
    ),
    Sentence(  # the coding endpoint
        who="Kimi",
        sign=rf"exceeded model token limit(?:: {_NUMBER})?",
        example="Invalid request: Your request exceeded model token limit: {window} "
        "(requested: {asked})",
    ),
    Sentence(  # base_resp 2013
        who="MiniMax",
        sign=r"context window exceeds limit",
        example="invalid params, context window exceeds limit (2013)",
    ),
    Sentence(
        who="GitHub Copilot",
        sign=rf"prompt token count of \d[\d,]* exceeds the limit of {_NUMBER}",
        example="prompt token count of {asked} exceeds the limit of {window}",
    ),
    Sentence(
        who="xAI",
        sign=rf"maximum prompt length is {_NUMBER}",
        example="This model's maximum prompt length is {window} but the request contains {asked} "
        "tokens.",
    ),
    Sentence(
        who="Groq",
        sign=r"reduce the length of (?:the|your) (?:messages|prompt|input)",
        example="Please reduce the length of the messages or completion.",
    ),
    Sentence(  # also of OpenAI, status 429: more than a whole minute's tokens in one request
        who="Groq, one request above a minute's tokens",
        sign=rf"request too large for .{{0,200}}limit {_NUMBER}, requested (?P<asked>\d[\d,]*)",
        example="Request too large for model `m` in organization `o` on tokens per minute (TPM): "
        "Limit {window}, Requested {asked}, please reduce your message size and try again.",
        status=413,
    ),
    Sentence(
        who="Mistral",
        sign=rf"too large for model with {_NUMBER} maximum context length",
        example="Prompt contains {asked} tokens and 0 draft tokens, too large for model with "
        "{window} maximum context length",
    ),
    Sentence(  # its other refusals have no body at all
        who="Cerebras",
        sign=rf"current length is \d+ while limit is {_NUMBER}",
        example="Please reduce the length of the messages or completion. Current length is {asked} "
        "while limit is {window}",
    ),
    Sentence(
        who="OpenRouter",
        sign=rf"endpoint.s maximum context length is {_NUMBER}",
        example="This endpoint's maximum context length is {window} tokens. However, you requested "
        "about {asked} tokens (400 of text input, 200 of tool input).",
    ),
    Sentence(
        who="OpenRouter, Poolside",
        sign=rf"maximum allowed input length of {_NUMBER}",
        example="Input length {asked} exceeds the maximum allowed input length of {window} tokens.",
    ),
    Sentence(  # DashScope
        who="Alibaba",
        sign=rf"range of input length should be \[1, {_NUMBER}",
        example="Range of input length should be [1, {window}]",
    ),
    Sentence(  # a reason to finish that is handed on as an error
        who="Z.ai",
        sign=r"model_context_window_exceeded",
        example="finish_reason: model_context_window_exceeded",
    ),
    Sentence(
        who="Cohere",
        sign=rf"too many tokens: .{{0,120}}cannot exceed {_NUMBER}"
        rf"|too many tokens: size limit exceeded",
        example="too many tokens: total number of tokens in the prompt cannot exceed {window} - "
        "received {asked}. Try using a shorter prompt or enabling prompt truncating.",
    ),
    Sentence(  # error codes that are handed on by many
        who="anybody, by its code",
        sign=r"context[_ ](?:length|window)[_ ]exceeded|context[_ ]overflow"
        r"|string_above_max_length|max_context_length",
        example='{{"code": "context_length_exceeded", "param": "messages"}}',
    ),
    Sentence(
        who="anybody",
        sign=r"too many (?:input )?tokens|token limit exceeded|prompt (?:is )?too long"
        r"|input (?:is )?too long|context size has been exceeded",
        example="Too many tokens in request.",
    ),
)

# More than a minute's or a day's tokens is no length: the same request is answered later.
_ABOUT_RATE = re.compile(
    r"rate.?limit|too many requests|throttl|quota|please wait|try again (?:in|later|after)"
    r"|(?:tokens?|requests?) per (?:second|minute|min|hour|day|month)|\((?:tpm|tpd|rpm|rpd)\)"
    r"|overloaded",
    re.IGNORECASE,
)
_SIGNS = tuple(re.compile(one.sign, re.IGNORECASE | re.DOTALL) for one in SENTENCES)
_ABOVE_A_MINUTE = next(sign for sign in _SIGNS if "asked" in sign.groupindex)
_FIELDS = re.compile(r"[\"']?(?:n_ctx|max_model_len|max_context_length)[\"']?\s*[:=]\s*(\d+)")


def too_long(status: int | None, said: str, tokens: int) -> TooLong | None:
    """Return what a refusal says about length, or None if it is about something else.

    `said` is the whole body as text, `tokens` our estimate of what was sent. A refusal without
    any words counts if the request was long: several servers answer nothing but a status then.
    """
    said = said[:LONGEST_ANSWER]
    above = _ABOVE_A_MINUTE.search(said)
    if above is not None and _number(above["asked"]) > _number(above["window"]):
        return TooLong(window=_plausible(_number(above["window"])))
    if status in _NEVER or _ABOUT_RATE.search(said) is not None:
        return None
    found = [match for sign in _SIGNS if (match := sign.search(said)) is not None]
    if found:
        window = _plausible(_smallest(found, said))
        is_in_bytes = window is None and status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return TooLong(window=window, is_in_bytes=is_in_bytes)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return TooLong(is_in_bytes=True)
    is_wordless = status in _WORDLESS and not said.strip(" \t\r\n{}\"'")
    return TooLong() if is_wordless and tokens >= LONG_REQUEST else None


def _smallest(found: list[re.Match[str]], said: str) -> int:
    """Return the smallest number that a refusal names as the window; 0 if it names none."""
    numbers = [
        _number(number)
        for match in found
        for name, number in match.groupdict().items()
        if name == "window" and number is not None
    ]
    numbers += [int(field) for field in _FIELDS.findall(said)]
    return min(numbers, default=0)


def _plausible(window: int) -> int | None:
    return window if window >= LEAST_WINDOW else None


def _number(digits: str) -> int:
    return int(digits.replace(",", ""))
