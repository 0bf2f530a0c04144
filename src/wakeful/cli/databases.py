"""`db`: the database itself."""

import asyncio

from wakeful.cli.context import CliContext
from wakeful.cli.exits import CommandFailed
from wakeful.cli.times import size
from wakeful.settings.places import DATABASE_NAME
from wakeful.store.migrations import packaged
from wakeful.store.opening import is_postgres, open_store
from wakeful.store.sqlite_check import check
from wakeful.vocabulary.errors import StoreRefused


def migrate(context: CliContext) -> None:
    """Bring the database up to this release; a start does the same."""
    address = context.loaded.settings.database
    where = address if is_postgres(address) else context.home / DATABASE_NAME

    async def opened() -> int:
        store = await open_store(where, clock=context.clock)
        try:
            return (await store.read("SELECT version FROM schema"))[0][0]
        finally:
            await store.close()

    context.out.working(f"bringing the database to schema {packaged()[-1].number}")
    version = asyncio.run(opened())
    context.out.data({"schema_version": version}, [f"the database has schema {version}"])


def check_(context: CliContext) -> None:
    """Check the whole database; nothing is changed, and the server may be running."""
    if is_postgres(context.loaded.settings.database):
        raise StoreRefused("the database is PostgreSQL: use pg_amcheck")
    if not context.database.exists():
        raise StoreRefused(f"there is no database in {context.home}; `wakeful up` creates one")
    context.out.working(f"checking {context.database} ({size(context.database.stat().st_size)})")
    complaints = check(context.database)
    context.out.data(
        {"database": str(context.database), "complaints": complaints},
        complaints or [f"{context.database} is whole"],
    )
    if complaints:
        raise CommandFailed(
            f"{context.database} is damaged; stop the server and restore a backup with "
            "`wakeful backup restore FILE --force`"
        )
