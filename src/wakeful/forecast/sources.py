"""Sources: what people call whatever makes an agent think."""

from wakeful.triggers import quieting
from wakeful.vocabulary.kinds import Origin

DIGEST = "digest"
_OF_THEIR_OWN = frozenset({Origin.TICK, Origin.HEARTBEAT, Origin.WAKE})


def source_of(origin: str, source: str) -> str:
    """Name the source of a stimulus, by its origin and by what it calls itself."""
    if origin in _OF_THEIR_OWN:
        return origin
    if origin == Origin.AUTOMATION:
        return source
    if origin == Origin.SYSTEM and source == quieting.SOURCE:
        return DIGEST
    return origin
