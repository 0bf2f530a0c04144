"""What the acceptance tests let the process do while they kill it."""

import asyncio

from tests.proofs.client import OUT, Client, Load, gather
from tests.proofs.process import Gone, Place, RigProcess, running
from wakeful.testing.checker.check import Report


async def everything(rig: RigProcess, client: Client) -> None:
    """Pass every failpoint several times: replies, all kinds of tools, deliveries, steers."""
    await client.say(rig, "a", "look&look&act&put&tell&look", route=OUT)
    await gather(
        client.say(rig, "a", "put,look", route=OUT),
        client.say(rig, "b", "act,put,tell", route=OUT),
        client.say(rig, "c", "", route=OUT),
        client.say(rig, "d", "look,act", mode="queue"),
        client.say(rig, "d", "slow+act", mode="queue"),
        client.say(rig, "a", "", priority=0, route=OUT),
    )
    await rig.rest()


async def live_and_die(
    place: Place,
    client: Client,
    *,
    fail: str = "",
    options: tuple[str, ...] = (),
    wrap: tuple[str, ...] = (),
    patience_s: float | None = None,
) -> bool:
    """Play everything with a failure armed; return whether the process died, or hung, of it."""
    env = {"WAKEFUL_FAIL": fail}
    try:
        async with running(place, env=env, options=options, wrap=wrap) as rig:
            async with asyncio.timeout(patience_s):
                await everything(rig, client)
            return await rig.stop() != 0
    except (Gone, TimeoutError):
        return True


async def killed_under_load(place: Place, client: Client, load: Load, *, after: int) -> None:
    """Live under load until so many messages were accepted, then die."""
    try:
        async with running(place) as rig, asyncio.TaskGroup() as group:
            group.create_task(client.come_back(rig))
            group.create_task(load.run(rig, 400))
            await client.has_sent(after)
            rig.kill()
    except Gone:
        pass


def assert_kept(report: Report) -> None:
    assert not report.caught, report.table()
