"""Where those who speak like OpenAI differ from it, as far as they say so."""

from collections.abc import Mapping

from wakeful.vocabulary.record import Record


class Dialect(Record):
    """Where a provider that speaks like OpenAI does not."""

    limit: str = "max_tokens"  # how the longest answer is called
    # How it is told to think: effort, default, routed, switched, disabled or kept.
    thinking: str = "effort"
    has_stream_options: bool = True
    is_strict: bool = True  # takes tools whose schema it must hold to
    has_short_ids: bool = False  # refuses ids of calls that are not nine letters
    # A field that every call must have once there were thoughts; for some even before there were.
    thoughts_in: str = ""
    always_thoughts: bool = False


# Many of the others pass over OpenAI's newer name for it without a word, and never stop.
_NEWER = "max_completion_tokens"
USUAL = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "cerebras": Dialect(limit=_NEWER, thinking="kept"),
    "deepseek": Dialect(thoughts_in="reasoning_content", always_thoughts=True),
    "groq": Dialect(limit=_NEWER, thinking="default"),
    "litellm": Dialect(limit=_NEWER),
    "mistral": Dialect(has_stream_options=False, has_short_ids=True),
    "moonshotai": Dialect(limit=_NEWER, thinking="disabled", thoughts_in="reasoning_content"),
    "ollama": Dialect(is_strict=False),
    "openai": Dialect(limit=_NEWER),
    "openai-chat": Dialect(limit=_NEWER),
    "openrouter": Dialect(thinking="routed"),
    "vercel": Dialect(limit=_NEWER),
    "xai": Dialect(limit=_NEWER),
    "zai": Dialect(thinking="switched", thoughts_in="reasoning_content"),
}
