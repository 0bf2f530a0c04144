"""The providers that a model's name may begin with, and what each of them needs to work.

Most speak one of three wire formats and are spoken to directly. The library behind the others
takes seconds to import; this table answers at the start, in no time.
"""

from collections.abc import Mapping
from enum import StrEnum

from wakeful.vocabulary.record import Record

OWN_EXTRA = "wakeful[providers]"
IN_OWN_EXTRA = ("anthropic", "google.genai", "openai")  # packages that it brings


class WireFormat(StrEnum):
    """A wire format."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"


class Via(StrEnum):
    """Who speaks to a provider."""

    DIRECT = "direct"
    LIBRARY = "library"


class ProviderSettings(Record):
    """A provider as the operator describes it, under its name."""

    kind: WireFormat | None = None
    base_url: str | None = None
    key: str | None = None
    key_file: str | None = None
    via: Via | None = None
    headers: Mapping[str, str] = {}  # that go along with every question


Providers = Mapping[str, ProviderSettings]
NONE_OWN: Providers = {}


class Provider(Record):
    """Somebody whose models can be asked."""

    kind: WireFormat | None = None  # None: it is spoken to by the library
    base_url: str = ""
    keys: tuple[str, ...] = ()  # variables of the environment; the first that is set counts
    address: str = ""  # the variable that leads elsewhere
    tells: tuple[tuple[str, str], ...] = ()  # variables that go along, each in a header
    host: str = ""  # another one, with nothing but a host and a port in it
    is_open: bool = False  # it is usually asked without a key
    needs: tuple[str, ...] = ()  # variables of which one must be set; by default the keys
    system: str = ""  # under which thoughts are kept and prices are listed, if not its own name
    package: str = ""  # what the library needs for it; empty: the library does not know it
    extra: str = ""  # of the library, for a package that is none of our own extras

    @property
    def install(self) -> str:
        """What to install for the library to speak to it."""
        return OWN_EXTRA if self.package in IN_OWN_EXTRA else f"pydantic-ai-slim[{self.extra}]"

    @property
    def is_own_server(self) -> bool:
        """Whether it is wherever somebody runs it."""
        return bool(self.address) and (not self.base_url or bool(self.host))

    @property
    def wanted(self) -> tuple[str, ...]:
        return () if self.is_open else self.needs or self.keys


def _chat(base_url: str, *keys: str, address: str = "", package: str = "openai") -> Provider:
    """A provider that speaks like OpenAI's Chat Completions."""
    return Provider(
        kind=WireFormat.OPENAI_CHAT, base_url=base_url, keys=keys, address=address, package=package
    )


def _local(address: str, key: str, package: str = "openai") -> Provider:
    """A server of one's own that speaks like OpenAI's Chat Completions."""
    return Provider(
        kind=WireFormat.OPENAI_CHAT,
        keys=(key,),
        address=address,
        needs=(address,),
        package=package,
    )


def _openai(kind: WireFormat) -> Provider:
    return Provider(
        kind=kind,
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        address="OPENAI_BASE_URL",
        tells=(
            ("OPENAI_ORG_ID", "OpenAI-Organization"),
            ("OPENAI_PROJECT_ID", "OpenAI-Project"),
        ),
        needs=("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        system="openai",
        package="openai",
    )


def _by_library(package: str, *keys: str, extra: str = "") -> Provider:
    return Provider(package=package, keys=keys, extra=extra)


PROVIDERS: Mapping[str, Provider] = {
    "alibaba": _chat(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        *("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
    ),
    "anthropic": Provider(
        kind=WireFormat.ANTHROPIC,
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        address="ANTHROPIC_BASE_URL",
        package="anthropic",
    ),
    "azure": _by_library("openai", "AZURE_OPENAI_API_KEY"),
    "azure-responses": _by_library("openai", "AZURE_OPENAI_API_KEY"),
    "bedrock": _by_library("botocore", extra="bedrock"),
    "bedrock-mantle": _by_library("openai"),
    "cerebras": _chat("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": _by_library("cohere", "CO_API_KEY", extra="cohere"),
    "crusoe": _chat("https://api.inference.crusoecloud.com/v1", "CRUSOE_API_KEY"),
    "deepseek": _chat("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "fireworks": _chat(
        "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"
    ),
    "github-copilot": _by_library(
        "openai", "GITHUB_COPILOT_API_KEY", "GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN"
    ),
    "google": _by_library("google.genai", "GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "google-cloud": _by_library("google.genai"),
    "groq": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="https://api.groq.com/openai/v1",
        keys=("GROQ_API_KEY",),
        package="groq",
        extra="groq",
    ),
    "heroku": _chat("https://us.inference.heroku.com/v1", "HEROKU_INFERENCE_KEY"),
    "huggingface": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="https://router.huggingface.co/v1",
        keys=("HF_TOKEN", "HUGGINGFACE_API_KEY", "HUGGING_FACE_HUB_TOKEN"),
        package="huggingface_hub",
        extra="huggingface",
    ),
    "litellm": _local("LITELLM_BASE_URL", "LITELLM_API_KEY"),
    "lmstudio": _local("LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY", package=""),
    "meta": Provider(
        kind=WireFormat.OPENAI_RESPONSES,
        base_url="https://api.meta.ai/v1",
        keys=("META_API_KEY",),
        package="openai",
    ),
    "mistral": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="https://api.mistral.ai/v1",
        keys=("MISTRAL_API_KEY",),
        package="mistralai",
        extra="mistral",
    ),
    "moonshotai": _chat(
        "https://api.moonshot.ai/v1",
        *("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
        address="MOONSHOTAI_BASE_URL",
    ),
    "nebius": _chat("https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    "ollama": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="http://127.0.0.1:11434/v1",
        keys=("OLLAMA_API_KEY",),
        address="OLLAMA_BASE_URL",
        host="OLLAMA_HOST",
        is_open=True,
        package="openai",
    ),
    "openai": _openai(WireFormat.OPENAI_RESPONSES),
    "openai-chat": _openai(WireFormat.OPENAI_CHAT),
    "openai-codex": _by_library("openai"),
    "openai-responses": _openai(WireFormat.OPENAI_RESPONSES),
    "openrouter": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="https://openrouter.ai/api/v1",
        keys=("OPENROUTER_API_KEY",),
        tells=(("OPENROUTER_APP_URL", "HTTP-Referer"), ("OPENROUTER_APP_TITLE", "X-Title")),
        package="openai",
    ),
    "ovhcloud": _chat("https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
    "sambanova": _chat(
        "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY", address="SAMBANOVA_BASE_URL"
    ),
    "snowflake": _by_library("openai", "SNOWFLAKE_TOKEN"),
    "together": _chat(
        "https://api.together.xyz/v1",
        *("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),
    ),
    "vercel": _chat(
        "https://ai-gateway.vercel.sh/v1", "VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"
    ),
    "vllm": _local("VLLM_BASE_URL", "VLLM_API_KEY"),
    "xai": Provider(
        kind=WireFormat.OPENAI_CHAT,
        base_url="https://api.x.ai/v1",
        keys=("XAI_API_KEY",),
        package="xai_sdk",
        extra="xai",
    ),
    "zai": _chat("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
}
