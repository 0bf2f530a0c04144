"""What goes wrong with an answer on its way, as a plan says."""

from random import Random

from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.wire import Frame


def pieces_of(frames: list[Frame], step: Step) -> list[bytes]:
    """Return what is written, piece by piece."""
    told = [frame for frame in frames if frame.kind not in step.drop]
    told = [frame for frame in told for _ in range(1 + (frame.kind in step.twice))]
    if step.is_shuffled:
        Random(len(told)).shuffle(told)
    pieces = [frame.data for frame in told]
    if step.garbage:
        pieces.insert(len(pieces) // 2, step.garbage.encode("latin-1"))
    if step.cut or step.chunk:
        whole = b"".join(pieces)
        whole = whole[: len(whole) - step.cut]
        size = step.chunk or len(whole)
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
    return pieces
