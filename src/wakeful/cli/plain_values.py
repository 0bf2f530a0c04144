"""Options that need no reading are not read: typer loads pydantic to find that text is text."""

from collections.abc import Callable, Sequence
from typing import Any, cast

_READ = "get_runtime_param"  # how typer finds whoever reads a parameter; if it is gone, so are we


def spare_plain_values(command: Any) -> None:
    """Let what is text, or was not given, pass as it is, in a command and all below it."""
    for parameter in command.params:
        _spare(parameter)
    help_option: Callable[[Any], Any] = command.get_help_option

    def spared_help_option(ctx: Any) -> Any:
        return _spare(help_option(ctx))

    command.get_help_option = spared_help_option
    for child in getattr(command, "commands", {}).values():
        spare_plain_values(child)


def _spare(parameter: Any) -> Any:
    reader = getattr(parameter, _READ, None)
    if reader is not None and _READ not in vars(parameter):
        setattr(parameter, _READ, _Plain(parameter, reader).itself)
    return parameter


class _Plain:
    """Stands before typer's own reader, which reads everything else."""

    def __init__(self, parameter: Any, reader: Callable[[], Any]) -> None:
        self._reader = reader
        self._kind = parameter.type_descriptor.annotation

    def itself(self) -> "_Plain":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        is_default = not isinstance(value, str | list | tuple)
        if is_default or (self._kind is str and isinstance(value, str)):
            return value
        if self._kind == list[str] and not isinstance(value, str):
            return [*cast("Sequence[str]", value)]
        return self._reader().coerce(value, param=param, ctx=ctx)
