"""What people should know once: written with its cause, listed, forgotten in the end."""

from tests.integration.http.serving import house
from wakeful.notices import notices
from wakeful.notices.notices import Notices
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, in_memory

DAY_MS = 86_400_000


def writer(runtime: Runtime) -> Notices:
    return Notices(runtime.services.views.bus, runtime.services.ids)


async def test_notices_are_listed_newest_first_page_by_page_and_by_agent():
    async with house() as home, home.client(home.operator) as client:
        tell = writer(home.runtime)

        def all_three(tx: Tx) -> None:
            tell.add(tx, "storm", "loud", "1", "Loud is loud.", "main")
            tell.add(tx, "storm", "loud", "2", "Loud is loud again.", "other")
            tell.add(tx, "price", "m", "", "Nobody knows the price of m.")

        await home.runtime.store.transact(all_three)
        first = (await client.get("/api/notices", params={"limit": 2})).json()
        rest = (await client.get("/api/notices", params={"after": first["next"]})).json()
        of_main = (await client.get("/api/notices", params={"agent": "main"})).json()
        async with home.client(await home.token("send", name="weak")) as weak:
            refused = await weak.get("/api/notices")

    assert [one["kind"] for one in first["items"]] == ["price", "storm"]
    assert [one["text"] for one in rest["items"]] == ["Loud is loud."]
    assert rest["next"] is None
    assert [one["episode"] for one in of_main["items"]] == ["1"]
    assert refused.status_code == 403


async def test_the_same_episode_is_told_once():
    async with in_memory() as runtime:
        tell = writer(runtime)
        said = [
            await runtime.store.transact(lambda tx: tell.add(tx, "loop", "st_1", "", "Cut."))
            for _ in range(3)
        ]
        events = await runtime.store.read("SELECT data FROM events WHERE kind = 'notice.added'")

    assert said == [True, False, False]
    assert len(events) == 1


async def test_what_may_be_told_once_a_day_is_told_again_a_day_later():
    clock = ManualClock()
    async with in_memory(clock=clock) as runtime:
        tell = writer(runtime)

        async def told() -> bool:
            return await runtime.store.transact(
                lambda tx: tell.add_once_in(tx, DAY_MS, "budget", "main", "Enough.", "main")
            )

        said = [await told(), await told()]
        clock.advance(86_399)
        said.append(await told())
        clock.advance(1)
        said += [await told(), await told()]

    assert said == [True, False, False, True, False]


async def test_old_notices_are_forgotten():
    async with in_memory() as runtime:
        tell = writer(runtime)
        await runtime.store.transact(lambda tx: tell.add(tx, "loop", "st_1", "", "Cut."))
        now = runtime.services.views.clock.now()
        kept = await runtime.store.transact(lambda tx: notices.prune(tx, now - 1000, 10))
        before = await runtime.store.read("SELECT id FROM notices")
        await runtime.store.transact(lambda tx: notices.prune(tx, now + 1000, 10))
        after = await runtime.store.read("SELECT id FROM notices")

    assert kept is None
    assert (len(before), len(after)) == (1, 0)
