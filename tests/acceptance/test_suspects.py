"""A turn that was open at two unclean stops goes on beside all others and is charged alone."""

from collections.abc import Awaitable, Callable

from tests.acceptance.scenes import assert_kept
from tests.proofs.client import Client
from tests.proofs.process import Gone, Place, RigProcess, running
from tests.proofs.trial import judged
from wakeful.testing.checker.history import read_sqlite
from wakeful.vocabulary.stimulus import State

INNOCENTS = ("b", "c", "d")

Scene = Callable[[RigProcess], Awaitable[None]]


async def killed_in(place: Place, scene: Scene) -> None:
    """Live up to a moment and die in it."""
    try:
        async with running(place) as rig:
            await scene(rig)
            rig.kill()
            await rig.rest()
    except Gone:
        pass


async def finished(rig: RigProcess, stimulus_id: str) -> None:
    """Wait for the end of the turn that a stimulus opened."""
    count = 0
    while True:
        count += 1
        *_, last = await rig.ask("seen", kind="turn.finished", count=count)
        if last["stimuli"] == [stimulus_id]:
            return


async def test_a_suspect_is_charged_alone_and_nobody_waits_for_it(place: Place) -> None:
    client = Client(place)

    async def both_begin(rig: RigProcess) -> None:
        await client.say(rig, "suspect", "gate=never+say")
        await client.say(rig, "a", "look.gate=a")
        await both_go_on(rig)

    async def both_go_on(rig: RigProcess) -> None:
        await rig.ask("reached", gate="never")
        await rig.ask("reached", gate="a")

    async def both_are_suspects(rig: RigProcess) -> None:
        await both_go_on(rig)
        await rig.ask("open_later", gate="a")

    async def one_goes_on(rig: RigProcess) -> None:
        await rig.ask("reached", gate="never")
        for name in INNOCENTS:
            await client.say(rig, name, f"look.gate={name}")
            await rig.ask("reached", gate=name)
        another = await client.say(rig, "another")
        assert another is not None
        await finished(rig, another["stimulus_id"])

    for scene in (both_begin, both_are_suspects, one_goes_on):
        await killed_in(place, scene)
    async with running(place) as rig:
        for name in INNOCENTS:
            await rig.ask("open", gate=name)
        await rig.rest()
        assert await rig.stop() == 0

    found = read_sqlite(place.home / "wakeful.db").stimuli.values()
    states = {one.session_key: (one.state, one.state_reason) for one in found}
    report = await judged(place)
    assert states.pop("agent:main:suspect") == (State.FAILED, "poisoned")
    assert set(states.values()) == {(State.DONE, None)}
    assert report.crashes == 3
    assert_kept(report)
