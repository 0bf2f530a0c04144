"""What clocks on the wall of a zone show, and when they show it."""

from datetime import UTC, datetime, tzinfo


def local(moment: int, zone: tzinfo | None) -> datetime:
    """Return what clocks in a zone show at an instant; without one, the machine's."""
    return datetime.fromtimestamp(moment / 1000, UTC).astimezone(zone)


def moment(wall: datetime, zone: tzinfo | None) -> int:
    """Return the instant at which clocks in a zone show a time, or first show a later one.

    A time that a day does not have counts right after the gap; of one that it has twice the first
    counts.
    """
    found = _instant(wall, zone)
    if _wall(found, zone) == wall:
        return found
    # Inside a gap: look for its end between what the offsets before and after it make of this.
    low, high = _instant(wall.replace(fold=1), zone), found
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _wall(middle, zone) > wall else (middle, high)
    return high


def _instant(wall: datetime, zone: tzinfo | None) -> int:
    return round(wall.replace(tzinfo=zone).astimezone(UTC).timestamp() * 1000)


def _wall(moment: int, zone: tzinfo | None) -> datetime:
    return local(moment, zone).replace(tzinfo=None, fold=0)
