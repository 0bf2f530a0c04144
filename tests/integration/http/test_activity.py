"""Activity over HTTP: the feed, what is unread of it, and a session that can be continued."""

from datetime import datetime
from typing import Any

import httpx2

from tests.integration.http.serving import Frame, following, house
from tests.integration.http.test_commands import said
from wakeful.models.scripted import Pause, Scripted
from wakeful.notices.notices import Notices

ACTIVITY = "system:activity"


async def feed(client: httpx2.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/api/activity", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def test_the_feed_tells_what_happened_in_every_session_newest_first():
    model = Scripted(["first", "second"])
    async with house(model) as home, home.client(home.operator) as client:
        await said(client, "hello <b>there</b>\nagain")
        await said(client, "look", session=ACTIVITY)
        await client.post("/api/sessions/main/sleep", json={"seconds": 600, "reason": "lunch"})
        rows = await feed(client)
        page = (await client.get("/api/activity", params={"limit": 2})).json()
        rest = await feed(client, after=page["next"])
        users = await feed(client, origin="user", agent="main")
        nobody = await feed(client, agent="nobody")
        bad = [
            (await client.get("/api/activity", params=query)).status_code
            for query in ({"origin": "moon"}, {"after": "yesterday"}, {"limit": 0}, {"x": 1})
        ]

    assert [(row["kind"], row["state"]) for row in rows] == [
        ("sleep", "entered"),
        ("turn", "done"),
        ("turn", "done"),
    ]
    asleep, activity, main = rows
    assert (asleep["trigger"], asleep["origin"], asleep["turn_id"]) == ("lunch", "wake", None)
    assert asleep["until"] > asleep["at"]
    assert (main["trigger"], main["reply"]) == ("hello <b>there</b> again", "first")
    assert (main["id"], main["session_key"]) == (main["turn_id"], "agent:main:main")
    assert (main["origin"], main["source"], main["agent_id"]) == ("user", "the operator", "main")
    assert isinstance(main["cost"], float)
    assert (activity["is_unread"], main["is_unread"], asleep["is_unread"]) == (True, False, False)
    assert [row["id"] for row in [*page["items"], *rest]] == [row["id"] for row in rows]
    assert [row["id"] for row in users] == [activity["id"], main["id"]]
    assert nobody == []
    assert bad == [422] * 4


async def test_what_was_read_in_one_client_is_read_in_the_other_by_event():
    async with (
        house(Scripted(["one", "two"])) as home,
        home.client(home.operator) as first,
        home.client(home.operator) as second,
        following(second, "?topics=activity.*") as events,
    ):
        await said(first, "look", session=ACTIVITY)
        await said(first, "look again", session=ACTIVITY)
        unread = (await first.get("/api/counts")).json()["unread"]
        newest, oldest = await feed(first)
        left = (await first.post("/api/activity/seen", json={"until": oldest["at"]})).json()
        none = (await first.post("/api/activity/seen", json={"until": newest["at"]})).json()
        again = (await second.get("/api/counts")).json()["unread"]
        back = (
            await first.post("/api/activity/seen", json={"until": oldest["at"], "agent": "main"})
        ).json()
        told: list[Frame] = []
        async for frame in events:
            told += [frame] if isinstance(frame, Frame) else []
            if told and (told[-1].data["agent_id"], told[-1].data.get("unread")) == ("main", 0):
                break

    assert (unread, left, none, again, back) == (2, {"unread": 1}, {"unread": 0}, 0, {"unread": 0})
    messages = [frame.data for frame in told if frame.kind == "activity.message"]
    assert [one["text"] for one in messages] == ["one", "two"]
    assert {one["session_key"] for one in messages} == {"agent:main:activity"}
    seen = [frame.data for frame in told if frame.kind == "activity.seen"]
    assert [one["unread"] for one in seen if one["agent_id"] == "main"] == [1, 0]


async def test_who_reads_may_look_and_only_the_operator_marks_as_read():
    async with house() as home:
        body = {"until": "2026-01-01T00:00:00Z"}
        statuses: list[list[int]] = []
        for token in (await home.token("read"), await home.token("send", name="weak")):
            async with home.client(token) as client:
                answers = [
                    await client.get("/api/activity"),
                    await client.get("/api/counts"),
                    await client.post("/api/activity/seen", json=body),
                ]
                statuses.append([one.status_code for one in answers])
        async with home.client(home.operator) as client:
            unknown = await client.post("/api/activity/seen", json={**body, "agent": "nobody"})
            bad = await client.post("/api/activity/seen", json={"until": "yesterday"})

    assert statuses == [[200, 200, 403], [403, 403, 403]]
    assert (unknown.status_code, bad.status_code, bad.json()["field"]) == (404, 422, "until")


async def test_the_alias_names_the_default_agents_activity_at_every_route():
    async with house() as home, home.client(home.operator) as client:
        at = f"/api/sessions/{ACTIVITY}"
        await said(client, "look", session=ACTIVITY)
        await said(client, "and again", session="system%3Aactivity")
        entries = (await client.get(f"{at}/entries")).json()["items"]
        one = (await client.get(at)).json()
        listed = (await client.get("/api/stimuli", params={"session": ACTIVITY})).json()["items"]
        turns = (await client.get("/api/turns", params={"session": ACTIVITY})).json()["items"]
        others = {
            "labels": await client.get(f"{at}/labels"),
            "transcripts": await client.get(f"{at}/transcripts"),
            "export": await client.get(f"{at}/export"),
            "attachments": await client.get(f"{at}/attachments"),
            "search": await client.get("/api/search", params={"q": "look", "session": ACTIVITY}),
            "seen": await client.post(f"{at}/seen", json={}),
            "patch": await client.patch(at, json={"label": "what happens"}),
            "sleep": await client.post(f"{at}/sleep", json={"seconds": 60}),
            "wake": await client.post(f"{at}/wake"),
            "stop": await client.post(f"{at}/stop"),
            "reset": await client.post(f"{at}/reset"),
        }
        library = await home.runtime.entries(ACTIVITY)

    assert one["key"] == "agent:main:activity"
    assert [entry["body"]["type"] for entry in entries] == ["user", "assistant"] * 2
    assert len(listed) == len(turns) == 2
    assert {name: one.status_code for name, one in others.items()} == dict.fromkeys(others, 200)
    assert library is not None


async def test_counts_come_with_the_position_from_which_to_follow():
    async with house(Scripted(["one"])) as home, home.client(home.operator) as client:
        before = (await client.get("/api/counts")).json()
        await said(client, "look", session=ACTIVITY)
        tell = Notices(home.runtime.bus, home.runtime.services.ids)
        await home.runtime.store.transact(
            lambda tx: tell.add(tx, "storm", "loud", "1", "Loud.", "main", session_key="agent:x:y")
        )
        await client.post(f"/api/sessions/{ACTIVITY}/sleep", json={"seconds": 600})
        after = (await client.get("/api/counts")).json()
        kinds: list[str] = []
        async with following(client, f"?since={before['cursor']}") as events:
            async for frame in events:
                kinds += [frame.kind] if isinstance(frame, Frame) else []
                if kinds[-1:] == ["sleep.entered"]:
                    break
        notices = (await client.get("/api/notices", params={"kind": "storm"})).json()["items"]
        none = (await client.get("/api/notices", params={"kind": "loop"})).json()["items"]

    zeros = {"pending": 0, "held": 0, "parked": 0, "claimed": 0}
    assert before == {
        "cursor": before["cursor"],
        "stimuli": zeros,
        "turns": 0,
        "sessions": 1,
        "asleep": 0,
        "unread": 0,
        "approvals": 0,
        "automations": 0,
        "deliveries": {"queued": 0, "failed": 0},
    }
    assert after == before | {"cursor": after["cursor"], "asleep": 1, "unread": 2}
    assert kinds[0] == "stimulus.accepted"
    assert [(one["kind"], one["session_key"], "at" in one) for one in notices] == [
        ("storm", "agent:x:y", True)
    ]
    assert none == []


async def test_what_runs_is_counted_while_it_runs():
    pause = Pause("busy")
    async with house(Scripted([pause])) as home, home.client(home.operator) as client:
        await home.runtime.send("hello")
        await pause.reached.wait()
        counts = (await client.get("/api/counts")).json()
        (turn,) = (await client.get("/api/turns")).json()["items"]
        one = (await client.get(f"/api/turns/{turn['id']}")).json()
        pause.go_on.set()
        ended = (await client.get(f"/api/turns/{turn['id']}/wait")).json()

    assert (counts["turns"], counts["stimuli"]["claimed"], counts["stimuli"]["pending"]) == (
        1,
        1,
        0,
    )
    assert (turn["state"], turn["trust"], turn["priority"]) == ("open", "operator", "next")
    assert (turn["partial"], one["partial"], ended["partial"]) == ("busy", "busy", None)
    assert ended["reply"] == "busy"


async def test_turns_are_listed_by_session_origin_and_day_page_by_page():
    async with house() as home, home.client(home.operator) as client:
        for number in range(3):
            await said(client, f"hello {number}")
        await said(client, "look", session=ACTIVITY)
        every = (await client.get("/api/turns")).json()
        page = (await client.get("/api/turns", params={"limit": 3})).json()
        rest = (await client.get("/api/turns", params={"after": page["next"]})).json()
        begun = datetime.fromisoformat(every["items"][0]["started_at"])
        day = begun.astimezone(home.runtime.settings.zone).date().isoformat()
        queries: dict[str, dict[str, str]] = {
            "main": {"session": "main"},
            "user": {"origin": "user", "session": "main"},
            "tick": {"origin": "tick"},
            "old": {"day": "2001-01-01"},
            "today": {"day": day},
        }
        found = {
            name: (await client.get("/api/turns", params=query)).json()["items"]
            for name, query in queries.items()
        }
        bad = [
            await client.get("/api/turns", params={"day": day})
            for day in ("yesterday", "0001-01-01", "9999-12-31")
        ]
        async with home.client(await home.token("send", name="weak")) as weak:
            nothing = (await weak.get("/api/turns")).json()

    assert len(every["items"]) == 4
    assert [*page["items"], *rest["items"]] == every["items"]
    assert {name: len(items) for name, items in found.items()} == {
        "main": 3,
        "user": 3,
        "tick": 0,
        "old": 0,
        "today": 4,
    }
    first = every["items"][0]
    assert (first["origin"], first["source"], first["model"]) == (
        "user",
        "the operator",
        "scripted",
    )
    assert len(first["stimuli"]) == 1
    assert [(one.status_code, one.json()["field"]) for one in bad] == [(422, "day")] * 3
    assert nothing["items"] == []
