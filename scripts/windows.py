"""Write the table of context windows from the prices library: `python scripts/windows.py`.

The runtime reads the table, which takes a millisecond; the library takes a third of a second and
brings its own dependencies along.
"""

import json
import sys
from pathlib import Path

from genai_prices import data_snapshot

TARGET = Path(__file__).parent.parent / "src/wakeful/models/windows.json"

# The library's name for each provider whose models it knows under the names that we are given.
NAMES = {
    "anthropic": ("anthropic",),
    "bedrock": ("aws",),
    "cerebras": ("cerebras",),
    "cohere": ("cohere",),
    "deepseek": ("deepseek",),
    "fireworks": ("fireworks",),
    "github-copilot": ("github-copilot",),
    "google": ("google",),
    "groq": ("groq",),
    "meta": ("meta",),
    "mistral": ("mistral",),
    "moonshotai": ("moonshotai",),
    "openai": ("openai",),
    "openrouter": ("openrouter",),
    "ovhcloud": ("ovhcloud",),
    "together": ("together", "huggingface_together"),
    "xai": ("x-ai",),
    "zai": ("zai",),
}


def table() -> dict[str, dict[str, int]]:
    """Return the windows of all models whose window is known, by provider and name."""
    known = {provider.id: provider.models for provider in data_snapshot.get_snapshot().providers}
    found: dict[str, dict[str, int]] = {}
    for ours, theirs in NAMES.items():
        rows: dict[str, int] = {}
        for provider in reversed(theirs):
            rows |= {
                model.id.lower(): model.context_window
                for model in known[provider]
                if model.context_window
            }
        found[ours] = dict(sorted(rows.items()))
    return found


def text() -> str:
    return json.dumps(table(), indent=0, ensure_ascii=False).replace("\n}", "}") + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"{TARGET}: {sum(map(len, table().values()))} models\n")
