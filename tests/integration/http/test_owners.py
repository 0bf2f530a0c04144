"""What one owner has made, another neither sees nor touches, nor learns that it is there."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.integration.http.serving import House, following, house, take
from wakeful.automations import runs
from wakeful.doors.http.server import HttpOptions
from wakeful.models.model import Reply, Request
from wakeful.models.scripted import Pause, call, says
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.tools.running import LONGEST_RESULT
from wakeful.tools.tool import tool
from wakeful.vocabulary.automation import AutomationRun, RunCause, RunState
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft, ReadyAttachment, Trust

SESSION = "agent:main:api:a"
OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"  # SHA-256 of "a"


NAMES = ("key", "turn", "stimulus", "entry", "delivery", "job", "run")
DAY = {"kind": "every", "every_s": 86_400}


@tool(effect="read", is_for_external=True)
def tell_all() -> str:
    """Say more than a model is shown."""
    return "x" * (LONGEST_RESULT + 1)


def speaks(request: Request) -> str | Reply:
    return "well" if request.step > 1 else says("", call("tell_all"))


async def owned(home: House, client: httpx2.AsyncClient) -> dict[str, str]:
    """Have an owner make a session, and return every id there is in it."""
    receipt = (
        await client.post(
            f"/api/sessions/{SESSION}/messages?wait=10",
            json={
                "text": "mine",
                "attachments": [{"name": "a", "media_type": "text/plain", "data": "YQ=="}],
            },
        )
    ).json()
    entries = (await client.get(f"/api/sessions/{SESSION}/entries")).json()["items"]
    file = ReadyAttachment(name="a", media_type="text/plain", size=1, hash=OF_A, data="YQ==")
    delivery = "dl_of_a_session"

    def send(tx: Tx) -> None:
        along, key = Along(attachments=(file,)), receipt["session_key"]
        outbox.file(
            tx, delivery, Route(door="out"), "x", session_key=key, turn_id=None, along=along
        )

    await home.runtime.store.transact(send)
    wish = {"name": "daily", "schedule": DAY, "message": "x", "session_key": SESSION}
    job = (await client.post("/api/automations", json=wish)).json()["id"]
    run = AutomationRun(
        id=f"{job}:1000",
        job_id=job,
        job_name="daily",
        agent_id="main",
        session_key=SESSION,
        cause=RunCause.SCHEDULE,
        scheduled_at=1000,
        filed_at=1000,
        starts_at=1000,
        late_ms=0,
        revision=1,
        state=RunState.SKIPPED,
        ended_at=1000,
    )
    await home.runtime.store.transact(lambda tx: runs.add(tx, [run]))
    return {
        "key": SESSION,
        "stimulus": receipt["stimulus_id"],
        "turn": receipt["turn"]["id"],
        "entry": entries[0]["id"],
        "delivery": delivery,
        "job": job,
        "run": run.id,
    }


def is_upheaval(method: str, path: str) -> bool:
    """Tell whether nothing in a session is afterwards as it was."""
    is_gone = method == "DELETE" and ("/sessions/" in path or "/automations/" in path)
    return path.endswith(("/reset", "/fork")) or is_gone


def routes_to(ids: dict[str, str]) -> list[tuple[str, str, Any]]:
    key, turn, stimulus = ids["key"], ids["turn"], ids["stimulus"]
    job = f"/api/automations/{ids['job']}"
    return [
        ("GET", f"/api/sessions/{key}", None),
        ("GET", f"/api/sessions/{key}/entries", None),
        ("GET", f"/api/sessions/{key}/entries?after={ids['entry']}", None),
        ("GET", f"/api/sessions/{key}/export", None),
        ("GET", f"/api/sessions/{key}/transcripts", None),
        ("GET", f"/api/sessions/{key}/labels", None),
        ("POST", f"/api/sessions/{key}/stop", None),
        ("POST", f"/api/sessions/{key}/compact", {}),
        ("POST", f"/api/sessions/{key}/undo-compaction", None),
        ("POST", f"/api/sessions/{key}/reset", None),
        ("POST", f"/api/sessions/{key}/fork", {"at": ids["entry"]}),
        ("POST", f"/api/sessions/{key}/labels", {"entry_id": ids["entry"], "label": "x"}),
        ("DELETE", f"/api/sessions/{key}", None),
        ("PATCH", f"/api/sessions/{key}", {"label": "x"}),
        ("POST", f"/api/sessions/{key}/seen", {}),
        ("POST", f"/api/sessions/{key}/messages", {"text": "x"}),
        ("POST", f"/api/sessions/{key}/stream", {"text": "x"}),
        ("GET", f"/api/stimuli/{stimulus}", None),
        ("GET", f"/api/stimuli/{stimulus}/attachments/{OF_A}", None),
        ("GET", f"/api/sessions/{key}/attachments", None),
        ("GET", f"/api/sessions/{key}/attachments/{OF_A}", None),
        ("GET", f"/api/deliveries/{ids['delivery']}", None),
        ("GET", f"/api/deliveries/{ids['delivery']}/attachments/{OF_A}", None),
        ("DELETE", f"/api/stimuli/{stimulus}", None),
        ("GET", f"/api/turns/{turn}", None),
        ("GET", f"/api/turns/{turn}/wait", None),
        ("POST", f"/api/turns/{turn}/abort", None),
        ("GET", f"/api/turns/{turn}/why", None),
        ("GET", f"/api/outputs/{turn}.1.0", None),
        ("GET", job, None),
        ("GET", f"{job}/runs", None),
        ("GET", f"/api/runs/{ids['run']}", None),
        ("PATCH", job, {"description": "x"}),
        ("POST", f"{job}/pause", None),
        ("POST", f"{job}/resume", None),
        ("POST", f"{job}/run", None),
        ("DELETE", job, None),
    ]


LISTS = (
    *("/api/sessions", "/api/stimuli", f"/api/stimuli?session={SESSION}"),
    *("/api/turns", f"/api/turns?session={SESSION}"),
    *("/api/automations", f"/api/automations?session={SESSION}"),
)


async def leaks(home: House) -> list[str]:
    """Return the routes that tell one owner more of what another has made than of nothing."""
    found: list[str] = []
    async with (
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("send", name="b")) as b,
    ):
        ids = await owned(home, a)
        unknown = {name: f"{value[:-3]}000" for name, value in ids.items()} | {
            "key": "agent:main:unknown"
        }
        pairs = zip(routes_to(ids), routes_to(unknown), strict=True)
        for (method, path, body), (_, other, _) in pairs:
            foreign = await b.request(method, path, json=body)
            missing = await b.request(method, other, json=body)
            is_alike = foreign.status_code == missing.status_code == 404 and (
                set(foreign.json()) == set(missing.json())
                and foreign.json()["title"] == missing.json()["title"]
            )
            if not is_alike:
                found.append(f"{method} {path}")
        for path in LISTS:
            if (await b.get(path)).json() != {"items": [], "next": None}:
                found.append(f"GET {path}")
    return found


async def test_every_id_of_one_owner_is_unknown_to_another_on_every_route():
    """T19: forbidden and unknown look alike."""
    async with house(speaks, tools=[tell_all]) as home:
        assert await leaks(home) == []
        assert len(await home.runtime.store.read("SELECT id FROM stimuli")) == 1


@pytest.mark.parametrize("rule", ["sees", "sees_all", "may_see"])
async def test_a_build_that_forgets_the_owner_is_caught(rule: str, monkeypatch: pytest.MonkeyPatch):
    """I21: the walk over all routes is worth what it finds."""

    def always(*_: object) -> bool:
        return True

    monkeypatch.setattr(f"wakeful.access.rules.{rule}", always)
    async with house(speaks, tools=[tell_all]) as home:
        assert await leaks(home)


async def test_every_route_that_names_something_is_walked():
    async with house() as home:
        named = {
            (row.method, row.path)
            for row in home.table
            if "{" in row.path and row.scope not in ("operator", "read", "inbox:*", "signed")
        }

        assert len(named) == len(routes_to(dict.fromkeys(NAMES, ""))) - 1


async def test_an_owner_uses_its_own_sessions_and_the_operator_all():
    async with (
        house(speaks, tools=[tell_all]) as home,
        home.client(home.operator) as operator,
        home.client(await home.token("send", name="a")) as a,
    ):
        ids = await owned(home, a)
        for client in (a, operator):
            for method, path, body in routes_to(ids):
                if is_upheaval(method, path):
                    continue
                answer = await client.request(method, path, json=body)
                # There is no compaction that could be undone, which only its owner is told.
                expected = (422, 409) if path.endswith("/undo-compaction") else (200, 202, 409)
                assert answer.status_code in expected, path
            found = (await client.get("/api/sessions")).json()["items"]
            assert len([one for one in found if not one["key"].endswith(":activity")]) == 1


async def test_whoever_may_read_everything_changes_only_their_own():
    async with (
        house(speaks, tools=[tell_all]) as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("read", "send", name="b")) as b,
    ):
        theirs = await owned(home, a)
        await home.runtime.wait(await home.runtime.send("the operator's"))
        before = await home.runtime.store.read("SELECT * FROM sessions ORDER BY key")
        for key in (SESSION, "main", "subagent:1", "activity"):
            for method, path, body in routes_to({**theirs, "key": key}):
                answer = await b.request(method, path, json=body)
                if method != "GET":
                    assert answer.status_code == 404, path
                elif key == SESSION:
                    assert answer.status_code == 200, path
        own = await b.post("/api/sessions/api:b/messages?wait=10", json={"text": "mine"})
        renamed = await b.patch("/api/sessions/api:b", json={"label": "mine"})

        assert (own.status_code, renamed.status_code) == (200, 200)
        kept = await home.runtime.store.read(
            "SELECT * FROM sessions WHERE key <> 'agent:main:api:b' ORDER BY key"
        )
        assert kept == before


ALIASES = (
    *("main", "agent:main:main", "agent%3Amain%3Amain", "system:activity", "activity", "main/"),
    *("MAIN", "Agent:main:main", "agent:main:~6dain", "agent:MAIN:main", "%6dain", " main"),
    *("agent:main:api:theirs", "api:theirs", "api:%74heirs", "api:~74heirs", "api:THEIRS"),
)


async def test_no_spelling_of_a_key_leads_into_a_session_of_another_owner():
    async with house() as home, home.client(home.operator) as operator:
        for key in ("main", "activity", "api:theirs"):
            await operator.post(f"/api/sessions/{key}/messages?wait=10", json={"text": "mine"})
        before = await home.runtime.store.read("SELECT * FROM sessions ORDER BY key")
        tried = [
            route
            for alias in ALIASES
            for route in routes_to({**dict.fromkeys(NAMES, "x"), "key": alias})
            if "/sessions/" in route[1]
        ]
        async with home.client(await home.token("send", name="b")) as stranger:
            for method, path, body in tried:
                answer = await stranger.request(method, path, json=body)
                assert answer.status_code == 404, path

        assert await home.runtime.store.read("SELECT * FROM sessions ORDER BY key") == before


async def test_the_name_of_a_deleted_session_stays_with_its_owner():
    async with (
        house() as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("send", name="b")) as b,
    ):
        path = "/api/sessions/api:x"
        await a.post(f"{path}/messages?wait=10", json={"text": "mine"})
        deleted = await a.delete(path)
        foreign = await b.post(f"{path}/messages", json={"text": "x"})
        await b.post("/api/sessions/api:b/messages?wait=10", json={"text": "x"})
        forked = await b.post("/api/sessions/api:b/fork", json={"to": "api:x"})
        seen = await b.get("/api/stimuli?session=api:x")
        own = await a.post(f"{path}/messages?wait=10", json={"text": "again"})

        assert deleted.json() == {"deleted": True}
        assert (foreign.status_code, forked.status_code, own.status_code) == (404, 404, 200)
        assert seen.json()["items"] == []


async def test_a_session_that_the_operator_makes_anew_is_closed_to_its_old_owner():
    async with (
        house() as home,
        home.client(home.operator) as operator,
        home.client(await home.token("send", name="a")) as a,
    ):
        path = "/api/sessions/api:x"
        first = (await a.post(f"{path}/messages?wait=10", json={"text": "mine"})).json()
        await a.delete(path)
        await operator.post(f"{path}/messages?wait=10", json={"text": "not yours"})

        for other in (path, f"/api/turns/{first['turn']['id']}"):
            assert (await a.get(other)).status_code == 404


async def test_a_session_that_the_operator_forks_off_another_s_is_the_operator_s():
    async with (
        house() as home,
        home.client(home.operator) as operator,
        home.client(await home.token("send", name="a")) as a,
    ):
        await a.post("/api/sessions/api:x/messages?wait=10", json={"text": "mine"})
        await operator.post("/api/sessions/api:x/fork", json={"to": "main"})
        await operator.post("/api/sessions/main/messages?wait=10", json={"text": "not yours"})
        read = await a.get("/api/sessions/main/entries")
        said = await a.post("/api/sessions/main/messages", json={"text": "let me in"})
        own = (await a.get("/api/sessions/api:x/entries")).json()["items"]
        whole = (await operator.get("/api/sessions/main/entries")).json()["items"]
        left = await a.get("/api/sessions/api:x/export")

    assert (read.status_code, said.status_code) == (404, 404)
    assert (len(own), len(whole)) == (2, 4)
    assert "not yours" not in left.text


async def test_a_token_is_told_which_names_it_may_use_by_the_name_alone():
    async with (
        house() as home,
        home.client(home.operator) as operator,
        home.client(await home.token("send", name="a")) as a,
    ):
        path = "/api/sessions/main/messages"
        before = (await a.post(path, json={"text": "hello"})).json()
        await operator.post(f"{path}?wait=10", json={"text": "hello"})
        after = (await a.post(path, json={"text": "hello"})).json()
        await operator.post("/api/sessions/api:x/messages?wait=10", json={"text": "hello"})
        taken = (await a.post("/api/sessions/api:x/messages", json={"text": "hello"})).json()

    assert before == after
    assert "it writes to sessions that it made" in before["detail"]
    assert "'api:…'" in before["detail"]
    assert taken["detail"] == "no session 'agent:main:api:x'"


@pytest.mark.parametrize(
    "key",
    ["main", "agent:main:main", "system:activity", "agent:main:subagent:x", "agent:nobody:api:x"],
)
async def test_an_owner_makes_sessions_only_where_it_may(key: str):
    """T12: not the caller chooses where its words land."""
    async with house() as home, home.client(await home.token("send")) as client:
        for path in (f"/api/sessions/{key}/messages", f"/api/sessions/{key}/stream"):
            assert (await client.post(path, json={"text": "a"})).status_code == 404
        for key_of_own in ("api:x", "agent:main:api:x:thread:y"):
            answer = await client.post(f"/api/sessions/{key_of_own}/messages", json={"text": "a"})
            assert answer.status_code == 202


async def test_what_an_owner_sends_has_the_trust_and_name_of_its_token():
    async with house() as home, home.client(await home.token("send", name="phone")) as client:
        sent = await client.post("/api/sessions/api:x/messages", json={"text": "a"})
        forged = await client.post(
            "/api/sessions/api:x/messages", json={"text": "a", "source": "operator"}
        )
        stimulus = (await client.get(f"/api/stimuli/{sent.json()['stimulus_id']}")).json()

        assert (stimulus["trust"], stimulus["source"]) == ("external", "phone")
        assert forged.status_code == 403


async def test_a_stream_carries_nothing_of_another_owner():
    """T19: nor does a stream tell."""
    async with (
        house() as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("send", name="b")) as b,
        home.client(home.operator) as operator,
        following(b) as told,
    ):
        await owned(home, a)
        await operator.post("/api/halt", json={"agent": "main"})
        await operator.post("/api/resume", json={"agent": "main"})
        await b.post("/api/sessions/api:b/messages", json={"text": "x"})
        seen = await take(told, 3)

    assert {frame.data["session_key"] for frame in seen} == {"agent:main:api:b"}


async def test_an_owner_hears_that_its_session_was_deleted_and_nothing_of_the_next_one():
    async with (
        house() as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(home.operator) as operator,
        following(a, "?topics=session.*") as told,
    ):
        path = "/api/sessions/api:x"
        await a.post(f"{path}/messages?wait=10", json={"text": "mine"})
        await operator.delete(path)
        seen = await take(told, 2)
        await operator.post(f"{path}/messages?wait=10", json={"text": "not yours"})
        await operator.delete(path)
        await a.post("/api/sessions/api:y/messages?wait=10", json={"text": "mine"})
        seen += await take(told, 1)

    assert [(frame.kind, frame.data["session_key"]) for frame in seen] == [
        ("session.created", "agent:main:api:x"),
        ("session.deleted", "agent:main:api:x"),
        ("session.created", "agent:main:api:y"),
    ]


async def test_a_replay_carries_nothing_of_another_owner():
    async with house() as home:
        start = (await home.runtime.cursor()).rpartition("-")[0] + "-0"
        async with (
            home.client(await home.token("send", name="a")) as a,
            home.client(await home.token("send", name="b")) as b,
        ):
            await owned(home, a)
            await b.post("/api/sessions/api:b/messages?wait=10", json={"text": "x"})
            async with following(b, f"?since={start}") as told:
                seen = await take(told, 5)

    assert {frame.data["session_key"] for frame in seen} == {"agent:main:api:b"}


async def test_two_owners_racing_for_a_session_get_it_once():
    async with house() as home:
        drafts = [
            Draft(
                session_key="agent:main:web:race",
                trust=Trust.OPERATOR,
                text=name,
                owner=name,
                scope=name,
            )
            for name in ("tk_a", "tk_b")
        ]
        answers = await asyncio.gather(
            *(home.runtime.accept(draft) for draft in drafts), return_exceptions=True
        )

        assert sorted(isinstance(answer, NotFound) for answer in answers) == [False, True]
        rows = await home.runtime.store.read(
            "SELECT stimuli.text, sessions.owner FROM stimuli, sessions "
            "WHERE sessions.key = stimuli.session_key"
        )
        assert len(rows) == 1
        assert rows[0][0] == rows[0][1]


async def test_a_reader_sees_every_session_and_sends_to_none():
    pause = Pause("busy")
    async with house([pause]) as home, home.client(await home.token("read")) as reader:
        await home.runtime.send("hello")
        await pause.reached.wait()

        found = {one["key"] for one in (await reader.get("/api/sessions")).json()["items"]}
        assert found == {"agent:main:main", "agent:main:activity"}
        answer = await reader.post("/api/sessions/main/messages", json={"text": "a"})
        assert answer.status_code == 403
        pause.go_on.set()


async def test_an_inbox_token_sees_and_sends_nothing():
    async with house() as home, home.client(await home.token("inbox:github")) as client:
        await home.runtime.send("hello")

        assert (await client.get("/api/sessions")).json()["items"] == []
        assert (await client.get("/api/agents")).status_code == 403
        answer = await client.post("/api/sessions/api:x/messages", json={"text": "a"})
        assert answer.status_code == 403


async def test_nobody_but_the_operator_makes_a_session_under_a_name_that_people_choose():
    """T12: whoever was there first would read what the operator writes later."""
    async with (
        house() as home,
        home.client(await home.token("send")) as sender,
        home.client(home.operator) as operator,
    ):
        squatted = await sender.post("/api/sessions/web:desk/messages", json={"text": "mine"})
        said = await operator.post("/api/sessions/web:desk/messages?wait=10", json={"text": "4711"})
        read = await sender.get("/api/sessions/web:desk/entries")

    assert (squatted.status_code, said.status_code, read.status_code) == (404, 200, 404)


async def test_a_token_sends_only_so_much_in_a_day():
    """T10: whatever is said is kept, and files with it."""
    clock = ManualClock()
    options = HttpOptions(port=0, megabytes_per_day=1)
    word, file = "x" * 300_000, {"name": "a", "media_type": "text/plain", "data": "eHh4" * 50_000}
    async with (
        house(clock=clock, options=options) as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("send", name="b")) as b,
        home.client(home.operator) as operator,
    ):
        path = "/api/sessions/api:{}/messages"
        with_file = await a.post(path.format(0), json={"text": word, "attachments": [file]})
        as_words = await a.post(path.format(0), json={"text": word})
        again = [await a.post(path.format(0), json={"text": word}) for _ in range(2)]
        others = [await one.post(path.format(1), json={"text": word}) for one in (b, operator)]
        small = await said_in(a, "api:0")
        clock.advance(25 * 3600)
        later = await a.post(path.format(0), json={"text": word})

    assert [one.status_code for one in (with_file, as_words, *again)] == [202, 202, 429, 429]
    assert 23 * 3600 < int(again[-1].headers["retry-after"]) <= 24 * 3600
    assert {one.status_code for one in (*others, small, later)} == {202}


async def test_a_token_makes_only_so_many_sessions_in_an_hour():
    """T10: each new session is a lane, a turn and a question to a model."""
    clock = ManualClock()
    options = HttpOptions(port=0, sessions_per_hour=3)
    async with (
        house(clock=clock, options=options) as home,
        home.client(await home.token("send", name="a")) as a,
        home.client(await home.token("send", name="b")) as b,
        home.client(home.operator) as operator,
    ):
        made = [await said_in(a, f"api:{number}") for number in range(2)]
        await a.delete("/api/sessions/api:1")
        forked = await a.post("/api/sessions/api:0/fork", json={"to": "api:2"})
        refused = await said_in(a, "api:3")
        by_fork = await a.post("/api/sessions/api:0/fork", json={"to": "api:4"})
        again = await said_in(a, "api:0")
        others = [await said_in(b, "api:b"), *[await said_in(operator, f"x{n}") for n in range(5)]]
        clock.advance(3601)
        later = await said_in(a, "api:3")

    assert [answer.status_code for answer in (*made, forked, again, later)] == [
        202,
        202,
        200,
        202,
        202,
    ]
    assert {answer.status_code for answer in others} == {202}
    assert (refused.status_code, by_fork.status_code) == (429, 429)
    assert refused.json()["code"] == "too-many-requests"
    assert 3590 <= int(refused.headers["retry-after"]) <= 3600


async def test_a_restart_forgets_no_session_that_a_token_made(tmp_path: Path):
    """T10: whoever waits for the server to go down starts no second hour."""
    clock = ManualClock()
    options = HttpOptions(port=0, sessions_per_hour=2)
    settings = Settings(home=tmp_path, drain_s=1)
    async with house(clock=clock, options=options, settings=settings) as home:
        token = await home.token("send", name="a")
        async with home.client(token) as client:
            await said_in(client, "api:0")
            clock.advance(600)
            await said_in(client, "api:1")
    async with (
        house(clock=clock, options=options, settings=settings) as home,
        home.client(token) as client,
    ):
        refused = await said_in(client, "api:2")
        again = await said_in(client, "api:1")
        clock.advance(3001)
        later = await said_in(client, "api:2")

    assert [answer.status_code for answer in (refused, again, later)] == [429, 202, 202]
    assert 2990 <= int(refused.headers["retry-after"]) <= 3000


async def said_in(client: httpx2.AsyncClient, session: str) -> httpx2.Response:
    return await client.post(f"/api/sessions/{session}/messages", json={"text": "x"})
