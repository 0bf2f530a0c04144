"""The table of prices says what the library says that it was written from."""

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price
from msgspec.structs import replace

from scripts.prices import DAY, NAMES, TARGET, table, text
from wakeful.models.model import Request
from wakeful.models.prices import Price, Rate, price_of
from wakeful.models.windows import ModelSettings, capped
from wakeful.vocabulary.message import Usage

USAGES = (
    Usage(input=1000, output=50),
    Usage(input=1000, output=50, cache_read=900, cache_write=30),
    Usage(input=300_000, output=5000, cache_read=100_000),
)


def test_the_table_is_the_one_that_the_library_gives():
    assert TARGET.read_text(encoding="utf-8") == text(DAY), "run `python scripts/prices.py`"


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-opus-5"),
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("openai", "gpt-5.6"),
        ("openai", "gpt-4.1-mini"),
        ("deepseek", "deepseek-chat"),
        ("mistral", "mistral-large-latest"),
        ("openrouter", "anthropic/claude-opus-5"),
        ("xai", "grok-4"),
        ("groq", "openai/gpt-oss-120b"),
    ],
)
def test_a_model_costs_what_the_library_says(provider: str, model: str):
    price = price_of(provider, model)

    assert price is not None
    for usage in USAGES:
        theirs = calc_price(
            TheirUsage(
                input_tokens=usage.input,
                output_tokens=usage.output,
                cache_read_tokens=usage.cache_read,
                cache_write_tokens=usage.cache_write,
            ),
            model_ref=model,
            provider_id=NAMES[provider],
            genai_request_timestamp=DAY,
        )
        assert price.cost(usage) == pytest.approx(float(theirs.total_price))


def test_a_model_that_nobody_knows_has_no_price():
    assert price_of("openai", "not-a-model-of-anybody") is None
    assert price_of("mine", "gpt-5.6") is None


def test_every_row_can_be_read():
    assert all(price_of(provider, "") is None for provider in table(DAY))


def test_the_operators_price_comes_before_the_tables():
    usage = Usage(input=1_000_000, output=500_000, cache_read=200_000, cache_write=100_000)
    stated = ModelSettings(input=1.0, output=4.0, cache_read=0.1, cache_write=1.25)

    for model in ("my-model", "gpt-4.1-mini"):
        price = price_of("openai", model, stated)
        assert price is not None
        assert price.cost(usage) == pytest.approx(0.7 + 2.0 + 0.02 + 0.125)


def test_a_price_that_the_operator_leaves_out_is_the_tables():
    listed = price_of("openai", "gpt-4.1-mini")
    price = price_of("openai", "gpt-4.1-mini", ModelSettings(output=0.0))

    assert listed is not None
    assert price == replace(listed, output=Rate())


def test_half_a_price_of_a_model_that_nobody_knows_is_none():
    assert price_of("openai", "my-model", ModelSettings(input=1.0)) is None
    assert price_of("openai", "my-model", ModelSettings(input=0.0, output=0.0)) == Price()


@pytest.mark.parametrize(
    ("asked", "most", "sent"),
    [(None, None, None), (None, 8192, 8192), (9000, 8192, 8192), (500, 8192, 500)],
)
def test_no_more_is_asked_for_than_a_model_writes(
    asked: int | None, most: int | None, sent: int | None
):
    request = Request(system="", messages=(), max_tokens=asked)

    assert capped(request, most).max_tokens == sent
