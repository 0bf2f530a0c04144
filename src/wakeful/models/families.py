"""What is known about families of models: how they think, and how much they say at once.

The first row whose beginning fits a model's name counts: a newer family stands before an older one
whose name it continues.
"""

from collections.abc import Callable, Mapping, Sequence

from wakeful.models.thinking import LEVELS
from wakeful.vocabulary.agent import ThinkingLevel
from wakeful.vocabulary.record import Record

OFF, LOW, MEDIUM, HIGH, XHIGH = LEVELS
NO_LEVELS: frozenset[ThinkingLevel] = frozenset()
UNKNOWN_OUTPUT = 16_384  # tokens, where nobody knows how many a model may write


class Claude(Record):
    """A family of Anthropic's models."""

    most_output: int = UNKNOWN_OUTPUT
    is_adaptive: bool = False  # thinks as much as it finds right; others are given a number
    has_effort: bool = False
    has_xhigh: bool = False
    thinks_unasked: bool = False
    always_thinks: bool = False
    rests_between_tools: bool = False  # what "off" means to it
    binds_thoughts: bool = False  # refuses thoughts after what came before them has changed

    @property
    def levels(self) -> frozenset[ThinkingLevel]:
        missing = {OFF: self.always_thinks, XHIGH: not self.has_xhigh}
        return frozenset(level for level in LEVELS if not missing.get(level))


class Gpt(Record):
    """A family of OpenAI's models."""

    levels: frozenset[ThinkingLevel] = NO_LEVELS
    has_context: bool = False  # takes the thoughts of all turns
    has_breakpoints: bool = False  # takes marks of what to cache

    @property
    def reasons(self) -> bool:
        return bool(self.levels)


def _modern(**more: bool) -> Claude:
    return Claude(
        most_output=128_000,
        is_adaptive=True,
        has_effort=True,
        has_xhigh=True,
        thinks_unasked=True,
        **more,
    )


