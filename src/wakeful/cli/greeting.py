"""The greeting: what a start tells whoever started it."""

from collections.abc import Mapping

from wakeful import __version__
from wakeful.cli.context import CliContext
from wakeful.cli.local_models import found_models
from wakeful.cli.output import BOLD
from wakeful.cli.tokens import login_link
from wakeful.runtime import Runtime
from wakeful.settings.load import Loaded
from wakeful.settings.places import DATABASE_NAME
from wakeful.store.opening import is_postgres
from wakeful.vocabulary.record import Record


class Awake(Record):
    """What a start tells."""

    url: str
    link: str  # signs a browser in, once
    database: str
    models: dict[str, str]
    next_wake_at: int | None
    found: tuple[str, ...]  # what could be used instead of the demo model, and how


async def look_around(runtime: Runtime, loaded: Loaded, environ: Mapping[str, str]) -> Awake:
    """Return what there is to tell; the link is made for this one telling."""
    assert runtime.operator is not None
    code = await runtime.credentials.login_code(runtime.operator.token.id)
    wakes = [one.next_wake_at for one in await runtime.agents() if one.next_wake_at is not None]
    is_file = not is_postgres(loaded.settings.database)
    assert runtime.url is not None
    return Awake(
        url=runtime.url,
        link=login_link(runtime.url, code),
        database=str(loaded.home / DATABASE_NAME) if is_file else "PostgreSQL",
        models={agent.id: str(agent.model) for agent in loaded.agents},
        next_wake_at=min(wakes, default=None),
        found=found_models(loaded, environ),
    )


def greet(context: CliContext, awake: Awake) -> None:
    """Tell it, to a person or to a program."""
    models = ", ".join(f"{model} ({agent})" for agent, model in awake.models.items())
    wake = "nothing is due"
    if awake.next_wake_at is not None:
        wake = f"{context.how_long(awake.next_wake_at)}, {context.when(awake.next_wake_at)}"
        wake = wake if awake.next_wake_at > context.clock.now() else "now"
    lines = [
        context.out.styled(f"wakeful {__version__} is awake", BOLD),
        f"  link       {_link(context, awake)}",
        f"  database   {awake.database}",
        f"  model      {models}",
        f"  next wake  {wake}",
        *(found_line(model) for model in awake.found),
        "  talk to it there or with `wakeful chat`; Ctrl-C stops it",
    ]
    context.out.item(awake, "\n".join(lines))


def _link(context: CliContext, awake: Awake) -> str:
    # What is no terminal may be a journal, where others read the link before it is used.
    return awake.link if context.out.is_terminal else f"{awake.url} (`wakeful login` signs in)"


def found_line(model: str) -> str:
    return f"  found      {model}"
