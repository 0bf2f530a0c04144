"""`python -m wakeful.testing.checker LEDGERS DATABASE`: print a table; 1 if a promise is broken."""

import argparse
import asyncio
import sys
from pathlib import Path

from wakeful.store.opening import is_postgres
from wakeful.testing.checker.check import check_place


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m wakeful.testing.checker", description=__doc__)
    parser.add_argument("ledgers", type=Path)
    parser.add_argument("database", help="a file, or postgresql://…")
    options = parser.parse_args()
    database: str = options.database
    address = database if is_postgres(database) else Path(database)
    report = asyncio.run(check_place(options.ledgers, address))
    sys.stdout.write(report.table() + "\n")
    return 1 if report.caught else 0


if __name__ == "__main__":
    sys.exit(main())
