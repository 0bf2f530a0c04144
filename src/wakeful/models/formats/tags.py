"""Thoughts that a model writes between tags, in front of its words."""

OPENING, CLOSING = "<think>", "</think>"


class Tags:
    """Tells thoughts from words where a model writes both as one text: `<think>…</think>` first."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"  # "before", "thinking", "between" or "after"

    def split(self, text: str) -> list[tuple[str, bool]]:
        """Return what is decided by now: pieces, and whether they are thoughts."""
        if self._state == "after":
            return [(text, False)]
        self._held += text
        if self._state == "before" and not self._is_undecided():
            self._state = "after"
        thoughts = self._thoughts() if self._state == "thinking" else []
        if self._state == "between":  # and blank lines belong to neither
            self._held = self._held.lstrip("\n")
            self._state = "after" if self._held else "between"
        return [*thoughts, *(self.end() if self._state == "after" else [])]

    def end(self) -> list[tuple[str, bool]]:
        """Return what was held back."""
        held, self._held = self._held, ""
        return [(held, self._state == "thinking")] if held else []

    def _is_undecided(self) -> bool:
        """Look whether thoughts begin here, or still may."""
        start = self._held.lstrip()
        if start.startswith(OPENING):
            self._held, self._state = start[len(OPENING) :].lstrip("\n"), "thinking"
        return self._state == "thinking" or OPENING.startswith(start)

    def _thoughts(self) -> list[tuple[str, bool]]:
        thought, closing, rest = self._held.partition(CLOSING)
        if closing:
            self._held, self._state = rest, "between"
        else:  # its end may have begun
            kept = len(self._held) - _overlap(self._held, CLOSING)
            thought, self._held = self._held[:kept], self._held[kept:]
        return [(thought, True)] if thought else []


def _overlap(text: str, tag: str) -> int:
    """Return how many letters at the end of a text may be the beginning of a tag."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)
