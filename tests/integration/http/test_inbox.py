"""The inbox over HTTP: who may post as whom, where it lands, and what is refused."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import msgspec
import pytest

from tests.integration.http.serving import House, following, house, take
from tests.patience import patience
from wakeful.models.scripted import Scripted, call, says
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.turns.turns import Turn
from wakeful.vocabulary.clock import SystemClock
from wakeful.vocabulary.inbox import InboxRules, InboxSource, PriorityName
from wakeful.vocabulary.stimulus import Receipt, StormOverrides

ACTIVITY = "agent:main:activity"
FLOOD = 600
THREADS = 8


def with_sources(max_bytes: int = 65_536, depth: int = 10_000, **sources: InboxSource) -> Settings:
    rules = InboxRules(max_bytes=max_bytes, depth=depth, sources=sources)
    return Settings(drain_s=1, inbox=rules)


async def post(home: House, token: str, headers: dict[str, str] | None = None, **body: Any):
    async with home.client(token) as client:
        return await client.post("/api/inbox", json=body, headers=headers or {})


async def ended(home: House, answer: httpx2.Response) -> Turn | None:
    """Return the turn that took an item, once it has ended."""
    return await home.runtime.wait(msgspec.convert(answer.json(), Receipt))


async def test_a_source_posts_with_its_token_and_gets_a_receipt_before_any_turn():
    async with house() as home:
        backup = await home.token("inbox:backup")
        held = await post(home, backup, text="all well")
        urgent = await post(home, backup, text="disk full", priority="NOW")
        turn = await ended(home, urgent)
        async with home.client(home.operator) as client:
            listed = (await client.get("/api/inbox")).json()
            one = await client.get(f"/api/inbox/{held.json()['stimulus_id']}")

    assert (held.status_code, held.json()["outcome"]) == (202, "held")
    assert (urgent.status_code, urgent.json()["outcome"]) == (202, "started")
    assert urgent.json()["session_key"] == ACTIVITY
    assert turn is not None
    urgently, first = listed["items"]
    assert (urgently["text"], urgently["delivered_turn_id"]) == ("disk full", turn.id)
    assert urgently["delivered_at"] is not None
    assert first == one.json()
    assert (first["source"], first["priority"], first["state"]) == ("backup", "next", "merged")
    assert listed["next"] is None


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"text": "x", "source": "other"}, 403, None),
        ({"text": "x", "session": "main"}, 403, None),
        ({"text": "x", "session": "system:activity"}, 403, None),
        ({"text": "x", "session": "agent:other:api:backup"}, 403, None),
        ({"text": "x", "agent": "other"}, 403, None),
        ({"text": "x" * 65_537}, 413, None),
        ({"text": "ü" * 32_769}, 413, None),
        ({"text": " "}, 422, "text"),
        ({}, 422, "body"),
        ({"text": "x", "priority": "soon"}, 422, "priority"),
        ({"text": "x", "expires_at": "2020-01-01T00:00:00Z"}, 422, "expires_at"),
        ({"text": "x", "expires_at": "tomorrow"}, 422, "expires_at"),
        ({"text": "x", "session": "No Session"}, 422, "session"),
        ({"text": "x", "dedup_key": ""}, 422, "dedup_key"),
        ({"text": "x", "mode": "queue"}, 422, "body"),
    ],
    ids=str,
)
async def test_what_a_source_may_not_do_is_refused_and_leaves_nothing(
    body: dict[str, Any], status: int, field: str | None
):
    """T12: a source does not choose the session."""
    async with house() as home:
        answer = await post(home, await home.token("inbox:backup"), **body)
        items = await home.runtime.inbox()

    assert answer.status_code == status, answer.text
    assert answer.json().get("field") == field
    assert items == []


async def test_not_even_the_operator_reaches_a_session_without_a_prefix():
    async with house() as home:
        main = await post(home, home.operator, text="x", session="main")
        agent = await post(home, home.operator, text="x", agent="nobody")
        named = await post(home, home.operator, text="/stop", source="backup", agent="main")
        items = await home.runtime.inbox()

    assert main.status_code == 403
    assert (agent.status_code, agent.json()["field"]) == (422, "agent")
    assert (named.status_code, named.json()["outcome"]) == (202, "held")
    assert [(item.text, item.source, item.trust) for item in items] == [
        ("/stop", "backup", "external")
    ]


async def test_a_source_with_a_prefix_chooses_sessions_below_it_alone():
    settings = with_sources(backup=InboxSource(session_prefix="api:backup"))
    async with house(settings=settings) as home:
        backup = await home.token("inbox:backup")
        below = await post(home, backup, text="x", session="api:backup:daily", priority="now")
        beside = await post(home, backup, text="x", session="api:backups")
        turn = await ended(home, below)

    assert below.json()["session_key"] == "agent:main:api:backup:daily"
    assert turn is not None
    assert turn.session_key == "agent:main:api:backup:daily"
    assert beside.status_code == 403


async def test_a_token_of_several_sources_says_which():
    async with house() as home:
        both = await home.token("inbox:a", "inbox:b", name="both")
        unsaid = await post(home, both, text="x")
        said = await post(home, both, text="x", source="b")

    assert (unsaid.status_code, unsaid.json()["field"]) == (422, "source")
    assert said.status_code == 202


async def test_a_source_is_never_more_urgent_than_it_may_be():
    settings = with_sources(backup=InboxSource(priority_cap=PriorityName.LATER))
    async with house(settings=settings) as home:
        answer = await post(home, await home.token("inbox:backup"), text="x", priority="now")
        (item,) = await home.runtime.inbox()

    assert answer.json()["outcome"] == "held"
    assert item.priority.name == "LATER"


async def test_a_request_that_is_repeated_with_its_key_gets_its_first_answer():
    async with house() as home:
        backup = await home.token("inbox:backup")
        key = {"Idempotency-Key": "k"}
        first = await post(home, backup, key, text="x")
        again = await post(home, backup, key, text="x")
        other = await post(home, backup, key, text="y")
        both = await post(home, backup, key, text="x", dedup_key="k")
        deduped = await post(home, backup, text="x", dedup_key="k")
        repeated = await post(home, backup, text="x", dedup_key="k")
        items = await home.runtime.inbox()

    assert (again.status_code, again.json()) == (202, first.json())
    assert other.status_code == 409
    assert (both.status_code, both.json()["field"]) == (422, "dedup_key")
    assert repeated.json()["duplicate_of"] == deduped.json()["stimulus_id"]
    assert len(items) == 2


async def test_too_many_posts_are_told_when_to_come_again():
    settings = with_sources(
        depth=4, backup=InboxSource(depth=2), alarm=InboxSource(per_minute=3, depth=1)
    )
    clock = ManualClock()
    async with house(settings=settings, clock=clock) as home:
        backup, alarm = await home.token("inbox:backup"), await home.token("inbox:alarm")
        deep = [(await post(home, backup, text=f"{n}")).status_code for n in range(3)]
        often = [await post(home, alarm, text=f"{n}") for n in range(5)]
        clock.advance(61)
        full = await post(home, alarm, text="later")

    assert deep == [202, 202, 429]
    assert [one.status_code for one in often] == [202, 429, 429, 429, 429]
    assert "Retry-After" in often[1].headers
    assert "in a minute" in often[4].json()["detail"]
    assert int(often[4].headers["Retry-After"]) <= 60
    assert (full.status_code, full.json()["code"]) == (429, "too-many-requests")


async def test_the_storm_of_one_source_is_its_own():
    settings = with_sources(backup=InboxSource(storm=StormOverrides(turns=1)))
    async with house(settings=settings) as home:
        backup, alarm = await home.token("inbox:backup"), await home.token("inbox:alarm")
        loud = [(await post(home, backup, text="x", priority="now")).json() for _ in range(2)]
        other = [(await post(home, alarm, text="x", priority="now")).json() for _ in range(8)]

    assert (loud[1]["outcome"], loud[1]["reason"]) == ("held", "storm")
    assert "held" not in {one["outcome"] for one in other}


async def test_only_the_operator_and_readers_look_at_the_inbox():
    async with house() as home:
        backup, reader, sender = [
            await home.token(scope) for scope in ("inbox:backup", "read", "send")
        ]
        statuses: dict[str, int] = {}
        for name, token in {"backup": backup, "reader": reader, "sender": sender}.items():
            async with home.client(token) as client:
                statuses[name] = (await client.get("/api/inbox")).status_code
                posted = await client.post("/api/inbox", json={"text": "x"})
                statuses[f"{name} posts"] = posted.status_code

    assert statuses == {
        "backup": 403,
        "backup posts": 202,
        "reader": 200,
        "reader posts": 403,
        "sender": 403,
        "sender posts": 403,
    }


async def test_a_source_throws_away_its_own_and_nobody_elses():
    model = Scripted(lambda _: "read")
    async with house(model) as home:
        backup, other = await home.token("inbox:backup"), await home.token("inbox:other")
        unwanted = (await post(home, backup, text="spam")).json()["stimulus_id"]
        urgent = await post(home, backup, text="fire", priority="now")
        read = urgent.json()["stimulus_id"]
        async with home.client(other) as client:
            foreign = await client.post(f"/api/inbox/{unwanted}/dismiss")
            unknown = await client.post("/api/inbox/st_nothing/dismiss")
        await ended(home, urgent)
        message = await home.runtime.send("hello")
        async with home.client(home.operator) as client:
            late = await client.post(f"/api/inbox/{read}/dismiss")
            no_item = await client.post(f"/api/inbox/{message.stimulus_id}/dismiss")
            kept = (await post(home, backup, text="later", priority="later")).json()
            gone = await client.post(f"/api/inbox/{kept['stimulus_id']}/dismiss")

    assert (foreign.status_code, unknown.status_code, no_item.status_code) == (404, 404, 404)
    assert (late.status_code, late.json()["code"]) == (409, "too-late")
    assert gone.status_code == 200
    assert (gone.json()["state"], gone.json()["state_reason"]) == ("cancelled", "dismissed")


async def test_the_list_is_paged_and_narrowed():
    async with house() as home:
        a, b = await home.token("inbox:a"), await home.token("inbox:b")
        soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        for n in range(3):
            await post(home, a, text=f"a{n}", dedup_key=f"k{n}", expires_at=soon)
        await post(home, b, text="b", priority="later")
        async with home.client(home.operator) as client:

            async def texts(query: str) -> list[str]:
                answer = await client.get(f"/api/inbox?{query}")
                return [item["text"] for item in answer.json()["items"]]

            first = (await client.get("/api/inbox?limit=2")).json()
            second = await texts(f"limit=2&after={first['next']}")
            found = {
                query: await texts(query)
                for query in ("source=b", "floor=next", "state=held", "state=merged", "agent=main")
            }
            bad = await client.get("/api/inbox?floor=soon")

    assert [item["text"] for item in first["items"]] == ["b", "a2"]
    assert second == ["a1", "a0"]
    assert first["items"][1]["dedup_key"] == "k2"
    assert first["items"][1]["expires_at"] is not None
    assert found["source=b"] == ["b"]
    assert found["floor=next"] == ["a2", "a1", "a0"]
    assert len(found["state=held"]) == len(found["agent=main"]) == 4
    assert found["state=merged"] == []
    assert (bad.status_code, bad.json()["field"]) == (422, "floor")


async def test_the_agent_reads_its_inbox_over_http_and_the_item_says_so():
    model = Scripted([says("", call("check_inbox")), "I have read it"])
    async with house(model) as home:
        await post(home, await home.token("inbox:backup"), text="all well")
        async with home.client(home.operator) as client:
            sent = await client.post(
                "/api/sessions/main/messages?wait=10", json={"text": "anything new?"}
            )
            (item,) = (await client.get("/api/inbox?state=merged")).json()["items"]

    assert sent.json()["turn"]["reply"] == "I have read it"
    assert item["delivered_turn_id"] == sent.json()["turn"]["id"]


async def test_a_flood_over_http_is_answered_whole_and_delays_no_other_source():
    """T11: 429 says when to come again; another source's `now` starts within a second."""
    settings = with_sources(loud=InboxSource(depth=100))
    async with house(settings=settings) as home:
        loud, alarm = await home.token("inbox:loud"), await home.token("inbox:alarm")
        statuses: Counter[int] = Counter()
        numbers = iter(range(FLOOD))
        clock = SystemClock()

        async def flood() -> None:
            async with home.client(loud) as client:
                for number in numbers:
                    body = {"text": f"{number}", "priority": "now"}
                    answer = await client.post("/api/inbox", json=body)
                    statuses[answer.status_code] += 1
                    assert answer.status_code == 202 or int(answer.headers["Retry-After"]) > 0

        async def ring() -> float:
            while not statuses[429]:
                await clock.sleep(0)
            async with home.client(alarm) as client:
                begun = clock.monotonic()
                answer = await client.post("/api/inbox", json={"text": "fire", "priority": "now"})
                await ended(home, answer)
                return clock.monotonic() - begun

        async with asyncio.TaskGroup() as group:
            rung = group.create_task(ring())
            for _ in range(8):
                group.create_task(flood())
        stored = await home.runtime.store.read("SELECT COUNT(*) FROM stimuli")

    assert statuses[202] + statuses[429] == FLOOD
    assert statuses[202] + 1 == stored[0][0]
    assert rung.result() < patience(1)


