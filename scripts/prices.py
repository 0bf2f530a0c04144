"""Write the table of prices from the prices library: `python scripts/prices.py`.

The runtime reads the table, which takes milliseconds; the library takes a fifth of a second and
14 MB, and brings its own dependencies along. Where a price depends on the hour, it is the one of
noon, UTC; where it depends on the day, the one of `DAY`.
"""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from genai_prices import data_snapshot

TARGET = Path(__file__).parent.parent / "src/wakeful/models/prices.json"
DAY = datetime(2026, 11, 16, 12, tzinfo=UTC)  # whose prices these are
PRICES = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")

# The library's name for each provider that we speak to ourselves.
NAMES = {
    "anthropic": "anthropic",
    "cerebras": "cerebras",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "groq": "groq",
    "meta": "meta",
    "mistral": "mistral",
    "moonshotai": "moonshotai",
    "openai": "openai",
    "openrouter": "openrouter",
    "ovhcloud": "ovhcloud",
    "together": "together",
    "xai": "x-ai",
    "zai": "zai",
}


def table(now: datetime) -> dict[str, list[list[Any]]]:
    """Return for each provider its models in order: names, a pattern, the prices."""
    known: Any = {provider.id: provider for provider in data_snapshot.get_snapshot().providers}
    return {
        ours: [_row(model, now) for model in known[theirs].models] for ours, theirs in NAMES.items()
    }


def text(now: datetime) -> str:
    providers = (
        json.dumps(name) + ": [\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        for name, rows in table(now).items()
    )
    return "{\n" + ",\n".join(providers) + "\n}\n"


def _row(model: Any, now: datetime) -> list[Any]:
    clauses = getattr(model.match, "or_", None) or [model.match]
    names = [clause.equals.lower() for clause in clauses if hasattr(clause, "equals")]
    others = [_pattern(clause) for clause in clauses if not hasattr(clause, "equals")]
    prices = model.get_prices(now)
    told = [_price(getattr(prices, name, None)) for name in PRICES]
    return [names, "|".join(others) or None, told]


def _pattern(clause: Any) -> str:
    """Return a clause as a pattern; names are compared in small letters."""
    kind: str = clause.__match_args__[0]
    words: Any = getattr(clause, kind)
    match kind:
        case "starts_with":
            return f"^{re.escape(words.lower())}"
        case "ends_with":
            return f"{re.escape(words.lower())}$"
        case "contains":
            return re.escape(words.lower())
        case "equals":
            return f"^{re.escape(words.lower())}$"
        case "regex":
            return f"(?:{words})"
        case "or_":
            return "(?:" + "|".join(map(_pattern, words)) + ")"
        case "and_":
            return "".join(f"(?=.*(?:{_pattern(one)}))" for one in words)
        case _:
            raise TypeError(kind)


def _price(price: Any) -> Any:
    if price is None:
        return None
    if hasattr(price, "tiers"):
        return [float(price.base), [[tier.start, float(tier.price)] for tier in price.tiers]]
    return float(price)


if __name__ == "__main__":
    TARGET.write_text(text(DAY), encoding="utf-8")
    sys.stdout.write(f"{TARGET}: {sum(map(len, table(DAY).values()))} models\n")
