"""The reference names every route with its scope, every problem and every metric."""

import re
from pathlib import Path

from tests.integration.http.serving import house
from wakeful.doors.http.problems import TITLES

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")

PARTS = {
    "/docs/docs.js",
    "/docs/docs.css",
    "/activity.js",
    "/agents.js",
    "/automations.js",
    "/home.js",
    "/home.css",
    "/icon.svg",
}  # of pages


async def test_every_route_stands_in_the_reference_with_its_scope():
    rows = dict(re.findall(r"^\| `([A-Z]+ [^`]+)` \| `?([a-z:*]+)`? \|", PAGE, re.M))
    async with house() as home:
        table = {
            f"{row.method} {row.path}": row.scope for row in home.table if row.path not in PARTS
        }

    assert rows == table


def test_every_problem_stands_in_the_reference_with_its_status():
    rows = {
        code: int(status) for code, status in re.findall(r"^\| `([\w-]+)` \| (\d+) \|", PAGE, re.M)
    }

    assert rows == {code: status for code, (status, _) in TITLES.items()}


async def test_every_metric_stands_in_the_reference():
    async with house() as home:
        await home.runtime.send("hello")
        families = {family.name for family in home.runtime.metrics.registry.collect()}

    named = {name.removesuffix("_total") for name in re.findall(r"`(wakeful_\w+)", PAGE)}
    assert families == named
