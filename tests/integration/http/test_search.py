"""What was said is found over HTTP, by those who may read it."""

import asyncio

import httpx2

from tests.integration.http.serving import PATIENCE_S, house
from tests.integration.http.test_transfers import put


async def found(client: httpx2.AsyncClient, count: int, **query: str) -> list[tuple[str, str, str]]:
    """Search until so much was found: the index follows behind the turns."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await client.get("/api/search", params=query)
            items = answer.json()["items"]
            if len(items) >= count:
                return [
                    (one["session_key"], one["role"], "".join(p["text"] for p in one["snippet"]))
                    for one in items
                ]


async def test_what_people_and_agents_said_is_found_in_what_one_may_see():
    async with house(lambda _: "a lighthouse, of course") as home:
        mine = await home.token("send", name="mine")
        async with home.client(home.operator) as operator, home.client(mine) as owner:
            say = {"text": "what shines at sea?"}
            await operator.post("/api/sessions/main/messages?wait=10", json=say)
            await owner.post("/api/sessions/api:a/messages?wait=10", json=say)
            await put(home, session="old")
            everything = await found(operator, 2, q="light*")
            own = await found(owner, 1, q="lighthouse")
            story = await found(operator, 1, q='"old story"', session="old", role="user")
            none = await operator.get("/api/search", params={"q": "light*", "role": "tool"})
            page = (await operator.get("/api/search", params={"q": "sea", "limit": "1"})).json()
            rest = await operator.get(
                "/api/search", params={"q": "sea", "limit": "1", "after": page["next"]}
            )

    said = "a lighthouse, of course"
    assert everything == [
        ("agent:main:api:a", "assistant", said),
        ("agent:main:main", "assistant", said),
    ]
    assert own == [("agent:main:api:a", "assistant", said)]
    assert story == [("agent:main:old", "user", "an old story")]
    assert none.json() == {"items": [], "next": None, "truncated": False}
    assert page["items"][0]["snippet"] == [
        {"text": "what shines at ", "is_match": False},
        {"text": "sea", "is_match": True},
        {"text": "?", "is_match": False},
    ]
    assert rest.json()["items"][0]["session_key"] == "agent:main:main"
    assert rest.json()["next"] is None


async def test_a_query_that_cannot_be_read_is_told_the_rule_it_breaks():
    queries = {
        '"open': "q: a quotation mark is not closed",
        "*": "q: a star needs 2 letters or more before it",
        "()": "q: holds no word to look for",
        "NEAR(": None,
        "a AND": None,
        "words:x": None,
        "'": "q: holds no word to look for",
    }
    async with house() as home, home.client(home.operator) as client:
        for query, rule in queries.items():
            answer = await client.get("/api/search", params={"q": query})

            assert answer.json().get("detail") == rule, query
        late = await client.get("/api/search", params={"q": "x", "after": "y"})
        naive = await client.get("/api/search", params={"q": "x", "since": "2026-01-01T00:00:00"})

    assert (late.status_code, naive.status_code) == (422, 422)
