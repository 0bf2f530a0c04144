"""Markdown for a terminal; what a model writes never reaches it unread."""

import io

from wakeful.cli.output import safe_lines


def rendered(text: str, width: int, *, has_colours: bool) -> str:
    """Return Markdown as lines for a terminal."""
    # Loaded on first use: it takes a tenth of a second.
    from rich.console import Console
    from rich.markdown import Markdown

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, 20),
        force_terminal=has_colours,
        color_system="standard" if has_colours else None,
        legacy_windows=False,
        highlight=False,
    )
    # Addresses are shown, since a link that hides its own could lead anywhere.
    console.print(Markdown(safe_lines(text), hyperlinks=False))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
