"""Write the generated pages of docs/reference."""

from pathlib import Path

from wakeful.settings.schema import reference

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[Path, str]:
    return {ROOT / "docs" / "reference" / "settings.md": reference()}


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
