"""Search finds the same on every database."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.integration.transcript.files import HEADER, entry, pieces, written
from wakeful.bus.bus import Bus
from wakeful.store.database import Row, Store
from wakeful.transcript import indexing, search
from wakeful.transcript.indexing import Indexer
from wakeful.transcript.jsonl.importing import Importer
from wakeful.transcript.search import Role
from wakeful.views import search as views_search
from wakeful.views.in_turn import InTurn
from wakeful.views.search import Hit, SearchView, Wanted
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.session_key import SessionKey

SAID = [
    ("user", "Where is the harbour of Kraków?"),
    ("assistant", "There is no harbour: Kraków lies on a river, the Vistula (Wisła)."),
    ("user", "well-known e-mail me@example.org and snake_case_words, 3.14"),
    ("toolResult", "404 not found: /srv/harbour-log.txt"),
    ("user", "東京の港はどこですか"),
    ("user", "STRASSE und Straße; cafe\u0301 and caf\u00e9"),
    ("user", "river river " * 300 + "delta end"),
    ("user", "हिन्दी में लिखा"),
    ("user", "'; DROP TABLE entries; -- \" OR NEAR(x) & | ! :* <->"),
    ("user", "ฉันชอบกินข้าวที่กรุงเทพ"),
    ("user", "ພາສາລາວ"),
    ("user", "thanks 👍🏽"),
]

FOUND: list[tuple[str, list[int]]] = [
    ("harbour", [0, 3, 1]),
    ("HARBOUR", [0, 3, 1]),
    ("harbour kraków", [0, 1]),
    ('"no harbour"', [1]),
    ('"harbour no"', []),
    ("harb*", [0, 3, 1]),
    ("wis* river", [1]),
    ('"harbour of kra"*', [0]),
    ("harbour nowhere", []),
    ("well-known", [2]),
    ("known-well", []),
    ("example.org", [2]),
    ("case", [2]),
    ("3.14", [2]),
    ("harbour-log", [3]),
    ("東京", [4]),
    ("京東", []),
    ("港", [4]),
    ("strasse", [5]),
    ("café", [5]),
    ("cafe", []),
    ('"river delta"', []),
    ('"delta end"', [6]),
    ('"river river"', [6]),
    ("हिन्दी", [7]),
    ("drop table", [8]),
    ("near(x)", [8]),
    ("or", [8]),
    ("and", [5, 2]),
    ("กิน", [9]),
    ("กรุงเทพ", [9]),
    ("ฉันชอบ", [9]),
    ("ฉัน*", [9]),
    ("นฉั", []),
    ("ພາສາ", [10]),
    ("👍", [11]),
    ("港*", [4]),
    ("हिन्द*", [7]),
    ("harbour -river", [0, 3]),
    ('harbour -"no harbour" -log', [0]),
    ("harbour -har*", []),
]

BAD = {
    "": "holds no word",
    "   ": "holds no word",
    '"': "not closed",
    'a "b': "not closed",
    "*": "a star needs",
    "a*": "a star needs",
    "a*b": "a star may only end",
    "!? --": "holds no word",
    "-harbour": "holds no word",
    "x " * 30: "at most 20",
    "x" * 501: "at most 500 characters",
}


async def filled(
    store: Store, key: str = "agent:main:main", *, start: int = 0, is_indexed: bool = True
) -> None:
    """Bring a conversation in and index it."""
    ids = Ids(SystemClock())
    bus = Bus(store, ids)
    await bus.start()
    lines = [
        entry(
            f"{number:08x}",
            f"{number - 1:08x}" if number else None,
            message={"role": role, "content": text},
            timestamp=f"2026-01-{start + number + 1:02}T10:00:00.000Z",
        )
        for number, (role, text) in enumerate(SAID)
    ]
    last = f"{len(SAID) - 1:08x}"
    hidden = {"customType": "x", "content": "a hidden harbour", "display": False}
    lines.append(entry("0000ffff", last, "custom_message", **hidden))
    importer = Importer(store, bus, ids, "main")
    await importer.run(pieces(written(HEADER, *lines), 4096), SessionKey(key), is_trial=False)
    if is_indexed:
        await caught_up(store)


async def caught_up(store: Store) -> None:
    """Run an indexer until it has nothing left to do."""
    indexer = Indexer(store, SystemClock())
    await indexer.find_behind()


class Counted(InTurn):
    """Counts what is read in turn."""

    asked = 0

    async def read(self, viewer: str, sql: str, **params: object) -> Sequence[Row]:
        self.asked += 1
        return await super().read(viewer, sql, **params)


def numbers(hits: Sequence[Hit]) -> list[int]:
    return [hit.entry.depth for hit in hits]


async def test_every_kind_of_query_finds_the_same_in_the_same_order(store: Store):
    await filled(store)
    view = SearchView(store)

    for query, wanted in FOUND:
        assert numbers(await view.page(query, limit=50)) == wanted, query
    for query, rule in BAD.items():
        with pytest.raises(InvalidInput, match=rule):
            await view.page(query, limit=50)


async def test_a_page_goes_on_where_the_one_before_ended(store: Store):
    await filled(store)
    await filled(store, "agent:main:other", start=15)
    view = SearchView(store)
    seen: list[tuple[str, int]] = []
    after: str | None = None
    while hits := await view.page("harbour", after=after, limit=2):
        seen += [(hit.session_key, hit.entry.depth) for hit in hits]
        after = hits[-1].place

    other, first = "agent:main:other", "agent:main:main"
    assert seen == [(key, depth) for depth in (0, 3, 1) for key in (other, first)]


async def test_looking_is_narrowed_by_session_agent_role_and_time(store: Store):
    await filled(store)
    await filled(store, "agent:scout:main", start=15)
    view = SearchView(store)
    day = 86_400_000
    fifth = 1_767_261_600_000 + 15 * day  # of the second conversation, its first entry

    async def found(**wanted: object) -> list[tuple[str, int]]:
        hits = await view.page("harbour", wanted=Wanted(**wanted), limit=50)  # pyright: ignore[reportArgumentType]
        return [(hit.session_key.split(":")[1], hit.entry.depth) for hit in hits]

    assert await found(session_key="agent:main:main") == [("main", 0), ("main", 3), ("main", 1)]
    assert await found(agent_id="scout", role=Role.TOOL) == [("scout", 3)]
    assert await found(role=Role.ASSISTANT) == [("scout", 1), ("main", 1)]
    assert await found(since=fifth, until=fifth + day) == [("scout", 0)]
    assert await view.page("harbour", viewer="somebody", limit=50) == []


async def test_searches_are_read_in_turn(store: Store):
    """One may take seconds; many at once must not have all that read."""
    await filled(store)
    in_turn = Counted(store)
    view = SearchView(store, in_turn)
    found = await asyncio.gather(*(view.page("harbour", limit=50) for _ in range(5)))

    assert [numbers(hits) for hits in found] == [[0, 3, 1]] * 5
    assert in_turn.asked >= 5


async def test_what_is_deleted_or_not_yet_whole_is_not_found_and_is_swept_from_the_index(
    store: Store,
):
    await filled(store)
    view = SearchView(store)
    await store.transact(lambda tx: tx.run("UPDATE sessions SET transcript_id = 'tr_else'"))

    assert await view.page("harbour", limit=50) == []

    await store.transact(lambda tx: tx.run("DELETE FROM entries"))
    after: str | None = ""
    while after is not None:
        after = await store.transact(lambda tx, after=after: search.sweep(tx, after, 2))
    for table in ("search_lines", "search_heads", "search_words"):
        assert (await store.read(f"SELECT COUNT(*) FROM {table}"))[0][0] == 0


async def test_the_end_of_a_branch_that_others_stand_on_is_swept_from_the_index(store: Store):
    await filled(store)
    await store.transact(lambda tx: tx.run("DELETE FROM entries WHERE depth > 2"))
    after: str | None = ""
    while after is not None:
        after = await store.transact(lambda tx, after=after: search.sweep(tx, after, 2))

    assert numbers(await SearchView(store).page("harbour", limit=50)) == [0, 1]
    assert (await store.read("SELECT depth FROM search_heads"))[0][0] == 2
    for table in ("search_lines", "search_words"):
        assert (await store.read(f"SELECT COUNT(*) FROM {table}"))[0][0] == 3


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"])
async def test_what_was_said_at_any_time_is_found(store: Store, time: str):
    ids = Ids(SystemClock())
    bus = Bus(store, ids)
    await bus.start()
    said = entry("00000001", None, message={"role": "user", "content": "far"}, timestamp=time)
    importer = Importer(store, bus, ids, "main")
    file = pieces(written(HEADER, said), 4096)
    await importer.run(file, SessionKey("agent:main:main"), is_trial=False)

    await caught_up(store)

    assert numbers(await SearchView(store).page("far", limit=5)) == [0]


class Recording:
    """A store that keeps how many rows were read at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.sizes: list[int] = []

    async def read(self, sql: str, **params: object) -> Sequence[Row]:
        rows = await self._store.read(sql, **params)
        self.sizes.append(len(rows))
        return rows


