"""The forecast over HTTP: whoever may read may look ahead, so far and no further."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from tests.integration.http.serving import house
from wakeful.assembly.forecasting import MOST_AT_ONCE
from wakeful.vocabulary.heartbeat import HeartbeatRules

HEART = HeartbeatRules(every="30m")


async def test_whoever_may_read_looks_ahead():
    async with house(heartbeat=HEART) as home, home.client(await home.token("read")) as client:
        found = (await client.get("/api/forecast?days=1")).json()

    assert list(found) == ["from", "until", "zone", "assumptions", "rows", "timeline", "next"]
    begin, end = (datetime.fromisoformat(found[name]) for name in ("from", "until"))
    assert end - begin == timedelta(days=1)
    (row,) = found["rows"]
    assert (row["agent_id"], row["source"], row["turns"]) == ("main", "heartbeat", 0)
    assert row["suppressed"] == {"nothing-to-do": row["fires"]}
    assert row["fires"] in (47, 48)
    fire, put_off = found["timeline"][:2]
    assert (fire["what"], put_off["what"], put_off["reason"]) == (
        "fire",
        "suppressed",
        "nothing-to-do",
    )
    assert found["next"] is None


async def test_a_long_timeline_comes_in_pages():
    async with house(heartbeat=HEART) as home, home.client(home.operator) as client:
        whole = (await client.get("/api/forecast?days=1")).json()["timeline"]
        pages: list[list[Any]] = []
        after = ""
        while True:
            page = (await client.get(f"/api/forecast?days=1&limit=20{after}")).json()
            pages.append(page["timeline"])
            if page["next"] is None:
                break
            after = f"&after={page['next']}"

    assert [len(page) for page in pages[:-1]] == [20] * (len(pages) - 1)
    joined = [line for page in pages for line in page]
    # The end moves while it is looked at: a last heartbeat may have come into view.
    assert joined[: len(whole)] == whole


async def test_what_cannot_be_foretold_is_refused_with_its_field():
    async with house() as home, home.client(home.operator) as client:
        refused = [
            (await client.get(f"/api/forecast?{query}")).json()
            for query in ("days=0", "days=32", "days=x", "limit=0", "after=x")
        ]
        missing = await client.get("/api/forecast?agent=nobody")

    assert [one["field"] for one in refused] == ["days", "days", "days", "limit", "after"]
    assert missing.status_code == 404


async def test_without_the_right_to_read_nobody_looks_ahead():
    async with house() as home:
        async with home.client(await home.token("send")) as client:
            sender = await client.get("/api/forecast")
        async with home.client() as client:
            stranger = await client.get("/api/forecast")

    assert (sender.status_code, stranger.status_code) == (403, 401)


async def test_one_token_that_asks_on_and_on_is_told_to_wait():
    """T10: the few that wait are answered, the others are told when to come again."""
    async with house(heartbeat=HEART) as home, home.client(await home.token("read")) as client:
        asked = [client.get("/api/forecast?days=2") for _ in range(50)]
        answers = await asyncio.gather(*asked)
        after = await client.get("/api/forecast?days=2")

    refused = [one for one in answers if one.status_code == 429]
    assert sorted({one.status_code for one in answers}) == [200, 429]
    assert len(refused) >= 50 - 2 * MOST_AT_ONCE  # some are answered before the last has arrived
    assert {one.headers["retry-after"] for one in refused} == {"60"}
    assert refused[0].json()["code"] == "too-many-requests"
    assert after.status_code == 200
