"""The providers that a model's name may begin with, and what each of them needs to work.

The library behind them takes seconds to import; this table answers at the start, in no time.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

LIBRARY = "pydantic_ai"
OWN_EXTRAS = {"anthropic": "anthropic", "google.genai": "google", "openai": "openai"}


class Provider(Record):
    """Somebody whose models can be asked."""

    package: str  # what must be installed
    keys: tuple[str, ...] = ()  # variables of the environment; one of them must be set
    extra: str = ""  # of the library, for a package that is none of our own extras

    @property
    def install(self) -> str:
        """What to install for it."""
        own = OWN_EXTRAS.get(self.package)
        return f"wakeful[{own}]" if own else f"pydantic-ai-slim[{self.extra}]"


def _openai(*keys: str) -> Provider:
    """A provider that speaks OpenAI's language."""
    return Provider(package="openai", keys=keys)


PROVIDERS: Mapping[str, Provider] = {
    "alibaba": _openai("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    "anthropic": Provider(package="anthropic", keys=("ANTHROPIC_API_KEY",)),
    "azure": _openai("AZURE_OPENAI_API_KEY"),
    "azure-responses": _openai("AZURE_OPENAI_API_KEY"),
    "bedrock": Provider(package="botocore", extra="bedrock"),
    "bedrock-mantle": _openai(),
    "cerebras": _openai("CEREBRAS_API_KEY"),
    "cohere": Provider(package="cohere", keys=("CO_API_KEY",), extra="cohere"),
    "crusoe": _openai("CRUSOE_API_KEY"),
    "deepseek": _openai("DEEPSEEK_API_KEY"),
    "fireworks": _openai("FIREWORKS_API_KEY"),
    "github-copilot": _openai(
        "GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"
    ),
    "google": Provider(package="google.genai", keys=("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "google-cloud": Provider(package="google.genai"),
    "groq": Provider(package="groq", keys=("GROQ_API_KEY",), extra="groq"),
    "heroku": _openai("HEROKU_INFERENCE_KEY"),
    "huggingface": Provider(package="huggingface_hub", keys=("HF_TOKEN",), extra="huggingface"),
    "litellm": _openai(),
    "meta": _openai("META_API_KEY"),
    "mistral": Provider(package="mistralai", keys=("MISTRAL_API_KEY",), extra="mistral"),
    "moonshotai": _openai("MOONSHOTAI_API_KEY"),
    "nebius": _openai("NEBIUS_API_KEY"),
    "ollama": _openai("OLLAMA_BASE_URL"),
    "openai": _openai("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-chat": _openai("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-codex": _openai(),
    "openai-responses": _openai("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openrouter": _openai("OPENROUTER_API_KEY"),
    "ovhcloud": _openai("OVHCLOUD_API_KEY"),
    "sambanova": _openai("SAMBANOVA_API_KEY"),
    "snowflake": _openai("SNOWFLAKE_TOKEN"),
    "together": _openai("TOGETHER_API_KEY"),
    "vercel": _openai("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"),
    "vllm": _openai("VLLM_BASE_URL"),
    "xai": Provider(package="xai_sdk", keys=("XAI_API_KEY",), extra="xai"),
    "zai": _openai("ZAI_API_KEY"),
}


def refuse_unknown(name: str, field: str = "model") -> None:
    """Raise for a name that is no model's, whoever may ask it."""
    if name == "demo":
        return
    prefix, separator, model = name.partition(":")
    if not separator or not model:
        rule = f"must be 'demo' or 'provider:model', not {name[:80]!r}"
        raise InvalidInput(field, rule)
    if prefix not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        raise InvalidInput(field, f"must name a provider of {known}, not {prefix[:80]!r}")


def refuse_unusable(name: str, environ: Mapping[str, str], field: str = "model") -> None:
    """Raise for a name that no provider could answer under, as far as that is cheap to tell."""
    refuse_unknown(name, field)
    prefix = name.partition(":")[0]
    provider = PROVIDERS[prefix]
    if not (_is_installed(LIBRARY) and _is_installed(provider.package)):
        raise InvalidInput(field, f"{prefix!r} needs a package: pip install '{provider.install}'")
    if provider.keys and not any(environ.get(key) for key in provider.keys):
        keys = " or ".join(provider.keys)
        raise InvalidInput(field, f"{prefix!r} needs {keys} in the environment")
    for key in provider.keys:
        if not _is_sendable(environ.get(key, "")):
            rule = (
                f"{prefix!r} cannot use {key}: it has blanks around it, or letters that no key has"
            )
            raise InvalidInput(field, rule)


def _is_sendable(value: str) -> bool:
    """Tell whether a value can stand in a request; a file from Windows leaves line ends in it."""
    return value.isascii() and value.isprintable() and value == value.strip()


def _is_installed(package: str) -> bool:
    """Look for a package without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # what it lies in is missing
        return False
