"""A trial: one or more lives of the process under test, then rest, then the checker."""

from collections.abc import Collection, Mapping

from tests.proofs.client import Client
from tests.proofs.process import STILL_S, Gone, Place, running
from wakeful.testing.checker.check import Report, check_place

LIVES_UNTIL_REST = 8  # a crash loop ends before: a poisonous turn is given up after three


async def come_to_rest(
    place: Place,
    client: Client,
    *,
    env: Mapping[str, str] | None = None,
    patience_s: float = STILL_S,
    deaths: int = 0,
) -> None:
    """Start the process, as often as it takes, until everything that was asked has its end.

    `deaths` is how often what was sent kills the process on purpose.

    What does not come to rest in time is left to the checker, which says what is still open.
    """
    lives = LIVES_UNTIL_REST + deaths
    for _ in range(lives):
        try:
            async with running(place, env=env) as rig:
                await client.come_back(rig)
                if client.jobs:
                    await rig.ask("pause_jobs")
                await rig.rest(patience_s)
                code = await rig.stop()
                assert code == 0, f"a graceful stop ended with {code}"
                return
        except TimeoutError:
            return
        except Gone:
            continue
    raise AssertionError(f"the process was still dying after {lives} starts")


async def judged(place: Place, *, must: Collection[str] = ()) -> Report:
    """Check what everybody wrote down against the database."""
    return await check_place(place.ledgers, place.address, must=must)