async def test_a_start_with_nothing_to_add_looks_at_a_bounded_number_of_sessions_at_a_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    for number in range(3):
        await filled(store, f"agent:main:x{number}")
    monkeypatch.setattr(indexing, "BRANCHES", 2)
    recording = Recording(store)

    await Indexer(recording, SystemClock()).find_behind()  # pyright: ignore[reportArgumentType]

    twice = [2, 1, 0] * 2  # for the branches that go on, and for those that began
    assert recording.sizes == [*twice, 0, 0]


async def test_two_indexers_add_nothing_twice(store: Store):
    await filled(store, is_indexed=False)

    await asyncio.gather(caught_up(store), caught_up(store))

    assert (await store.read("SELECT COUNT(*) FROM search_lines"))[0][0] == len(SAID)


async def told(store: Store, *texts: str) -> None:
    """Bring in what was said, each thing a day after the other, and index it."""
    ids = Ids(SystemClock())
    bus = Bus(store, ids)
    await bus.start()
    lines = [
        entry(
            f"{number:08x}",
            f"{number - 1:08x}" if number else None,
            message={"role": "user", "content": text},
            timestamp=f"{2000 + number // 28}-01-{number % 28 + 1:02}T10:00:00.000Z",
        )
        for number, text in enumerate(texts)
    ]
    importer = Importer(store, bus, ids, "main")
    file = pieces(written(HEADER, *lines), 4096)
    await importer.run(file, SessionKey("agent:main:main"), is_trial=False)
    await caught_up(store)


