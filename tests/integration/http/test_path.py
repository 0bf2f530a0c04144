"""The page of the path tells the truth: one message over HTTP takes just these hops, in this order.

A hop is a function that is handed the message; what it asks on its way is no hop. Nothing is left
out: whoever stands on the stack of a hop is one, too, or the floor (store, vocabulary, telemetry).
"""

import re
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import wakeful
from tests.integration.http.serving import house

ROOT = Path(__file__).resolve().parents[3]
SOURCE = f"{Path(wakeful.__file__).parent}/"
MOST_HOPS = 20
FLOOR = ("store/", "vocabulary/", "telemetry/")


class Called(NamedTuple):
    """One call of a function of ours, and the files of those who called it, outermost first."""

    file: str
    name: str
    stack: tuple[str, ...]


def lines(kind: str) -> list[tuple[str, str]]:
    """Return the files and functions of the page's lines of a kind."""
    page = (ROOT / "docs" / "path.md").read_text(encoding="utf-8")
    return re.findall(rf"^ +{kind} (\S+\.py) +([\w.]+) ", page, re.M)


def place_of(frame: FrameType) -> str | None:
    name = frame.f_code.co_filename
    return name.removeprefix(SOURCE) if name.startswith(SOURCE) else None


@contextmanager
def watching(wanted: set[tuple[str, str]]) -> Generator[list[Called], None, None]:
    """Note the calls of some functions, on this thread and on those that begin meanwhile."""
    found: list[Called] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        file = place_of(frame)
        if event != "call" or file is None or (file, frame.f_code.co_qualname) not in wanted:
            return
        stack: list[str] = []
        caller = frame.f_back
        while caller is not None:
            if (place := place_of(caller)) is not None and not place.startswith(FLOOR):
                stack.append(place)
            caller = caller.f_back
        found.append(Called(file, frame.f_code.co_qualname, tuple(reversed(stack))))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def in_order(found: Sequence[Called], hops: Sequence[tuple[str, str]]) -> list[Called]:
    """Return, for each hop, its first call after that of the hop before it."""
    taken: list[Called] = []
    calls = iter(found)
    for hop in hops:
        call = next((one for one in calls if (one.file, one.name) == hop), None)
        assert call is not None, f"{hop} is not reached after {taken[-1:]}"
        taken.append(call)
    return taken


async def test_one_message_takes_the_hops_of_the_page_and_no_others():
    hops, asked = lines(r"\d+"), lines("asks")
    files = {file for file, _ in hops}
    with watching({*hops, *asked}) as found:
        async with house() as home, home.client(home.operator) as client:
            path = "/api/sessions/main/messages?wait=10"
            await client.post(path, json={"text": "to be warm"})
            found.clear()
            answer = await client.post(path, json={"text": "hello"})
            calls = list(found)

    assert answer.json()["turn"]["reply"] == "well"
    assert len(hops) <= MOST_HOPS
    taken = in_order(calls, hops)
    assert {file for call in taken for file in call.stack} - files == set()
    by_hops = {(call.file, call.name) for call in calls if call.stack and call.stack[-1] in files}
    assert set(asked) - by_hops == set()
