"""Opening a store by its address."""

from pathlib import Path

from wakeful.store.database import Store
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreRefused

POSTGRES = ("postgresql://", "postgres://")


async def open_store(address: str | Path | None, *, clock: Clock) -> Store:
    """Open PostgreSQL at a URL, SQLite at a path, or a store in memory for None."""
    if is_postgres(address):
        try:
            # The driver is an extra and heavy: only who uses it pays for it.
            from wakeful.store.postgres import open_postgres
        except ModuleNotFoundError as error:
            raise StoreRefused("PostgreSQL needs the extra: install wakeful[postgres]") from error
        return await open_postgres(str(address), clock=clock)
    return await open_sqlite(None if address is None else Path(address), clock=clock)


def is_postgres(address: str | Path | None) -> bool:
    """Return whether this is the URL of a PostgreSQL database."""
    return isinstance(address, str) and address.startswith(POSTGRES)
