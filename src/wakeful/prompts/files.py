"""Files of the workspace that are part of the system prompt, each read again only when changed."""

from collections.abc import Sequence
from pathlib import Path

from wakeful.vocabulary.errors import NotFound, WakefulError
from wakeful.vocabulary.text import clean
from wakeful.workspace import Workspace, is_shared

NAMES = ("AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md", "HEARTBEAT.md")
FOR_ANYBODY = frozenset({"AGENTS.md", "SOUL.md"})  # what it is, and nothing of whose it is
FOR_HEARTBEATS = frozenset({"AGENTS.md", "HEARTBEAT.md"})  # the rules, and what is to be done
LONGEST = 20_000  # characters of one file

Stamp = tuple[int, int, int]


class PromptFiles:
    """What the files say, in a fixed order: the same bytes until one of them changes."""

    def __init__(self, root: Path) -> None:
        self._workspace = Workspace(root)
        self._known: dict[str, tuple[Stamp, str]] = {}

    def read(self, shared: Sequence[str] | None = None, *, is_light: bool = False) -> str:
        """Return a section for each file that is there; blocks, so call it off the loop.

        With `shared`, what of the workspace a stranger may see, only of the files for anybody and
        of those. A light heartbeat reads its tasks, and the rules, which hold in every turn.
        """
        names = NAMES
        if is_light:
            names = tuple(name for name in NAMES if name in FOR_HEARTBEATS)
        if shared is not None:
            names = tuple(name for name in names if name in FOR_ANYBODY or is_shared(name, shared))
        return "\n\n".join(filter(None, map(self._section, names)))

    def _section(self, name: str) -> str:
        # Looked at before it is read: a change in between is noticed the next time.
        stamp = self._workspace.stamp(name)
        if stamp is None:
            self._known.pop(name, None)
            return ""
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = self._known[name] = stamp, self._said(name)
        return known[1]

    def _said(self, name: str) -> str:
        try:
            text = clean(self._workspace.read(name).decode("utf-8", "replace")).strip()
        except NotFound:
            return ""
        except WakefulError as error:
            return f"# {name}\n\n[not read: {error}]"
        if len(text) > LONGEST:
            left = len(text) - LONGEST
            text = f"{text[:LONGEST]}\n[cut: {left} more characters of {name} are not shown here]"
        return f"# {name}\n\n{text}" if text else ""
