"""Files come in and go out alike on every database."""

from tests.integration.transcript.files import HEADER, CliContext, answer, entry, user, written
from wakeful.bus.bus import Bus
from wakeful.store.database import Store
from wakeful.transcript.jsonl import imports
from wakeful.transcript.jsonl.importing import Importer
from wakeful.vocabulary.clock import SystemClock
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
