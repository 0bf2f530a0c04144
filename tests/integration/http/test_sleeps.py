"""Sleep and wake by the operator's word: over HTTP, by command, seen by whoever looks."""

from tests.integration.http.serving import house
from tests.integration.http.test_commands import said
from wakeful.models.scripted import Pause, Scripted
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.vocabulary.heartbeat import HeartbeatRules

AT = "/api/sessions/main"


async def test_the_operator_lets_a_session_rest_and_wakes_it():
    model = Scripted(["hello", "awake"])
    async with house(model) as home, home.client(home.operator) as client:
        await said(client, "hi")
        entered = (
            await client.post(f"{AT}/sleep", json={"seconds": 500, "reason": "lunch"})
        ).json()
        (row,) = (await client.get("/api/sleeps")).json()["items"]
        agent = (await client.get("/api/agents/main")).json()
        session = (await client.get(AT)).json()
        woken = (await client.post(f"{AT}/wake")).json()
        await wait_for(
            home.runtime, "sleep.woken", lambda event: event.data["reason"] == "operator"
        )
        again = (await client.post(f"{AT}/wake")).json()
        left = (await client.get("/api/sleeps")).json()["items"]
        later = (await client.get("/api/agents/main")).json()["next_wake_at"]

    assert (entered["requested_ms"], entered["final_ms"]) == (500_000, 270_000)
    assert (row["id"], row["reason"], row["session_key"]) == (
        entered["id"],
        "lunch",
        "agent:main:main",
    )
    assert agent["sleep"][0]["wake_at"] == entered["wake_at"] == agent["next_wake_at"]
    assert (session["sleep"]["id"], session["sleep"]["reason"]) == (entered["id"], "lunch")
    assert session["next_tick_at"] is None
    assert woken["woken"]
    assert woken["stimulus_id"] is not None
    assert (again["woken"], again["reason"], left) == (False, "awake", [])
    assert later != entered["wake_at"]


async def test_the_next_wake_is_the_end_of_the_sleep_and_no_heartbeat_that_it_skips():
    beats = HeartbeatRules()
    async with (
        house(Scripted(["hello"]), heartbeat=beats) as home,
        home.client(home.operator) as client,
    ):
        await said(client, "hi")
        await client.post(f"{AT}/sleep", json={"seconds": 7_200})
        agent = (await client.get("/api/agents/main")).json()

    assert agent["heartbeat"]["next_due_at"] < agent["next_wake_at"]
    assert agent["next_wake_at"] == agent["sleep"][0]["wake_at"]


async def test_whoever_is_busy_is_not_put_to_sleep():
    pause = Pause("thinking")
    async with house(Scripted([pause])) as home, home.client(home.operator) as client:
        await home.runtime.send("hi")
        await pause.reached.wait()
        refused = await client.post(f"{AT}/sleep", json={"seconds": 60})
        pause.go_on.set()

    assert refused.status_code == 409


async def test_only_the_operator_puts_to_sleep_and_a_bad_length_is_named():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hi")
        weak = await home.token("send", name="weak")
        async with home.client(weak) as other:
            forbidden = await other.post(f"{AT}/sleep", json={"seconds": 60})
        bad = await client.post(f"{AT}/sleep", json={"seconds": 0})
        nobody = await client.post("/api/sessions/dm:nobody/sleep", json={"seconds": 60})

    assert forbidden.status_code in (403, 404)
    assert (bad.status_code, bad.json()["field"]) == (422, "seconds")
    assert nobody.status_code == 404


async def test_rest_by_command():
    clock = ManualClock()
    model = Scripted(["hello", "awake"])
    async with house(model, clock=clock) as home, home.client(home.operator) as client:
        await said(client, "hi")
        first = await said(client, "/sleep")
        entered = await said(client, "/sleep 2 hours the build runs")
        clock.advance(3600)
        shown = await said(client, "/sleep")
        bad = await client.post(f"{AT}/messages", json={"text": "/sleep soon"})
        later = await said(client, "/wake in an hour")
        snapped = await said(client, "/sleep 10m")
        clock.advance(60)
        woken = await said(client, "/wake")
        await wait_for(home.runtime, "sleep.woken")
        again = await said(client, "/wake")

    assert first["reply"].startswith("Awake.")
    assert entered["reply"] == "Asleep for 2h; a message wakes it."
    assert shown["reply"] == "Asleep for another 1h: the build runs."
    assert "2h" in bad.text
    assert later["reply"] == "/wake: takes nothing, and wakes at once"
    assert snapped["reply"] == (
        "Asleep for 4m 30s (not 10m: a sleep lasts a minute to a day, and ends before a prompt "
        "cache does or long after); a message wakes it."
    )
    assert woken["reply"] == "Woken after 1m."
    assert again["reply"] == "Nobody is asleep here."
