"""A session in which automations run is deleted only by whoever knows of them, at every door."""

from typing import Any

import httpx2

from tests.integration.http.serving import House, house
from tests.integration.http.test_automations import AT, DAILY, ended, made, wished
from wakeful.models.scripted import Pause, Scripted
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import in_memory

WEB = "web:7f0b4c9e-0c1d-4d4e-9a55-0a1b2c3d4e5f"
UNIFIED = Settings(unified=True, drain_s=1)
APART = Settings(drain_s=1)


async def said(client: httpx2.AsyncClient, session: str = "main") -> None:
    answer = await client.post(f"/api/sessions/{session}/messages?wait=10", json={"text": "hi"})
    assert answer.status_code == 200, answer.text


def blocked(*found: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to whoever did not confirm."""
    named = [{name: one[name] for name in ("id", "name", "enabled")} for one in found]
    return {"deleted": False, "blocked_by_automations": True, "automations": named}


async def left(home: House) -> list[str]:
    rows = await home.runtime.store.read("SELECT name FROM automations ORDER BY name")
    return [row[0] for row in rows]


async def test_a_deletion_waits_for_the_word_of_somebody_who_knows_what_goes_with_it():
    async with house() as home, home.client(home.operator) as client:
        await said(client)
        on = await made(client, name="on")
        await made(client, name="off")
        off = (await client.post(f"{AT}/off/pause")).json()
        lone = {name: value for name, value in DAILY.items() if name != "session_key"}
        await client.post(AT, json=lone | {"name": "apart", "isolated": True})
        await made(client, name="elsewhere", session_key="system:activity")

        first = await client.delete("/api/sessions/main")
        unsure = await client.delete("/api/sessions/main?confirm=false")
        there = await client.get("/api/sessions/main")
        names = await left(home)
        confirmed = await client.delete("/api/sessions/main?confirm=true")
        gone = await client.get("/api/sessions/main")

        assert (first.status_code, first.json()) == (200, blocked(on, off))
        assert unsure.json() == first.json()
        assert (there.status_code, names) == (200, ["apart", "elsewhere", "off", "on"])
        assert confirmed.json() == {"deleted": True}
        assert gone.status_code == 404
        assert await left(home) == ["apart", "elsewhere"]


async def test_a_session_without_automations_is_deleted_at_once():
    async with house() as home, home.client(home.operator) as client:
        await said(client)
        deleted = await client.delete("/api/sessions/main")

    assert deleted.json() == {"deleted": True}


async def test_a_library_is_told_the_same_and_nothing_comes_back():
    async with in_memory(Scripted(lambda _: "well")) as runtime:
        await runtime.ask("hi")
        job = (await runtime.add_automation(wished("daily", "look"))).job
        refused = await runtime.delete("main")
        confirmed = await runtime.delete("main", is_confirmed=True)
        timers = await runtime.store.read("SELECT id FROM timers WHERE kind = 'automation'")

    (bound,) = refused.automations
    assert (refused.deleted, refused.blocked_by_automations) == (False, True)
    assert (bound.id, bound.name, bound.enabled) == (job.id, "daily", True)
    assert (confirmed.deleted, list(confirmed.automations)) == (True, [])
    assert timers == []


async def test_a_run_that_waits_or_runs_ends_with_its_session():
    pause = Pause("looking")
    async with house(Scripted(["hi", pause])) as home, home.client(home.operator) as client:
        await said(client)
        await made(client, name="first")
        await made(client, name="second")
        running = (await client.post(f"{AT}/first/run")).json()["run_id"]
        await pause.reached.wait()
        waiting = (await client.post(f"{AT}/second/run")).json()["run_id"]
        await client.delete("/api/sessions/main?confirm=true")
        pause.go_on.set()
        ends = [(await ended(home.runtime, one)).kind for one in (running, waiting)]
        runs = [(await client.get(f"/api/runs/{one}")).json() for one in (running, waiting)]

    assert ends == ["automation.cancelled"] * 2
    assert {one["reason"] for one in runs} == {"session-deleted"}


async def test_every_web_chat_shows_the_automations_of_the_session_they_share():
    async with house(settings=UNIFIED) as home, home.client(home.operator) as client:
        await said(client, WEB)
        job = await made(client, session_key=WEB)
        listed = [
            (await client.get(f"{AT}?session={name}")).json()["items"]
            for name in (WEB, "web:another", "unified")
        ]
        said_here = await client.post(f"/api/sessions/{WEB}/messages", json={"text": "/cron"})
        alias = await client.delete(f"/api/sessions/{WEB}")
        confirmed = await client.delete(f"/api/sessions/{WEB}?confirm=true")
        own = await client.delete("/api/sessions/unified")
        names = await left(home)

    assert job["session_key"] == "agent:main:unified"
    assert [[one["id"] for one in found] for found in listed] == [[job["id"]]] * 3
    assert said_here.json()["reply"].startswith("daily: on, next in ")
    assert (alias.json(), confirmed.json()) == ({"deleted": True}, {"deleted": True})
    assert own.json() == blocked(job)
    assert names == ["daily"]


async def test_switching_unified_on_and_off_moves_no_automation():
    async with house(settings=APART) as home, home.client(home.operator) as client:
        await said(client, WEB)
        apart = await made(client, name="apart", session_key=WEB)
        await home.runtime.reconfigure(settings=UNIFIED)
        await said(client, WEB)
        shared = await made(client, name="shared", session_key=WEB)
        edited = (await client.patch(f"{AT}/apart", json={"description": "as before"})).json()
        runs = [await ran_in(home.runtime, client, name) for name in ("apart", "shared")]
        shown = (await client.get(f"{AT}?session={WEB}")).json()["items"]
        alias = (await client.delete(f"/api/sessions/{WEB}")).json()

        await home.runtime.reconfigure(settings=APART)
        again = [await ran_in(home.runtime, client, name) for name in ("apart", "shared")]
        own = (await client.get(f"{AT}?session={WEB}")).json()["items"]
        chat = (await client.delete(f"/api/sessions/{WEB}")).json()
        confirmed = (await client.delete(f"/api/sessions/{WEB}?confirm=true")).json()
        names = await left(home)

    assert apart["session_key"] == f"agent:main:{WEB}"
    assert edited["session_key"] == apart["session_key"]
    assert shared["session_key"] == "agent:main:unified"
    assert runs == again == [apart["session_key"], "agent:main:unified"]
    assert [one["name"] for one in shown] == ["shared"]
    assert alias == {"deleted": True}
    assert [one["name"] for one in own] == ["apart"]
    assert chat == blocked(apart)
    assert confirmed == {"deleted": True}
    assert names == ["shared"]


async def ran_in(runtime: Runtime, client: httpx2.AsyncClient, name: str) -> str:
    """Run an automation, and return the session in which it did."""
    run_id = (await client.post(f"{AT}/{name}/run")).json()["run_id"]
    event = await ended(runtime, run_id)
    assert event.kind == "automation.ok"
    assert event.session_key is not None
    return event.session_key
