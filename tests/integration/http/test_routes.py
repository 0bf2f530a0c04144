"""The contract of each route that looks or acts."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.http.serving import House, house, is_time
from wakeful.models.scripted import Pause, call, says
from wakeful.settings.settings import Settings
from wakeful.vocabulary.clock import ManualClock


async def spoken(home: House, text: str = "hello", session: str = "main") -> dict[str, str]:
    """Send a message, wait for its answer, and return the receipt."""
    async with home.client(home.operator) as client:
        answer = await client.post(f"/api/sessions/{session}/messages?wait=10", json={"text": text})
        return answer.json()


async def test_a_stimulus_has_the_fields_of_the_contract():
    async with house() as home, home.client(home.operator) as client:
        receipt = await spoken(home)
        stimulus = (await client.get(f"/api/stimuli/{receipt['stimulus_id']}")).json()

        assert {
            "id": receipt["stimulus_id"],
            "session_key": "agent:main:main",
            "origin": "user",
            "source": "the operator",
            "priority": "next",
            "text": "hello",
            "state": "done",
            "state_reason": None,
            "cause_id": None,
            "depth": 0,
        }.items() <= stimulus.items()
        assert stimulus["turn_id"].startswith("tn_")
        assert is_time(stimulus["created_at"])
        assert is_time(stimulus["settled_at"])


async def test_the_ledger_is_paged_newest_first_and_filtered():
    async with house() as home, home.client(home.operator) as client:
        ids = [(await spoken(home, str(number)))["stimulus_id"] for number in range(5)]
        await spoken(home, "elsewhere", "api:other")
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            after = f"&after={cursor}" if cursor else ""
            page = (await client.get(f"/api/stimuli?session=main&limit=2{after}")).json()
            seen += [item["id"] for item in page["items"]]
            cursor = page["next"]
        done = (await client.get("/api/stimuli?state=done&origin=user")).json()
        none = (await client.get("/api/stimuli?state=failed")).json()

        assert seen == ids[::-1]
        assert len(done["items"]) == 6
        assert none == {"items": [], "next": None}


async def test_a_waiting_stimulus_may_be_cancelled_and_an_ended_one_not():
    pause = Pause("busy")
    async with house([pause]) as home, home.client(home.operator) as client:
        path = "/api/sessions/main/messages"
        first = (await client.post(path, json={"text": "a"})).json()
        await pause.reached.wait()
        second = (await client.post(path, json={"text": "b", "mode": "queue"})).json()
        gone = await client.delete(f"/api/stimuli/{second['stimulus_id']}")
        again = await client.delete(f"/api/stimuli/{second['stimulus_id']}")
        running = await client.delete(f"/api/stimuli/{first['stimulus_id']}")
        pause.go_on.set()

    assert second["outcome"] == "queued"
    assert second["position"] == 1
    assert gone.json()["state"] == "cancelled"
    assert gone.json()["state_reason"] == "by-sender"
    assert (again.status_code, again.json()["code"]) == (409, "too-late")
    assert running.status_code == 409


async def test_sessions_are_listed_newest_first_by_page():
    async with house() as home, home.client(home.operator) as client:
        for name in ("api:a", "api:b", "api:c"):
            await spoken(home, session=name)
        first = (await client.get("/api/sessions?limit=2")).json()
        rest = (await client.get("/api/sessions", params={"after": first["next"]})).json()
        bad = await client.get("/api/sessions?after=nonsense")

        keys = [item["key"] for item in first["items"] + rest["items"]]
        assert keys == [*(f"agent:main:api:{name}" for name in "cba"), "agent:main:activity"]
        assert rest["next"] is None
        assert bad.status_code == 422


async def test_sessions_are_listed_by_their_last_use_when_asked():
    clock = ManualClock()
    async with house(clock=clock) as home, home.client(home.operator) as client:
        for name in ("api:a", "api:b", "api:c", "api:a"):
            clock.advance(60)
            await spoken(home, session=name)
        query = {"order": "used", "limit": "2"}
        first = (await client.get("/api/sessions", params=query)).json()
        rest = (await client.get("/api/sessions", params=query | {"after": first["next"]})).json()

        keys = [item["key"] for item in first["items"] + rest["items"]]
        assert keys[:3] == [f"agent:main:api:{name}" for name in "acb"]
        assert rest["next"] is None


async def test_a_session_shows_its_lane():
    pause = Pause("busy")
    async with house([pause]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "a"})
        await pause.reached.wait()
        session = (await client.get("/api/sessions/agent:main:main")).json()
        unknown = await client.get("/api/sessions/api:unknown")
        invalid = await client.get("/api/sessions/UPPER")
        pause.go_on.set()

    assert session["lane"]["state"] == "streaming"
    assert session["lane"]["turn_id"].startswith("tn_")
    assert is_time(session["created_at"])
    assert unknown.status_code == invalid.status_code == 404


async def test_entries_come_oldest_first_in_either_direction():
    async with house() as home, home.client(home.operator) as client:
        for number in range(4):
            await spoken(home, str(number))
        path = "/api/sessions/main/entries"
        every = (await client.get(path)).json()
        newest = (await client.get(f"{path}?limit=3")).json()
        older = (await client.get(path, params={"limit": 3, "before": newest["next"]})).json()
        first = every["items"][0]["id"]
        forward = (await client.get(path, params={"limit": 3, "after": first})).json()
        unknown = await client.get(f"{path}?after=en_x")

        ids = [item["id"] for item in every["items"]]
        assert every["next"] is None
        assert len(ids) == 8
        assert [item["id"] for item in newest["items"]] == ids[5:]
        assert [item["id"] for item in older["items"]] == ids[2:5]
        assert [item["id"] for item in forward["items"]] == ids[1:4]
        assert forward["next"] == ids[3]
        assert every["items"][0]["body"]["text"] == "0"
        assert is_time(every["items"][0]["at"])
        assert unknown.status_code == 422


async def test_a_stop_tells_what_it_ended():
    pause = Pause("busy")
    async with house([pause]) as home, home.client(home.operator) as client:
        path = "/api/sessions/main/messages"
        await client.post(path, json={"text": "a"})
        await pause.reached.wait()
        waiting = (await client.post(path, json={"text": "b", "mode": "queue"})).json()
        stopped = (await client.post("/api/sessions/main/stop")).json()
        turn = (await client.get(f"/api/turns/{stopped['turn_id']}/wait?timeout=10")).json()
        unknown = await client.post("/api/sessions/api:unknown/stop")

    assert stopped["cancelled"] == [waiting["stimulus_id"]]
    assert turn["state"] == "stopped"
    assert unknown.status_code == 404


async def test_a_turn_has_the_fields_of_the_contract():
    script = [says("", call("current_time")), "late"]
    async with house(script) as home, home.client(home.operator) as client:
        receipt = await spoken(home)
        stimulus = (await client.get(f"/api/stimuli/{receipt['stimulus_id']}")).json()
        turn = (await client.get(f"/api/turns/{stimulus['turn_id']}")).json()
        waited = (await client.get(f"/api/turns/{stimulus['turn_id']}/wait")).json()
        missing = await client.get("/api/turns/tn_x")

        assert turn == waited
        assert {
            "session_key": "agent:main:main",
            "state": "done",
            "phase": "ended",
            "stimuli": [receipt["stimulus_id"]],
            "tool_calls": 1,
            "reply": "late",
            "error": None,
            "attempts": 1,
        }.items() <= turn.items()
        assert turn["steps"] >= 1
        assert turn["usage"]["input"] > 0
        assert is_time(turn["started_at"])
        assert is_time(turn["ended_at"])
        assert missing.status_code == 404


async def test_a_failed_turn_tells_its_error():
    async with house([]) as home, home.client(home.operator) as client:
        receipt = await spoken(home)
        stimulus = (await client.get(f"/api/stimuli/{receipt['stimulus_id']}")).json()
        turn = (await client.get(f"/api/turns/{stimulus['turn_id']}")).json()

        assert turn["state"] == "failed"
        assert set(turn["error"]) == {"kind", "message"}


async def test_a_turn_may_be_aborted_once():
    pause = Pause("busy")
    async with house([pause]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "a"})
        await pause.reached.wait()
        session = (await client.get("/api/sessions/main")).json()
        turn_id = session["lane"]["turn_id"]
        aborted = await client.post(f"/api/turns/{turn_id}/abort")
        ended = (await client.get(f"/api/turns/{turn_id}/wait?timeout=10")).json()
        again = await client.post(f"/api/turns/{turn_id}/abort")

    assert aborted.status_code == 200
    assert ended["state"] == "stopped"
    assert (again.status_code, again.json()["code"]) == (409, "too-late")


@pytest.mark.parametrize("wait", ["0", "121", "nan", "x"])
async def test_a_wait_out_of_bounds_is_refused(wait: str):
    async with house() as home, home.client(home.operator) as client:
        answer = await client.get(f"/api/turns/tn_x/wait?timeout={wait}")

        assert answer.status_code == 422


async def test_why_walks_back_to_the_first_cause():
    script = [says("", call("current_time")), "late"]
    async with house(script) as home, home.client(home.operator) as client:
        receipt = await spoken(home)
        stimulus = (await client.get(f"/api/stimuli/{receipt['stimulus_id']}")).json()
        why = (await client.get(f"/api/turns/{stimulus['turn_id']}/why")).json()
        missing = await client.get("/api/turns/tn_x/why")

        (link,) = why["chain"]
        assert why["root_id"] == receipt["stimulus_id"]
        assert [one["id"] for one in link["stimuli"]] == [receipt["stimulus_id"]]
        assert [ask["state"] for ask in link["asks"]] == ["answered", "answered"]
        assert [ask["purpose"] for ask in link["asks"]] == ["reply", "reply"]
        assert [(tool["name"], tool["state"]) for tool in link["tools"]] == [
            ("current_time", "done")
        ]
        assert link["epochs"] == [1]
        assert missing.status_code == 404


async def test_agents_are_shown_with_what_they_do():
    async with house() as home, home.client(home.operator) as client:
        await spoken(home)
        every = (await client.get("/api/agents")).json()
        one = (await client.get("/api/agents/main")).json()
        missing = await client.get("/api/agents/nobody")

        assert every["items"][0]["id"] == one["id"] == "main"
        assert one["model"] == "scripted"
        assert one["is_halted"] is False
        assert one["lanes"] == {"running": 0, "waiting": 0, "idle": 1}
        assert missing.status_code == 404


async def test_halt_holds_and_resume_lets_go():
    async with house() as home, home.client(home.operator) as client:
        halted = (await client.post("/api/halt", json={"agent": "main"})).json()
        again = (await client.post("/api/halt", json={"agent": "main"})).json()
        parked = (await client.post("/api/sessions/main/messages", json={"text": "a"})).json()
        agent = (await client.get("/api/agents/main")).json()
        resumed = (await client.post("/api/resume", json={"agent": "main"})).json()
        stimulus = f"/api/stimuli/{parked['stimulus_id']}"
        answer = await client.post(
            "/api/sessions/main/messages?wait=10", json={"text": "b", "mode": "queue"}
        )
        unknown = await client.post("/api/halt", json={"agent": "nobody"})

        assert halted == {"scope": "main", "is_halted": True, "is_changed": True}
        assert again["is_changed"] is False
        assert (parked["outcome"], parked["reason"]) == ("parked", "halted")
        assert agent["is_halted"] is True
        assert resumed["is_changed"] is True
        assert answer.json()["turn"]["state"] == "done"
        assert (await client.get(stimulus)).json()["state"] == "done"
        assert unknown.status_code == 404


async def test_tokens_are_shown_without_their_secrets():
    async with house() as home, home.client(home.operator) as client:
        body = {"name": "phone", "scopes": ["send"], "expires_at": "2099-01-01T00:00:00+02:00"}
        made = await client.post("/api/tokens", json=body)
        twice = await client.post("/api/tokens", json=body)
        wrong = await client.post("/api/tokens", json={"name": "x", "scopes": ["root"]})
        naive = await client.post("/api/tokens", json=body | {"expires_at": "2099-01-01T00:00:00"})
        listed = (await client.get("/api/tokens")).json()["items"]
        missing = await client.delete("/api/tokens/nobody")

        assert made.status_code == 201
        assert {token["name"] for token in listed} == {"the operator", "phone"}
        assert all("token" not in token and "hash" not in token for token in listed)
        assert listed[-1]["expires_at"] == "2098-12-31T22:00:00Z"
        assert twice.status_code == wrong.status_code == naive.status_code == 422
        assert missing.status_code == 404


async def test_metrics_are_prometheus_text():
    async with house() as home, home.client(home.operator) as client:
        await spoken(home)
        answer = await client.get("/metrics")
        families = {one.name: one for one in text_string_to_metric_families(answer.text)}

        assert answer.headers["content-type"].startswith("text/plain")
        assert {
            "wakeful_events",
            "wakeful_bus_position",
            "wakeful_http_requests",
            "wakeful_http_lasting",
        } <= set(families)
        finished = [
            sample.value
            for sample in families["wakeful_events"].samples
            if sample.labels.get("kind") == "turn.finished"
            and sample.name == "wakeful_events_total"
        ]
        assert finished == [1.0]


async def test_every_route_is_in_the_openapi_document():
    async with house() as home, home.client(home.operator) as client:
        document = (await client.get("/openapi.json")).json()
        page = (await client.get("/docs")).text

        described = {
            (method.upper(), path)
            for path, methods in document["paths"].items()
            for method in methods
        }
        assert described == {(row.method, row.path) for row in home.table}
        asked = document["paths"]["/api/search"]["get"]["parameters"]
        assert [one["name"] for one in asked if one["required"]] == ["q"]
        assets = re.findall(r'(?:src|href)="([^"]+)"', page)
        assert assets
        for asset in assets:
            assert (await client.get(asset)).status_code == 200


HOURLY = {"kind": "every", "every_s": 3600}

# Tested where there is something to be found.
ELSEWHERE = (
    "/api/outputs/{id}",
    "/api/stimuli/{id}/attachments/{hash}",
    "/api/sessions/{key}/attachments/",
    "/api/deliveries/",
    "/api/approvals/{id}",
)


async def test_every_route_that_looks_answers_on_postgresql_too(migrated_url: str):
    async with (
        house(settings=Settings(database=migrated_url, drain_s=1)) as home,
        home.client(home.operator) as client,
        home.client(await home.token("send", name="a")) as owner,
    ):
        path = "/api/sessions/api:a/messages?wait=10"
        receipt = (await owner.post(path, json={"text": "a"})).json()
        await spoken(home)
        item = await home.runtime.post("x")
        wish = {"name": "x", "schedule": HOURLY, "message": "x", "session_key": "api:a"}
        job = (await owner.post("/api/automations", json=wish)).json()
        run_id = (await owner.post("/api/automations/x/run")).json()["run_id"]
        names = {"key": "api:a", "id": receipt["turn"]["id"], "name": "x"}
        for row in home.table:
            if row.method != "GET" or row.streams:
                continue
            ids = names | {"id": receipt["stimulus_id"]} if "stimuli" in row.path else names
            ids = ids | {"id": "main"} if "agents" in row.path else ids
            ids = ids | {"id": item.stimulus_id} if "inbox" in row.path else ids
            ids = ids | {"id": job["id"]} if "automations" in row.path else ids
            ids = ids | {"id": run_id} if row.path.startswith("/api/runs") else ids
            if row.path.startswith(ELSEWHERE):
                continue
            for one in (client, owner):
                query = {"q": "a"} if row.path == "/api/search" else {}
                answer = await one.get(row.path.format(**ids), params=query)
                may = one is client or row.scope in ("public", "any")
                refusal = 404 if row.is_hidden else 403
                assert answer.status_code == (200 if may else refusal), row.path
        for one, count in ((client, 2), (owner, 1)):
            first = (await one.get("/api/sessions?limit=1")).json()
            rest = (await one.get("/api/sessions", params={"after": first["next"] or "0.x"})).json()
            found = [item["key"] for item in first["items"] + rest["items"]]
            assert len([key for key in found if not key.endswith(":activity")]) == count
            assert (
                len((await one.get("/api/stimuli?state=done&origin=user")).json()["items"]) == count
            )
