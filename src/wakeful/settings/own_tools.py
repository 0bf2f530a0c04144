"""Tools of one's own: those that the files and modules of `tools_from` define."""

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Sequence
from os.path import expanduser
from pathlib import Path
from types import ModuleType
from typing import Protocol

from wakeful.tools.tool import Tool
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import error_text

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class Complaints(Protocol):
    """Whoever notes that a key breaks a rule."""

    def complain(self, path: str, rule: str) -> object: ...


class OwnTools(Record):
    """What was found: the tools by their names, and what the sources looked like then."""

    tools: dict[str, Tool] = {}
    sources: dict[str, str] = {}  # a hash of each file


NO_TOOLS = OwnTools()


def load_tools(places: Sequence[str], folder: Path, reading: Complaints) -> OwnTools:
    """Run each file or module anew and return its tools; complain of what fails, with its line."""
    tools: dict[str, Tool] = {}
    sources: dict[str, str] = {}
    for position, place in enumerate(places):
        key = f"tools_from[{position}]"
        try:
            module = _loaded(place, folder)
        # Anything may go wrong in somebody's module, a call of `exit` included.
        except (Exception, SystemExit) as error:
            reading.complain(key, _what_failed(error, place, folder))
            continue
        if module is None:
            rule = f"must be a Python file or the name of a module, not {place[:60]!r}"
            reading.complain(key, rule)
            continue
        found = {one.name: one for one in vars(module).values() if isinstance(one, Tool)}
        if not found:
            reading.complain(key, f"{place} defines no tool; mark functions with @wakeful.tool")
        for name in found.keys() & tools.keys():
            reading.complain(key, f"{place} defines the tool {name!r}, which is there already")
        tools |= found
        if module.__file__ is not None:
            digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
            sources[module.__file__] = digest
    return OwnTools(tools=tools, sources=sources)


def _loaded(place: str, folder: Path) -> ModuleType | None:
    """Return a module that was run just now; None if the place can be none."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for the files that it imports itself
    importlib.invalidate_caches()
    if not place.endswith(".py"):
        if _MODULE.fullmatch(place) is None:
            return None
        known = sys.modules.get(place)
        return importlib.import_module(place) if known is None else importlib.reload(known)
    file = folder / Path(expanduser(place))
    # Compiled here: a cached version may be older than a change within the same second.
    code = compile(file.read_bytes(), str(file), "exec")
    name = f"wakeful_tools_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # where annotations are looked up
    exec(code, module.__dict__)
    return module


def _what_failed(error: BaseException, place: str, folder: Path) -> str:
    """Return where a module failed, by its own lines, and how."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {error.msg}"
    if isinstance(error, OSError) and error.filename == str(folder / Path(expanduser(place))):
        return f"{error.filename} cannot be read: {error.strerror}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if not one.filename.startswith("<") and _is_own(one.filename)]
    where = f"{own[-1].filename}:{own[-1].lineno}: " if own else f"{place}: "
    return f"{where}{type(error).__name__}: {error_text(error)}"


def _is_own(file: str) -> bool:
    return not file.startswith((str(Path(__file__).parents[1]), sys.base_prefix, sys.prefix))