async def test_the_best_match_comes_first_and_of_equals_the_newest(store: Store):
    await told(
        store,
        "harbour harbour",
        "one harbour",
        "two harbour",
        "a harbour among a great many other things that were said on that day",
    )

    assert numbers(await SearchView(store).page("harbour", limit=50)) == [0, 2, 1, 3]


async def test_the_best_of_thousands_of_matches_comes_first_though_it_is_the_oldest(store: Store):
    await told(store, "harbour harbour", *["the harbour of this day"] * 2500)
    found = await SearchView(store).page("harbour", limit=2)

    assert numbers(found) == [0, 2500]
    assert not any(hit.is_cut for hit in found)


async def test_what_others_own_keeps_no_match_from_being_found(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    """Though all that is looked at first is in no session any more."""
    monkeypatch.setattr(views_search, "LOOKED_AT", 1)
    await filled(store)
    await filled(store, "agent:main:other", start=15)
    gone = "UPDATE sessions SET transcript_id = 'tr_else' WHERE key = 'agent:main:other'"
    await store.transact(lambda tx: tx.run(gone))
    view = SearchView(store)

    assert numbers(await view.page("harbour", limit=1)) == [0]
    assert numbers(await view.page("harbour", limit=50)) == [0, 3, 1]


async def test_only_the_newest_matches_are_ranked_together_and_the_older_ones_follow(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(views_search, "RANKED", 2)
    await told(store, "harbour", "harbour here", "harbour", "harbour that is far", "harbour")
    view = SearchView(store)
    seen: list[int] = []
    after: str | None = None
    while hits := await view.page("harbour", after=after, limit=1):
        seen += numbers(hits)
        after = hits[-1].place

    assert seen == [4, 3, 2, 1, 0]
    assert numbers(await view.page("harbour", limit=50)) == seen
    assert all(hit.is_cut for hit in await view.page("harbour", limit=2))
    assert not any(hit.is_cut for hit in await view.page("here", limit=2))


SPOIL = "UPDATE entries SET kind = 'vision' WHERE depth IN (1, 8)"


async def test_an_entry_of_another_release_keeps_nothing_else_out_of_the_index(store: Store):
    await filled(store, is_indexed=False)
    await store.transact(lambda tx: tx.run(SPOIL))

    await caught_up(store)

    assert numbers(await SearchView(store).page("harbour", limit=50)) == [0, 3]
    assert (await store.read("SELECT depth FROM search_heads"))[0][0] == len(SAID)


async def test_a_page_is_full_though_an_entry_cannot_be_read(store: Store):
    await filled(store)
    await store.transact(lambda tx: tx.run(SPOIL))

    assert numbers(await SearchView(store).page("harbour", limit=2)) == [0, 3]


async def test_a_page_holds_no_more_than_fits_and_the_next_goes_on_after_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(views_search, "PAGE_BYTES", 2000)
    await told(store, *(f"harbour {'x' * 1200}" for _ in range(5)))
    view = SearchView(store)
    pages: list[list[int]] = []
    after: str | None = None
    while hits := await view.page("harbour", after=after, limit=50):
        pages.append(numbers(hits))
        after = hits[-1].place

    assert pages == [[4, 3], [2, 1], [0]]
