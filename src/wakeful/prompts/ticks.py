"""The block that tells an agent why it was woken by nobody."""

from wakeful.vocabulary.text import one_line

LONGEST_REASON = 500
NO_REASON = "no reason given"


def wake_block(
    kind: str,
    elapsed_ms: int,
    reason: str,
    *,
    requested_ms: int | None = None,
    buffered: int = 0,
    dropped: int = 0,
) -> str:
    """Return the lines of a tick; what is said in `reason` can neither end nor imitate a line."""
    lines = ["<tick>", f"kind: {kind}", f"elapsed_ms: {elapsed_ms}", f"reason: {_quoted(reason)}"]
    if requested_ms is not None:
        lines.append(f"requested_ms: {requested_ms}")
    if buffered:
        lines.append(f"buffered: {buffered}")
    if dropped:
        lines.append(f"dropped: {dropped}")
    return "\n".join([*lines, "</tick>"])


def _quoted(reason: str) -> str:
    plain = one_line(reason, LONGEST_REASON) or NO_REASON
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