_LEGACY = Claude(most_output=4096)  # refuse more, late in a long conversation
_CLAUDES: Sequence[tuple[tuple[str, ...], Claude]] = (
    (("claude-fable-5-1",), _modern(always_thinks=True, binds_thoughts=True)),
    (("claude-fable-5", "claude-mythos-5"), _modern(always_thinks=True)),
    (
        ("claude-mythos-preview",),
        Claude(is_adaptive=True, thinks_unasked=True, always_thinks=True),
    ),
    (("claude-opus-5-5",), _modern(always_thinks=True, binds_thoughts=True)),
    (("claude-sonnet-5-5",), _modern(rests_between_tools=True, binds_thoughts=True)),
    (("claude-haiku-5-5",), _modern(binds_thoughts=True)),
    (("claude-opus-5", "claude-sonnet-5"), _modern()),
    (
        ("claude-opus-4-7", "claude-opus-4-8"),
        Claude(most_output=128_000, is_adaptive=True, has_effort=True, has_xhigh=True),
    ),
    (
        ("claude-opus-4-6", "claude-sonnet-4-6"),
        Claude(most_output=128_000, is_adaptive=True, has_effort=True),
    ),
    (("claude-opus-4-5",), Claude(most_output=64_000, has_effort=True)),
    (("claude-sonnet-4-5", "claude-haiku-4-5"), Claude(most_output=64_000)),
    (
        (
            *("claude-3", "claude-4-", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2"),
            *("claude-opus-4@", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4@"),
        ),
        _LEGACY,
    ),
)
_ALL = frozenset(LEVELS)
_ALWAYS = _ALL - {OFF}
_PRO = frozenset({MEDIUM, HIGH, XHIGH})
_USUAL = frozenset({LOW, MEDIUM, HIGH})
_SWITCHED = _USUAL | {OFF}
_GLMS = ("glm-4.5", "glm-4.6", "glm-4.7", "glm-5", "zai-glm")
_GROKS_THAT_MAY_REST = frozenset(  # and old names that lead to the same model
    {
        *("grok-4.3", "grok-4.3-latest", "grok-latest", "grok-4-0709", "grok-3"),
        *("grok-4-1-fast-reasoning", "grok-4-1-fast-non-reasoning"),
        *("grok-4-fast-reasoning", "grok-4-fast-non-reasoning"),
    }
)
_GPTS: Sequence[tuple[tuple[str, ...], Gpt]] = (
    (
        ("gpt-6-astra", "gpt-6.1-sol"),
        Gpt(levels=_ALWAYS, has_context=True, has_breakpoints=True),
    ),
    (
        ("gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-5.6"),
        Gpt(levels=_ALL, has_context=True, has_breakpoints=True),
    ),
    (("gpt-5.5-pro", "gpt-5.4-pro"), Gpt(levels=_PRO, has_context=True)),
    (("gpt-5.5", "gpt-5.4"), Gpt(levels=_ALL, has_context=True)),
    (("gpt-5.3-chat", "gpt-5.2-chat", "gpt-5.1-chat"), Gpt(levels=frozenset({MEDIUM}))),
    (("gpt-5.2-pro",), Gpt(levels=_PRO)),
    (("gpt-5.1-codex",), Gpt(levels=_ALWAYS)),
    (("gpt-5.3", "gpt-5.2", "gpt-5.1"), Gpt(levels=_ALL)),
    (("gpt-5-chat",), Gpt()),
    (("gpt-5-pro",), Gpt(levels=frozenset({HIGH}))),
    (("gpt-5-codex",), Gpt(levels=_ALWAYS)),
    (("gpt-5", "o1", "o3", "o4"), Gpt(levels=_USUAL)),
)


def claude(model: str) -> Claude:
    """Return what is known about a model of Anthropic."""
    if model in ("claude-opus-4", "claude-sonnet-4"):
        return _LEGACY
    return next((row for begins, row in _CLAUDES if model.startswith(begins)), Claude())


def gpt(model: str) -> Gpt:
    """Return what is known about a model of OpenAI."""
    return next((row for begins, row in _GPTS if model.startswith(begins)), Gpt())


def chat_levels(provider: str, model: str) -> frozenset[ThinkingLevel]:
    """Return the levels of thinking of a model that speaks like OpenAI's, whoever runs it."""
    name = model.rpartition("/")[2].lower()
    if provider in _PARTICULAR:
        return _PARTICULAR[provider](model)
    if model.startswith(("gpt-", "o1", "o3", "o4")) and "oss" not in name:
        return gpt(model).levels
    if provider in ("vercel", "heroku", "litellm"):
        return _passed_on(provider, model) or _open_levels(provider, name)
    return _open_levels(provider, name)


def _open_levels(provider: str, name: str) -> frozenset[ThinkingLevel]:
    """Return the levels of a model that anybody may run."""
    if name.startswith(("deepseek-r1", "deepseek-reasoner", "gpt-oss")):
        return _USUAL
    if name.startswith(("deepseek-v4", "deepseek-flash")):
        return _SWITCHED
    if provider == "moonshotai" and name.startswith(("kimi-k2-thinking", "kimi-k3")):
        return _USUAL
    if provider == "moonshotai" and name.startswith("kimi-k2."):
        return _SWITCHED
    if provider in ("zai", "vllm", "lmstudio", "cerebras") and name.startswith(_GLMS):
        return _SWITCHED
    if provider in ("vllm", "lmstudio") and name.startswith("qwen3"):
        return _SWITCHED
    return NO_LEVELS


def _passed_on(provider: str, model: str) -> frozenset[ThinkingLevel]:
    """Return the levels of a model that a gateway only passes questions on to."""
    vendor, _, name = model.rpartition("/")
    if name.startswith("claude"):
        return claude(name).levels
    if vendor == "openai":
        return gpt(name).levels
    return _grok_levels(name) if vendor == "xai" and provider == "vercel" else NO_LEVELS


def _routed_levels(model: str) -> frozenset[ThinkingLevel]:
    vendor, _, name = model.partition("/")
    if vendor == "openai":
        return gpt(name).levels or _SWITCHED
    if vendor == "anthropic":
        return claude(name.replace(".", "-")).levels
    if name.startswith(("gemini-2.5-pro", "gemini-3-pro", "deepseek-r1")):
        return _USUAL
    return _SWITCHED


def _groq_levels(model: str) -> frozenset[ThinkingLevel]:
    """Groq grades one family and switches another; all else it refuses to be told anything."""
    if model.startswith("openai/gpt-oss"):
        return _USUAL
    return _SWITCHED if model.startswith("qwen/qwen3") else NO_LEVELS


def _grok_levels(model: str) -> frozenset[ThinkingLevel]:
    if model in _GROKS_THAT_MAY_REST:
        return _SWITCHED
    if model.startswith(("grok-4.5", "grok-4.6", "grok-4.7", "grok-build-latest")):
        return _USUAL
    if model in ("grok-3-mini", "grok-3-mini-fast"):
        return frozenset({OFF, LOW, HIGH})
    return frozenset({LOW, HIGH}) if model.startswith("grok-3-mini") else NO_LEVELS


_PARTICULAR: Mapping[str, Callable[[str], frozenset[ThinkingLevel]]] = {
    "groq": _groq_levels,
    "mistral": lambda _: NO_LEVELS,  # which of its models may be told is nowhere written down
    "openrouter": _routed_levels,
    "xai": _grok_levels,
}
