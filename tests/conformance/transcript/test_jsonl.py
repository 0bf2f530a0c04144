"""Files come in and go out alike on every database."""

import pytest

from tests.integration.transcript.files import HEADER, CliContext, answer, entry, user, written
from wakeful.bus.bus import Bus
from wakeful.store.database import Store
from wakeful.transcript import forks
from wakeful.transcript.jsonl import imports
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids

FILE = written(
    HEADER,
    user("00000001", None, 'with "quotes"'),
    *(answer(f"{number:08x}", f"{number - 1:08x}") for number in range(2, 900)),
    entry("a-name", "00000005", "compaction", summary="s", firstKeptEntryId="00000003"),
    entry("00001000", "a-name", "label", targetId="a-name", label="x"),
    b'{"type":"message","id":"00001001","parentId":"00001000","timestamp":"2026-01-22",'
    b'"message":{"role":"user","content":"\\u0000 \\ud83d"}}',
)


async def started(store: Store) -> CliContext:
    ids = Ids(SystemClock())
    bus = Bus(store, ids)
    await bus.start()
    return CliContext(store, Importer(store, bus, ids, "main"))


async def test_a_file_comes_out_as_it_went_in(store: Store):
    desk = await started(store)

    report = await desk.put(FILE, "agent:main:a")

    assert (report.entries, report.branches, report.troubles) == (902, 2, 0)
    assert await desk.get("agent:main:a") == FILE
    rows = await store.read(
        "SELECT leaf_depth, fork_depth, context_from, compactions, label FROM sessions "
        "WHERE key NOT LIKE '%:activity'"
    )
    assert [tuple(row) for row in rows] == [(7, 4, 2, 1, None)]


async def test_an_import_is_undone_in_small_steps(store: Store):
    desk = await started(store)
    report = await desk.put(FILE, "agent:main:a")
    transcript_id = report.transcript_id or ""

    steps = 1
    while not await store.transact(lambda tx: imports.undo(tx, transcript_id, 100)):
        steps += 1

    assert steps > 10
    for table in ("entries", "imports", "branches", "entry_lines"):
        assert await desk.count_of(table) == 0


async def test_an_entry_is_meant_by_its_id_the_beginning_of_it_or_its_name_in_the_file(
    store: Store,
):
    desk = await started(store)
    await desk.put(FILE, "agent:main:a")
    await desk.put(FILE, "agent:main:b")
    rows = await store.read(
        "SELECT entries.id, depth, transcript_id FROM entries JOIN sessions USING (transcript_id) "
        "WHERE key = 'agent:main:a' ORDER BY entries.id"
    )
    ids = [row[0] for row in rows]

    async def meant(name: str) -> str:
        return await forks.entry_called(store, "agent:main:a", name)

    assert await meant(ids[7]) == ids[7]
    assert await meant(ids[7][:-8]) == ids[7]
    assert await meant(ids[7][3:-8]) == ids[7]
    assert await meant("00000008") == ids[7]
    assert await meant("a-name") == ids[899]
    assert await meant("b-name") == "b-name"
    assert await meant("%%%%") == "%%%%"
    assert await meant("en_") == "en_"
    with pytest.raises(InvalidInput, match="several entries are called"):
        await meant(ids[7][:-16])
