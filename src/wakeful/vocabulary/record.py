"""What every value of the ledgers has in common."""

from typing import Any, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _RecordMeta(msgspec.StructMeta):
    """Makes every record frozen and keyword-only, which msgspec does not hand down by itself."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return super().__new__(cls, *args, **{"frozen": True, "kw_only": True, **options})


class Record(msgspec.Struct, metaclass=_RecordMeta):
    """An immutable value with named, typed fields that reads and writes itself as JSON."""
