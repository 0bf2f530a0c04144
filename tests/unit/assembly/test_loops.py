"""Loops of earlier settings end with the last who need them."""

import asyncio

from wakeful.assembly.loops import LoopTasks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_loop_is_retired_when_what_is_under_way_is_over():
    begun, over, tidied = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def lane() -> None:
        begun.set()
        await over.wait()

    async def tidy() -> None:
        tidied.set()

    async with asyncio.TaskGroup() as group:
        loops = LoopTasks(group)
        loops.start("old", for_ever())
        under_way = frozenset({group.create_task(lane())})
        (old,) = [task for task in asyncio.all_tasks() if task.get_name() == "old"]
        loops.retire("old", under_way)
        loops.after(under_way, tidy)
        await begun.wait()
        before = (old.done(), tidied.is_set())
        over.set()
        await tidied.wait()
        await asyncio.wait({old})
        loops.cancel()

    assert before == (False, False)
    assert old.cancelled()


async def test_everything_ends_at_once_when_the_runtime_does():
    async with asyncio.TaskGroup() as group:
        loops = LoopTasks(group)
        loops.start("kept", for_ever())
        loops.start("old", for_ever())
        lane = group.create_task(for_ever())
        loops.retire("old", frozenset({lane}))
        loops.cancel()
        lane.cancel()


async def test_what_cannot_be_tidied_up_harms_nobody():
    async def broken() -> None:
        raise RuntimeError("no")

    async with asyncio.TaskGroup() as group:
        LoopTasks(group).after(frozenset(), broken)