async def test_who_watches_is_told_of_an_item_with_its_time_as_the_list_has_it():
    async with (
        house() as home,
        home.client(home.operator) as client,
        following(client, "?topics=inbox.*") as told,
    ):
        await post(home, await home.token("inbox:backup"), text="all well")
        (event,) = await take(told, 1)
        (item,) = (await client.get("/api/inbox")).json()["items"]

    assert event.data["created_at"] == item["created_at"]


async def test_of_eight_threads_that_post_one_key_one_is_first_also_after_it_was_read():
    together = threading.Barrier(THREADS)

    def post_at_once(url: str, token: str) -> tuple[str, str]:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=url, headers=headers, trust_env=False) as client:
            together.wait(patience(10))
            body = {"text": "disk full", "priority": "now", "dedup_key": "disk"}
            answer = client.post("/api/inbox", json=body).json()
        return answer["outcome"], answer.get("duplicate_of", answer["stimulus_id"])

    async with house(settings=with_sources(backup=InboxSource())) as home:
        token, loop = await home.token("inbox:backup"), asyncio.get_running_loop()

        async def all_at_once() -> list[tuple[str, str]]:
            posts = (
                loop.run_in_executor(threads, post_at_once, home.url, token) for _ in range(THREADS)
            )
            return await asyncio.gather(*posts)

        with ThreadPoolExecutor(THREADS) as threads:
            racing = await all_at_once()
            first = next(id for outcome, id in racing if outcome != "duplicate")
            await wait_for(home.runtime, "turn.finished")
            late = await all_at_once()
        async with home.client(home.operator) as client:
            items = (await client.get("/api/inbox")).json()["items"]

    assert Counter(outcome for outcome, _ in racing) == {"started": 1, "duplicate": THREADS - 1}
    assert Counter(outcome for outcome, _ in late) == {"duplicate": THREADS}
    assert {id for _, id in [*racing, *late]} == {first}
    assert [(item["id"], item["state"]) for item in items] == [(first, "done")]
