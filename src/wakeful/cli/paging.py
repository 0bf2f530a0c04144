"""The options of whatever lists something in pages."""

from typing import Annotated

import typer

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", help="Older ones: `next` of a page.")]
