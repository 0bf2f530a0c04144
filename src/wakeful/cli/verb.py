"""Verbs: plain functions of a context, made into commands with the options all of them share."""

import inspect
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from wakeful.cli.context import CliContext
from wakeful.cli.exits import ExitCode, code_of
from wakeful.cli.output import CommandOutput, quiet_stdout
from wakeful.settings.environment import with_file
from wakeful.settings.places import home_of
from wakeful.settings.problems import BadSettings
from wakeful.telemetry.redaction import Redaction, secrets_in
from wakeful.vocabulary.errors import WakefulError

Home = Annotated[
    Path | None,
    typer.Option("--home", help="The home folder.", metavar="FOLDER", show_default=False),
]
Config = Annotated[Path | None, typer.Option("--config", help="The settings file.", metavar="FILE")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

SHARED: dict[str, Any] = {"home": Home, "config": Config, "debug": Debug, "json": Json}


def verb(
    app: typer.Typer, name: str, *, prints_data: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function `act(context, …)` a command of `app`; its docstring is the help."""

    def register(act: Callable[..., None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            context = _context(values)
            _run(context, lambda: act(context, **values))

        own = list(inspect.signature(act).parameters.values())[1:]
        hints = get_type_hints(act, include_extras=True)
        shared = {
            option: kind for option, kind in SHARED.items() if prints_data or option != "json"
        }
        command.__annotations__ = {
            **{parameter.name: hints[parameter.name] for parameter in own},
            **shared,
        }
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [parameter.replace(kind=keyword) for parameter in own] + [
            inspect.Parameter(
                option,
                keyword,
                default=False if option in ("debug", "json") else None,
                annotation=kind,
            )
            for option, kind in shared.items()
        ]
        command.__signature__ = inspect.Signature(parameters)
        command.__doc__ = act.__doc__
        # Told whole in the list of verbs, where a help text alone would be cut.
        app.command(name, short_help=inspect.getdoc(act))(command)
        return act

    return register


def _context(values: dict[str, Any]) -> CliContext:
    environ = dict(os.environ)
    home, config = values.pop("home"), values.pop("config")
    if home is not None:
        environ["WAKEFUL_HOME"] = str(home)
    if config is not None:
        environ["WAKEFUL_CONFIG"] = str(config)
    refused: BadSettings | None = None
    try:
        environ = with_file(home_of(environ), environ)
    except BadSettings as bad:  # told by whoever needs what stands in it
        refused = bad
    output = CommandOutput(is_json=values.pop("json", False), environ=environ)
    return CliContext(environ, output, is_debug=values.pop("debug"), refused=refused)


def _run(context: CliContext, act: Callable[[], None]) -> None:
    """Act, and turn what goes wrong into one sentence and an exit code."""
    try:
        act()
    except WakefulError as error:
        _complain(context, error, str(error))
        raise typer.Exit(code_of(error)) from None
    except BrokenPipeError:
        quiet_stdout()
        raise typer.Exit(ExitCode.FAILURE) from None
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(context, error, f"{where}{error.strerror or error}")
        raise typer.Exit(ExitCode.FAILURE) from None
    except Exception as error:
        _complain(context, error, f"this is a bug: {error!r}; run again with --debug and report it")
        raise typer.Exit(ExitCode.FAILURE) from None


def _complain(context: CliContext, error: BaseException, sentence: str) -> None:
    hide = Redaction(secrets_in(context.environ)).hide
    if context.is_debug:
        context.out.complain(hide("".join(traceback.format_exception(error)).rstrip()))
    context.out.complain(hide(f"wakeful: {sentence}"))
