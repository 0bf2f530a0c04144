"""Heartbeats by the operator's word: over HTTP, by command, seen by whoever looks."""

from functools import partial

from tests.integration.http.serving import house
from tests.integration.http.test_commands import said
from wakeful.models.scripted import Scripted
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.vocabulary.heartbeat import HeartbeatRules

AT = "/api/agents/main/heartbeat"

beating = partial(house, heartbeat=HeartbeatRules())


async def test_the_operator_turns_it_off_and_on_and_asks_for_one():
    clock, model = ManualClock(), Scripted(["HEARTBEAT_OK"])
    async with (
        beating(model, clock=clock) as home,
        home.client(home.operator) as client,
    ):
        fresh = (await client.get("/api/agents/main")).json()
        off = await client.post(AT, json={"action": "off"})
        refused = await client.post(AT, json={"action": "now"})
        on = (await client.post(AT, json={"action": "on"})).json()
        asked = await client.post(AT, json={"action": "now"})
        clock.advance(1)
        await wait_for(home.runtime, "turn.finished")
        after = (await client.get("/api/agents/main")).json()["heartbeat"]

    beat = fresh["heartbeat"]
    assert (beat["enabled"], beat["every"], beat["every_ms"]) == (True, "30m", 1_800_000)
    assert (beat["target"], beat["ack_max_chars"], beat["last_outcome"]) == ("last", 300, None)
    assert beat["next_due_at"] == fresh["next_wake_at"] == on["next_due_at"]
    assert (off.json()["enabled"], off.json()["every_ms"], off.json()["next_due_at"]) == (
        False,
        None,
        None,
    )
    assert (refused.status_code, refused.json()["reason"]) == (202, "disabled")
    assert asked.status_code == 202
    assert (after["last_outcome"], after["next_due_at"]) == ("acknowledged", on["next_due_at"])


async def test_a_turn_and_its_entries_tell_what_they_came_of():
    clock, model = ManualClock(), Scripted(["hello", "The report is missing."])
    async with beating(model, clock=clock) as home, home.client(home.operator) as client:
        await said(client, "hi")
        await client.post(AT, json={"action": "now"})
        clock.advance(1)
        beat = await wait_for(
            home.runtime, "turn.finished", lambda event: event.data["reply"] != "hello"
        )
        turn = (await client.get(f"/api/turns/{beat.turn_id}")).json()
        entries = (await client.get("/api/sessions/main/entries")).json()["items"]

    assert (turn["origin"], turn["source"]) == ("heartbeat", "heartbeat:operator")
    assert [one["origin"] for one in entries] == ["user", "user", "heartbeat", "heartbeat"]
    assert entries[-1]["source"] == "heartbeat:operator"


async def test_only_the_operator_may_and_a_bad_word_is_named():
    async with beating() as home, home.client(home.operator) as client:
        bad = await client.post(AT, json={"action": "soon"})
        nobody = await client.post("/api/agents/nobody/heartbeat", json={"action": "on"})
        async with home.client(await home.token("read", name="reader")) as reader:
            refused = await reader.post(AT, json={"action": "off"})

    assert (bad.status_code, bad.json()["field"]) == (422, "action")
    assert nobody.status_code == 404
    assert refused.status_code == 403


async def test_a_heartbeat_by_command():
    clock, model = ManualClock(), Scripted(["HEARTBEAT_OK"])
    async with (
        beating(model, clock=clock) as home,
        home.client(home.operator) as client,
    ):
        clock.advance(600)
        shown = await said(client, "/heartbeat")
        off = await said(client, "/heartbeat off")
        quiet = await said(client, "/heartbeat")
        on = await said(client, "/heartbeat on")
        bad = await client.post("/api/sessions/main/messages", json={"text": "/heartbeat soon"})
        asked = await said(client, "/heartbeat now")
        clock.advance(60)
        await wait_for(home.runtime, "turn.finished")
        after = await said(client, "/heartbeat")

    assert shown["reply"] == "A heartbeat every 30m, the next in 20m."
    assert (off["reply"], on["reply"]) == ("The heartbeat is off.", "The heartbeat is on.")
    assert quiet["reply"].startswith("The heartbeat is off.")
    assert "must be on, off or now" in bad.text
    assert asked["reply"] == "A heartbeat comes at once."
    assert (
        after["reply"] == "A heartbeat every 30m, the next in 19m, the last 0s ago: acknowledged."
    )
