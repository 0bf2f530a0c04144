"""The table of prices says what the library says that it was written from."""

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price

from scripts.prices import DAY, NAMES, TARGET, table, text
from wakeful.models.prices import price_of
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
