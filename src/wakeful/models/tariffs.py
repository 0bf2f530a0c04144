"""What a question to a model may cost: its price, and how much it says at most."""

from collections.abc import Sequence

from wakeful.models.families import claude
from wakeful.models.model import Model
from wakeful.models.prices import Price, price_of
from wakeful.models.windows import NOTHING_STATED, ModelSettings, same_provider
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN

USUAL_OUTPUT = 8_192  # tokens, of models of which nobody knows more
ON_ITS_WAY = 1_024  # tokens that an answer had that broke off, beyond what was seen of it

# How many tokens models write at most, by how their names begin; a longer beginning comes first.
_MOST: Sequence[tuple[str, int]] = (
    ("gpt-3.5", 4_096),
    ("gpt-4.1", 32_768),
    ("gpt-4o", 16_384),
    ("gpt-4", 4_096),
    ("gpt-5", 128_000),
    ("o1-preview", 32_768),
    ("o1", 65_536),
    ("o3", 100_000),
    ("o4", 100_000),
    ("gemini-1", 8_192),
    ("gemini-2.0", 8_192),
    ("gemini-", 65_536),
)


class Tariff(Record):
    """What is known of one model before it is asked."""

    price: Price | None = None  # None: nobody knows it
    max_output: int | None = None  # tokens of one answer


FREE = Tariff(price=Price())
UNPRICED = Tariff()


def tariffs_of(model: Model) -> Sequence[Tariff]:
    """Return what each of those costs that may answer for a model, itself first."""
    known: Sequence[Tariff] | None = getattr(model, "tariffs", None)
    return (UNPRICED,) if known is None else known


def tariff_of(provider: str, model: str, stated: ModelSettings = NOTHING_STATED) -> Tariff:
    """Return the tariff of a model of a provider."""
    price = price_of(same_provider(provider), model, stated)
    most = stated.max_output or (None if price is None else most_output(model))
    return Tariff(price=price, max_output=most)


def most_output(model: str) -> int:
    """Return how many tokens a model writes at most, as far as anybody knows."""
    short = model.rpartition("/")[2].lower()
    if short.startswith("claude"):
        return claude(short).most_output
    return next((most for begins, most in _MOST if short.startswith(begins)), USUAL_OUTPUT)


def lost_cost(tariff: Tariff, read: int, seen: int) -> float:
    """Return what an answer costs, in dollars, that broke off after so many characters."""
    if tariff.price is None:
        return 0.0
    written = seen // CHARACTERS_PER_TOKEN + ON_ITS_WAY
    return tariff.price.cost(Usage(input=read, output=min(written, tariff.max_output or written)))
