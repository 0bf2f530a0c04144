"""Places in the code, named as `module:Class.attribute`, and how a mutant changes them."""

from importlib import import_module
from typing import Any


def original(target: str) -> Any:
    """Return what is there; LookupError if nothing is."""
    holder, name = _place(target)
    return getattr(holder, name)


def patch(target: str, changed: Any) -> None:
    """Put something else there, for the rest of this process's life."""
    holder, name = _place(target)
    setattr(holder, name, changed)


def _place(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    *outer, name = path.split(".")
    try:
        holder: Any = import_module(module)
        for part in outer:
            holder = getattr(holder, part)
        getattr(holder, name)
    except (ImportError, AttributeError) as error:
        raise LookupError(
            f"there is no {target}: a mutant that patches it breaks nothing"
        ) from error
    return holder, name
