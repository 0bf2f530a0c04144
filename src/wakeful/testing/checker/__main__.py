"""`python -m wakeful.testing.checker LEDGERS DATABASE`: print a table; 1 if a promise is broken."""

import argparse
import sys
from pathlib import Path

from wakeful.testing.checker.check import check_files


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m wakeful.testing.checker", description=__doc__)
    parser.add_argument("ledgers", type=Path)
    parser.add_argument("database", type=Path)
    options = parser.parse_args()
    report = check_files(options.ledgers, options.database)
    sys.stdout.write(report.table() + "\n")
    return 1 if report.caught else 0


if __name__ == "__main__":
    sys.exit(main())
