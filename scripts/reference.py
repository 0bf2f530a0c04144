"""Write the generated pages of docs/reference."""

from pathlib import Path

from wakeful.cli.reference import reference as command_line
from wakeful.commands.reference import reference as commands
from wakeful.settings.schema import reference as settings
from wakeful.tools.reference import reference as tools

ROOT = Path(__file__).resolve().parent.parent


def pages() -> dict[Path, str]:
    folder = ROOT / "docs" / "reference"
    return {
        folder / "settings.md": settings(),
        folder / "cli.md": command_line(),
        folder / "commands.md": commands(),
        folder / "tools.md": tools(),
    }


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
