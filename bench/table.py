"""The results as a table to read and as JSON to keep."""

import json
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure

_HEAD = ("name", "value", "unit", "floor", "ratio", "goal", "met", "the floor is")
_NUMBERS = frozenset({1, 3, 4, 5})


def table(figures: Sequence[Figure]) -> str:
    """Return the figures in aligned columns."""
    lines = [_HEAD, *(_cells(figure) for figure in figures)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def save(figures: Sequence[Figure], path: Path) -> None:
    """Write one object per figure."""
    rows = [
        {
            "name": figure.name,
            "value": _rounded(figure.value),
            "unit": figure.unit,
            "floor": _rounded(figure.floor),
            "ratio": _rounded(figure.ratio),
            "goal": _rounded(figure.goal),
            "met": figure.met,
            **({"doubt": figure.doubt} if figure.doubt else {}),
        }
        for figure in figures
    ]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def number(value: float | None) -> str:
    """Return a value with three digits that count, or a dash."""
    if value is None:
        return "-"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _cells(figure: Figure) -> tuple[str, ...]:
    goal = "none" if figure.goal is None else f"{figure.sense.value} {number(figure.goal)}"
    return (
        figure.name,
        number(figure.value),
        figure.unit,
        number(figure.floor),
        "-" if figure.ratio is None else f"{figure.ratio:.2f}",
        goal,
        "?" if figure.doubt else {True: "yes", False: "NO", None: "-"}[figure.met],
        "; ".join(filter(None, (figure.floor_is, figure.doubt))),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
