"""What may be done to a session over HTTP: each answer, each refusal."""

import pytest

from tests.integration.http.serving import following, house, take
from wakeful.models.scripted import Pause, Scripted
from wakeful.settings.settings import Settings

MAIN = "/api/sessions/main"


async def test_a_session_is_reset_forked_labelled_seen_and_chosen_for():
    async with house() as home, home.client(home.operator) as client:
        for text in ("one", "two"):
            await client.post(f"{MAIN}/messages?wait=10", json={"text": text})
        entries = (await client.get(f"{MAIN}/entries")).json()["items"]
        seen = await client.post(f"{MAIN}/seen", json={"entry_id": entries[0]["id"]})
        await client.post(f"{MAIN}/labels", json={"entry_id": entries[1]["id"], "label": "good"})
        labels = (await client.get(f"{MAIN}/labels")).json()["items"]
        forked = await client.post(f"{MAIN}/fork", json={"at": entries[1]["id"]})
        chosen = await client.patch(MAIN, json={"label": "L", "model": "demo", "queue": {"cap": 3}})
        back = await client.patch(MAIN, json={"label": None})
        reset = await client.post(f"{MAIN}/reset")
        cards = (await client.get(f"{MAIN}/transcripts")).json()["items"]
        past = await client.get(f"{MAIN}/entries", params={"transcript": cards[1]["id"]})
        left = await client.get(
            f"{MAIN}/entries", params={"transcript": cards[1]["branches"][0]["leaf_id"]}
        )

    assert seen.json()["unread"] == 2
    assert labels == [{"entry_id": entries[1]["id"], "label": "good"}]
    assert forked.json()["entries"] == 2
    assert (chosen.json()["label"], chosen.json()["queue"]["cap"]) == ("L", 3)
    assert (back.json()["label"], back.json()["overrides"]["model"]) == (None, "demo")
    assert reset.json() == {"transcript_id": cards[0]["id"], "is_waiting": False}
    assert [len(cards[1]["branches"]), cards[1]["ended_by"]] == [2, "reset"]
    assert past.json()["items"][:2] == entries[:2]
    assert left.json()["items"][:4] == entries


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "", {"label": "a\nb"}, "label"),
        ("PATCH", "", {"label": "x" * 201}, "label"),
        ("PATCH", "", {"model": ""}, "model"),
        ("PATCH", "", {"thinking": "much"}, "thinking"),
        ("PATCH", "", {"queue": {"cap": 0}}, "queue.cap"),
        ("PATCH", "", {"queue": {"cpa": 3}}, "queue"),
        ("POST", "/fork", {"summary": " "}, "summary"),
        ("POST", "/fork", {"to": "main"}, "to"),
        ("POST", "/fork", {"to": "Not A Key"}, "to"),
        ("POST", "/fork", {"to": "agent:other:web:x"}, "to"),
        ("POST", "/labels", {"entry_id": "ENTRY", "label": "a\nb"}, "label"),
    ],
)
async def test_a_bad_value_is_refused_and_changes_nothing(
    method: str, path: str, body: dict[str, str], field: str
):
    async with house() as home, home.client(home.operator) as client:
        await client.post(f"{MAIN}/messages?wait=10", json={"text": "one"})
        before = (await client.get(MAIN)).json()
        answer = await client.request(method, f"{MAIN}{path}", json=body)
        after = (await client.get(MAIN)).json()

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert after == before


async def test_a_queue_is_one_choice_and_null_takes_it_back():
    async with house() as home, home.client(home.operator) as client:
        await client.post(f"{MAIN}/messages?wait=10", json={"text": "one"})
        both = await client.patch(MAIN, json={"queue": {"mode": "collect", "cap": 3}})
        other = await client.patch(MAIN, json={"queue": {"cap": 5}})
        back = await client.patch(MAIN, json={"queue": None})
        said = await client.post(f"{MAIN}/messages", json={"text": "/queue"})

    assert [answer.status_code for answer in (both, other, back)] == [200, 200, 200]
    assert (both.json()["queue"]["mode"], both.json()["queue"]["cap"]) == ("collect", 3)
    assert (other.json()["queue"]["mode"], other.json()["queue"]["cap"]) == (None, 5)
    assert set(back.json()["queue"].values()) == {None}
    assert "as its agent does" in said.json()["reply"]


async def test_a_fork_under_a_running_turn_is_refused_and_a_reset_waits():
    pause = Pause("slow")
    async with house(Scripted([pause])) as home, home.client(home.operator) as client:
        await client.post(f"{MAIN}/messages", json={"text": "one"})
        await pause.reached.wait()
        refused = await client.post(f"{MAIN}/fork", json={})
        waiting = await client.post(f"{MAIN}/reset")
        pause.go_on.set()

    assert (refused.status_code, refused.json()["code"]) == (409, "busy")
    assert waiting.json()["is_waiting"] is True


async def test_whoever_watches_sees_a_session_go():
    async with (
        house() as home,
        home.client(home.operator) as client,
        following(client, "?topics=session.deleted") as told,
    ):
        await client.post(f"{MAIN}/messages?wait=10", json={"text": "one"})
        await client.delete(MAIN)
        (seen,) = await take(told, 1)
        missing = await client.get(MAIN)

    assert (seen.kind, seen.data["session_key"]) == ("session.deleted", "agent:main:main")
    assert missing.status_code == 404


async def test_in_unified_mode_a_web_chat_is_a_name_of_the_shared_session():
    pause = Pause("slow")
    settings = Settings(unified=True, drain_s=1)
    async with (
        house(Scripted([pause]), settings=settings) as home,
        home.client(home.operator) as client,
    ):
        sent = await client.post("/api/sessions/web:1/messages", json={"text": "one"})
        await pause.reached.wait()
        stopped = await client.post("/api/sessions/web:2/stop")
        seen = await client.get("/api/sessions/web:1/entries")
        left = await client.get("/api/sessions/web:1/export")
        chosen = await client.patch("/api/sessions/web:1", json={"label": "all of them"})
        deleted = await client.delete("/api/sessions/web:1")
        by_library = await home.runtime.delete("web:1")
        kept = await client.get("/api/sessions/web:1")

    assert sent.json()["session_key"] == "agent:main:unified"
    assert stopped.json()["turn_id"] is not None
    assert seen.json()["items"][0]["body"]["text"] == "one"
    assert left.text.count("\n") > 1
    assert chosen.json()["label"] == "all of them"
    assert deleted.json()["deleted"]
    assert by_library.deleted
    assert kept.json()["key"] == "agent:main:unified"
