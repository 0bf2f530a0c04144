"""`python -m bench`: measure, print a table, write `bench/results.json`."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.families import FAMILIES, Family, find
from bench.figures import Figure
from bench.profiling import profiled
from bench.table import save, table

RESULTS = Path(__file__).resolve().parent / "results.json"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="measure one figure or one family of them")
    parser.add_argument("--profile", metavar="NAME", help="only show where its time goes")
    options = parser.parse_args(arguments)
    wanted = options.profile or options.only
    families = FAMILIES if wanted is None else [_known(parser, wanted)]
    if options.profile is not None:
        _show_profile(families[0])
        return 0
    figures = [figure for family in families for figure in _measured(family)]
    save(figures, RESULTS)
    for family in families:
        if any(figure.met is False and find(figure.name) is family for figure in figures):
            _show_profile(family)
    print(table(figures))
    return 0


def _known(parser: argparse.ArgumentParser, name: str) -> Family:
    family = find(name)
    if family is None:
        known = ", ".join(family.name for family in FAMILIES)
        parser.error(f"there is no figure {name!r}; the families are {known}")
    return family


def _measured(family: Family) -> list[Figure]:
    started = time.perf_counter()
    with _folder() as folder:
        figures = family.measure(folder)
    taken = time.perf_counter() - started
    print(f"{family.name}: measured in {taken:.1f} s", file=sys.stderr, flush=True)
    return figures


def _show_profile(family: Family) -> None:
    with _folder() as folder:
        print(f"\nWhere the time of {family.name} goes\n\n{profiled(family.load, folder)}")


@contextmanager
def _folder() -> Generator[Path]:
    """Give a folder on the disk where temporary files lie; it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="wakeful-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
