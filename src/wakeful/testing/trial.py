"""A trial: one or more lives of the process under test, then rest, then the checker."""

from collections.abc import Collection

from wakeful.testing.checker.check import Report, check_files
from wakeful.testing.client import Client
from wakeful.testing.process import Gone, Place, RigProcess, running

LIVES_UNTIL_REST = 8  # a crash loop ends before: a poisonous turn is given up after three


async def come_to_rest(place: Place, client: Client, env: dict[str, str] | None = None) -> None:
    """Start the process, as often as it takes, until everything that was asked has its end."""
    for _ in range(LIVES_UNTIL_REST):
        try:
            async with running(place, env=env) as rig:
                await rest(rig, client)
                code = await rig.stop()
                assert code == 0, f"a graceful stop ended with {code}"
                return
        except Gone:
            continue
    raise AssertionError(f"the process was still dying after {LIVES_UNTIL_REST} starts")


async def rest(rig: RigProcess, client: Client) -> None:
    """Send again what was never answered, and wait until nothing is left to do."""
    await client.repeat_unknown(rig)
    await rig.rest()
    if rig.is_gone:
        raise Gone


def judged(place: Place, *, must: Collection[str] = ()) -> Report:
    """Check what everybody wrote down against the database at rest."""
    return check_files(place.ledgers, place.home / "wakeful.db", must=must)
