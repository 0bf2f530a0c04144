"""What to type instead of a model's name that is none: names as other tools write them."""

from collections.abc import Collection

# Names of providers elsewhere, and ours.
_ELSEWHERE = {
    "azure-openai": "azure",
    "claude": "anthropic",
    "fireworks-ai": "fireworks",
    "gemini": "google",
    "glm": "zai",
    "google-genai": "google",
    "google-gla": "google",
    "google-vertex": "google-cloud",
    "gpt": "openai",
    "grok": "xai",
    "hf": "huggingface",
    "kimi": "moonshotai",
    "lm-studio": "lmstudio",
    "mistralai": "mistral",
    "moonshot": "moonshotai",
    "ollama-chat": "ollama",
    "together-ai": "together",
    "togetherai": "together",
    "vertex-ai": "google-cloud",
    "x-ai": "xai",
    "zhipu": "zai",
}
# How models begin that one provider is known for.
_BEGINNINGS = (
    ("claude", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("chatgpt", "openai"),
    ("gemini", "google"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("codestral", "mistral"),
    ("kimi", "moonshotai"),
    ("glm", "zai"),
)


def suggestion(name: str, known: Collection[str]) -> str | None:
    """Return a name that may be meant, None if nobody can guess."""
    for separator in (":", "/"):
        before, found, after = name.partition(separator)
        provider = _provider(before, known)
        if found and after and provider is not None:
            return f"{provider}:{after}"
    model = name.lower()
    by_model = (provider for start, provider in _BEGINNINGS if model.startswith(start))
    if (provider := next(by_model, None)) is not None and "/" not in name:
        return f"{provider}:{name}"
    if ":" in name and "/" not in name:  # a name and a tag, as on a machine of one's own
        return f"ollama:{name}"
    return None


def _provider(name: str, known: Collection[str]) -> str | None:
    plain = name.lower().strip().replace("_", "-")
    if plain in known:
        return plain
    return _ELSEWHERE.get(plain)
