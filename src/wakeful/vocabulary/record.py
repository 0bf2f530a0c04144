"""What every value of the ledgers has in common."""

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable value with named, typed fields that reads and writes itself as JSON."""
