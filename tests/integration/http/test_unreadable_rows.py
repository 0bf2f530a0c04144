"""What this release cannot read is left out of lists; it is no error of the whole list."""

from tests.integration.http.serving import House, house

SESSIONS = ("agent:main:main", "agent:main:api:one", "agent:main:api:two", "agent:main:api:three")


async def walked(home: House, path: str, field: str) -> list[str]:
    """Return what a list holds, page by page."""
    seen: list[str] = []
    cursor: str | None = ""
    async with home.client(home.operator) as client:
        while cursor is not None:
            after = f"&after={cursor}" if cursor else ""
            page = (await client.get(f"{path}?limit=2{after}")).raise_for_status().json()
            seen += [item[field] for item in page["items"]]
            cursor = page["next"]
    return seen


async def filled(home: House) -> list[str]:
    """Say something in each session; return the ids of the stimuli."""
    receipts = [await home.runtime.send("hello", session=key, dedup_key=key) for key in SESSIONS]
    for receipt in receipts:
        await home.runtime.wait(receipt)
    return [receipt.stimulus_id for receipt in receipts]


async def test_the_list_of_sessions_shows_all_but_those_that_cannot_be_read():
    async with house() as home:
        await filled(home)
        await home.runtime.store.transact(
            lambda tx: tx.run(
                "UPDATE sessions SET queue = '{\"mode\":\"telepathy\"}' WHERE key LIKE '%:t%'"
            )
        )
        seen = await walked(home, "/api/sessions", "key")
        async with home.client(home.operator) as client:
            alone = await client.get("/api/sessions/agent:main:api:two")
            stopped = await client.post("/api/sessions/agent:main:api:two/stop")
            deleted = await client.delete("/api/sessions/agent:main:api:two")
        async with home.client(await home.token("send")) as stranger:
            hidden = await stranger.get("/api/sessions/agent:main:api:three")

    assert set(seen) == {"agent:main:api:one", "agent:main:main", "agent:main:activity"}
    assert (alone.status_code, alone.json()["code"]) == (500, "unreadable")
    for word in ("sessions.queue of 'agent:main:api:two'", "telepathy", "delete", "wakeful doctor"):
        assert word in alone.json()["detail"]
    assert hidden.status_code == 404
    assert (stopped.status_code, deleted.status_code) == (200, 200)


async def test_the_list_of_stimuli_shows_all_but_those_that_cannot_be_read():
    async with house() as home:
        ids = await filled(home)
        await home.runtime.store.transact(
            lambda tx: tx.run(
                "UPDATE stimuli SET kind = 'elsewhere' WHERE id IN :ids", ids=ids[1:3]
            )
        )
        seen = await walked(home, "/api/stimuli", "id")

    assert seen == [ids[3], ids[0]]
