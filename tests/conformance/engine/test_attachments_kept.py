"""The bytes of an attachment stay as long as anything names them, and no longer."""

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.engine.test_retention import count, janitor
from tests.pictures import attachment, png
from wakeful.operations.janitor import DAY_MS
from wakeful.runtime import Runtime
from wakeful.testing.kit import Scripted, in_memory
from wakeful.vocabulary.clock import ManualClock


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
