"""What every value of the ledgers has in common."""

from typing import Any, TypeVar, dataclass_transform

import msgspec

from wakeful.vocabulary.errors import InvalidInput


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _RecordMeta(msgspec.StructMeta):
    """Makes every record frozen and keyword-only, which msgspec does not hand down by itself."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return super().__new__(cls, *args, **{"frozen": True, "kw_only": True, **options})


class Record(msgspec.Struct, metaclass=_RecordMeta):
    """An immutable value with named, typed fields that reads and writes itself as JSON.

    What conversations are made of is declared with `gc=False`: there may be a million of them in
    memory, none of them is part of a cycle, and each look of the collector at all of them would
    stop everything for a quarter of a second.
    """


R = TypeVar("R", bound=Record)


def fitting(record: R, prefix: str = "") -> R:
    """Return the record with every field as it is declared, or refuse the first that does not fit.

    What a caller without a type checker puts into a field must not be found out when it is read.
    """
    given = {}
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        try:
            given[field.name] = (
                value if value is msgspec.UNSET else msgspec.convert(value, field.type)
            )
        except msgspec.ValidationError as error:
            rule = str(error)
            raise InvalidInput(f"{prefix}{field.name}", rule[:1].lower() + rule[1:]) from error
    return type(record)(**given)
