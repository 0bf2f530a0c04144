"""The bytes of an attachment stay as long as anything names them, and no longer."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.test_retention import count, janitor
from tests.pictures import attachment, png
from wakeful.operations.janitor import DAY_MS
from wakeful.runtime import Runtime
from wakeful.store.database import Row, Store
from wakeful.testing.kit import Scripted, in_memory
from wakeful.views import attachments as attachments_view
from wakeful.views.attachments import AttachmentView
from wakeful.views.pages import fitting
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput, NotFound


async def swept(runtime: Runtime, clock: ManualClock, days: int) -> int:
    """Let time pass and sweep; return how many attachments are left."""
    clock.jump_to(clock.now() + days * DAY_MS)
    sweeper = await janitor(runtime, clock)
    await sweeper.sweep()
    await sweeper.sweep()
    return await count(runtime, "attachments")


async def test_an_attachment_outlives_its_stimulus_with_its_entry(settings_for: SettingsFor):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        await runtime.wait(await runtime.send("look", attachments=[attachment(png())]))
        left = await swept(runtime, clock, 91)

        assert await count(runtime, "stimuli") == 0
        assert left == 1


async def test_a_reset_keeps_it_and_a_deleted_session_frees_it(settings_for: SettingsFor):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        await runtime.wait(await runtime.send("look", attachments=[attachment(png())]))
        await runtime.reset()
        kept = await swept(runtime, clock, 91)
        await runtime.delete("main")
        freed = await swept(runtime, clock, 2)

    assert (kept, freed) == (1, 0)


async def test_a_fork_keeps_what_its_path_names_when_the_first_session_is_deleted(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        await runtime.wait(await runtime.send("look", attachments=[attachment(png())]))
        await runtime.fork("main", to="web:copy")
        await runtime.wait(await runtime.send("alone", attachments=[attachment(png(shade=9))]))
        await runtime.delete("main")
        left = await swept(runtime, clock, 91)
        await runtime.delete("web:copy")
        none = await swept(runtime, clock, 2)

    assert (left, none) == (1, 0)


def _of_one(sizes: Iterable[int]) -> int:
    """Let no more than one entry fit on a page."""
    return fitting(sizes, 1)


class CountingStore:
    """A store whose reads are counted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        self.reads += 1
        return await self._store.read(sql, **params)


async def test_what_is_attached_is_listed_by_page_over_forks_and_found_by_few_looks(
    settings_for: SettingsFor, monkeypatch: pytest.MonkeyPatch
):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        for shade in range(0, 12, 2):
            pair = [attachment(png(shade=shade)), attachment(png(shade=shade + 1))]
            await runtime.wait(await runtime.send("look", attachments=pair))
            if shade == 6:
                await runtime.fork(at=(await runtime.entries())[-1].id)
        counting = CountingStore(runtime.store)
        view = AttachmentView(cast("Store", cast("object", counting)))
        left = (await runtime.entries())[3].id
        whole = await view.page("agent:main:main", limit=100)
        pages: list[list[str]] = []
        after: str | None = ""
        while after is not None:
            page = await view.page("agent:main:main", after=after or None, limit=5)
            pages.append([one.kept.hash for one in page.items])
            after = page.next
        oldest = whole.items[-1]
        await runtime.fork(at=left)
        await runtime.reset()
        counting.reads = 0
        found = await view.find("agent:main:main", oldest.kept.id)
        looks = counting.reads
        with pytest.raises(NotFound):
            await view.find("agent:main:main", oldest.kept.id, is_current=True)

        assert [len(page) for page in pages] == [5, 5, 2]
        assert [one for page in pages for one in page] == [one.kept.hash for one in whole.items]
        assert len({one.kept.hash for one in whole.items}) == 12
        assert found.kept == oldest.kept
        assert looks <= 4
        with pytest.raises(InvalidInput, match="not a cursor"):
            await view.page("agent:main:main", after="en_0.1", limit=5)

        monkeypatch.setattr(attachments_view, "fitting", _of_one)
        await runtime.fork(at=whole.items[0].entry_id)
        narrow = await view.page("agent:main:main", limit=5)
        assert (len(narrow.items), narrow.next is None) == (2, False)


async def test_an_attachment_is_found_in_a_fork_and_not_in_what_its_other_session_said_since(
    settings_for: SettingsFor,
):
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for()) as runtime:
        await runtime.wait(await runtime.send("look", attachments=[attachment(png())]))
        await runtime.fork("main", to="web:copy")
        await runtime.wait(await runtime.send("alone", attachments=[attachment(png(shade=9))]))
        view = runtime.services.views.attachments
        both = (await view.page("agent:main:main", limit=9)).items
        later, first = [one.kept for one in both]

        for is_current in (False, True):
            copy = await view.find("agent:main:web:copy", first.id, is_current=is_current)
            assert copy.kept == first
            with pytest.raises(NotFound):
                await view.find("agent:main:web:copy", later.id, is_current=is_current)
