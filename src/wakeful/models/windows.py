"""How many tokens a model reads at once: what is stated, what its refusals taught, or a guess."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec
from msgspec.structs import replace

from wakeful.models.model import USUAL_CONTEXT_WINDOW, Request
from wakeful.vocabulary.agent import CACHE_EDGES_MS
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.message import encode_message
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN, tokens_of

LEARNED_FOR_S = 3_600.0  # then the model may show whether it takes more after all
SAID_FOR_S = 86_400.0  # the same, if it named the number itself
LEAST_LEARNED = 1_000  # tokens; below that nothing could be asked at all

# The same models under another name of the provider.
_SAME = {
    "azure": "openai",
    "azure-responses": "openai",
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
_REGION = re.compile(r"^(?:us|eu|apac|global|au|jp|us-gov)\.")
_ENDS = "-:@"  # what may follow a known name: a date, a version, a variant


class ModelSettings(Record):
    """What an operator knows about a model, under its name."""

    context_window: int | None = None  # tokens
    vision: bool | None = None  # whether it sees images
    documents: bool | None = None  # whether it reads PDFs
    input: float | None = None  # dollars for a million tokens, as the other prices
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    max_output: int | None = None  # tokens that it writes at once
    # Milliseconds: shorter pauses find the provider's cache full, longer ones are worth its loss.
    cache_edges_ms: tuple[int, ...] | None = None

    @property
    def edges_ms(self) -> tuple[int, int]:
        if self.cache_edges_ms is None:
            return CACHE_EDGES_MS
        short, long = self.cache_edges_ms
        return short, long


NO_MODELS: Mapping[str, ModelSettings] = {}
NOTHING_STATED = ModelSettings()


def stated_window(name: str, models: Mapping[str, ModelSettings] = NO_MODELS) -> int | None:
    """Return the window of the model `provider:model`: the operator's word, else the table's."""
    given = models.get(name)
    if given is not None and given.context_window is not None:
        return given.context_window
    return _of_table(name)


class Window:
    """The window of one model, which its refusals may narrow for a while.

    Lost with the process: the first refusal after a start teaches it again.
    """

    def __init__(self, stated: int | None, clock: Clock) -> None:
        self._stated = stated
        self._clock = clock
        self._learned: tuple[int, float] | None = None  # tokens, and until when that counts

    def tokens(self, own: int | None) -> int | None:
        """Return the window, or None if nobody knows; `own` is what the model says by itself."""
        known = self._stated or own
        learned = self._in_force()
        if learned is None:
            return known
        return min(learned, known or USUAL_CONTEXT_WINDOW)

    def refused(self, tokens: int, said: int | None) -> None:
        """Note that a request of so many tokens was too long; `said` is the window it named.

        Both are kept: where a model counts more tokens than our estimate does, its window is
        smaller by our count than by its own.
        """
        for_s = LEARNED_FOR_S if said is None else SAID_FOR_S
        found = max(LEAST_LEARNED, tokens if said is None else min(tokens, said))
        before = self._in_force()
        if before is None or found < before:
            self._learned = (found, self._clock.monotonic() + for_s)

    def _in_force(self) -> int | None:
        if self._learned is None:
            return None
        tokens, until = self._learned
        return tokens if self._clock.monotonic() < until else None


def same_provider(provider: str) -> str:
    """Return the name under which a provider's models are listed."""
    return _SAME.get(provider, provider)


def capped(request: Request, most: int | None) -> Request:
    """Return a request for an answer of so many tokens at most."""
    if most is None or (request.max_tokens is not None and request.max_tokens <= most):
        return request
    return replace(request, max_tokens=most)


def tokens_of_request(request: Request) -> int:
    """Return an estimate of the tokens that a request asks a model to read and to write."""
    return tokens_read(request) + (request.max_tokens or 0)


def tokens_read(request: Request) -> int:
    """Return an estimate of the tokens that a model reads with a request."""
    size = len(request.system)
    for tool in request.tools:
        size += len(tool.name) + len(tool.description) + len(encode_message(tool.parameters))
    return -(-size // CHARACTERS_PER_TOKEN) + sum(map(tokens_of, request.messages))


def _of_table(name: str) -> int | None:
    """Find a model in the table, under its name or the longest one that it begins with."""
    provider, _, model = name.partition(":")
    rows = _table().get(same_provider(provider))
    if rows is None:
        return None
    model = model.lower()
    for wanted in (model, _REGION.sub("", model), f"global.{_REGION.sub('', model)}"):
        found = rows.get(wanted) or _of_family(wanted, rows)
        if found is not None:
            return found
    return None


def _of_family(model: str, rows: Mapping[str, int]) -> int | None:
    known = (at for at in range(len(model) - 1, 0, -1) if model[at] in _ENDS and model[:at] in rows)
    at = next(known, None)
    return None if at is None else rows[model[:at]]


@cache
def _table() -> dict[str, dict[str, int]]:
    raw = files("wakeful.models").joinpath("windows.json").read_bytes()
    return msgspec.json.decode(raw, type=dict[str, dict[str, int]])
