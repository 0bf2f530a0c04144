"""Sessions that were forked, reset or deleted, as files and in the search."""

import json
from collections.abc import Sequence

import pytest

from tests.integration.transcript.files import CliContext
from wakeful.models.scripted import Scripted
from wakeful.runtime import Runtime
from wakeful.store.database import Row, Store
from wakeful.testing.kit import in_memory
from wakeful.transcript.indexing import Indexer
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.transcript.jsonl.importing import Importer
from wakeful.views.search import SearchView
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.ids import Ids

ECHO = Scripted(lambda request: f"heard {request.messages[-1].text}")


async def said(runtime: Runtime, text: str, session: str = "main") -> None:
    await runtime.wait(await runtime.send(text, session=session))


def on(runtime: Runtime) -> CliContext:
    importer = Importer(runtime.store, runtime.bus, Ids(SystemClock()), "main")
    return CliContext(runtime.store, importer)


def texts(file: bytes) -> list[str]:
    """Return what is said in a file."""
    lines = map(json.loads, file.splitlines()[1:])
    found = (line.get("message", {}).get("content", line.get("summary")) for line in lines)
    return [one if isinstance(one, str) else one[0]["text"] for one in found]


async def found(runtime: Runtime, words: str) -> list[tuple[str, str]]:
    await Indexer(runtime.store, runtime.clock).find_behind()
    hits = await SearchView(runtime.store).page(words, limit=50)
    return sorted((hit.session_key, "".join(p.text for p in hit.snippet)) for hit in hits)


async def check_round_trip(one: CliContext, keys: Sequence[str]) -> None:
    for key in keys:
        first = await one.get(key)
        report = await one.put(first)
        assert report.troubles == 0
        assert await one.get(report.session_key) == first


async def test_every_branch_of_a_session_leaves_with_it_the_active_one_last():
    async with in_memory(ECHO) as runtime:
        await said(runtime, "one")
        await said(runtime, "two")
        rows = await runtime.store.read("SELECT id FROM entries ORDER BY depth")
        await runtime.fork("main", at=rows[1][0], summary="we tried two")
        await said(runtime, "three")
        one = on(runtime)
        file = await one.get("agent:main:main")
        await check_round_trip(one, ["agent:main:main"])

    assert texts(file) == [
        *("one", "heard one", "two", "heard two"),
        *("we tried two", "three", "heard three"),
    ]


async def test_a_session_that_forked_off_leaves_with_what_it_stands_on_and_is_found_apart():
    async with in_memory(ECHO) as runtime:
        await said(runtime, "shared")
        await runtime.fork("main", to="agent:main:other")
        await said(runtime, "apple", "main")
        await said(runtime, "pear", "agent:main:other")
        one = on(runtime)
        first, other = await one.get("agent:main:main"), await one.get("agent:main:other")
        await check_round_trip(one, ["agent:main:main", "agent:main:other"])
        hits = [await found(runtime, f'"heard {word}"') for word in ("shared", "apple", "pear")]

    assert texts(first) == ["shared", "heard shared", "apple", "heard apple"]
    assert texts(other) == ["shared", "heard shared", "pear", "heard pear"]
    own = [[key for key, _ in hit if "import" not in key] for hit in hits]
    assert own == [["agent:main:main"], ["agent:main:main"], ["agent:main:other"]]


class Counting:
    """A store that counts how often it is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    async def read(self, sql: str, **params: object) -> Sequence[Row]:
        self.reads += 1
        return await self._store.read(sql, **params)


async def test_forks_of_forks_leave_without_asking_for_each_of_them_again_and_again():
    deep = 20
    async with in_memory(ECHO) as runtime:
        await said(runtime, "one")
        for _ in range(deep):
            await runtime.fork("main", summary="deeper")
        counting = Counting(runtime.store)
        one = CliContext(counting, on(runtime).importer)  # pyright: ignore[reportArgumentType]
        file = await one.get("agent:main:main")

    assert texts(file) == ["one", "heard one", *["deeper"] * deep]
    assert counting.reads < 8 * deep


async def test_a_transcript_from_before_a_reset_leaves_and_is_found():
    async with in_memory(ECHO) as runtime:
        await said(runtime, "before")
        await runtime.reset("main")
        await said(runtime, "after")
        one = on(runtime)
        rows = await runtime.store.read("SELECT id FROM past_transcripts")
        old, new = await one.get("agent:main:main", rows[0][0]), await one.get("agent:main:main")
        hits = await found(runtime, "heard")

    assert texts(old) == ["before", "heard before"]
    assert texts(new) == ["after", "heard after"]
    assert hits == [("agent:main:main", "heard after"), ("agent:main:main", "heard before")]


async def test_a_deleted_session_is_not_found_any_more():
    async with in_memory(ECHO) as runtime:
        await said(runtime, "secret")
        await said(runtime, "open", "agent:main:other")
        before = await found(runtime, "heard")
        await runtime.delete("main")
        after = await found(runtime, "heard")
        await said(runtime, "anew")
        again = await found(runtime, "heard")

    assert len(before) == 2
    assert after == [("agent:main:other", "heard open")]
    assert again == [("agent:main:main", "heard anew"), *after]


async def test_what_is_left_of_a_session_that_is_deleted_meanwhile_never_leaves_as_the_whole():
    async with in_memory(ECHO) as runtime:
        await said(runtime, "one")
        wanted = await source(runtime.store, "agent:main:main")
        parts = export(runtime.store, wanted)
        await anext(parts)
        await runtime.delete("main")
        await said(runtime, "anew")

        with pytest.raises(NotFound, match="no transcript"):
            await anext(parts)
