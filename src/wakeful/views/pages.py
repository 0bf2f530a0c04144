"""Pages: bounded by what they hold, and not only by how many lines they have."""

from collections.abc import Iterable

PAGE_BYTES = 4 * 1024 * 1024


def fitting(sizes: Iterable[int], room: int = PAGE_BYTES) -> int:
    """Return how many things of these sizes go on one page: one at least, the last beyond it."""
    count = 0
    for size in sizes:
        count += 1
        room -= size
        if room <= 0:
            break
    return count


def is_full(sizes: Iterable[int]) -> bool:
    """Tell whether a page ended because there was no more room on it."""
    return sum(sizes) >= PAGE_BYTES
