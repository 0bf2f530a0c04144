"""`/cron`: this session's automations, listed, shown, and changed by the operator alone."""

import httpx2

from tests.integration.http.serving import house
from tests.integration.http.test_automations import AT, made, owned
from tests.integration.http.test_commands import said
from wakeful.testing.kit import ManualClock, wait_for


async def replied(client: httpx2.AsyncClient, text: str, session: str = "main") -> str:
    return (await said(client, text, session))["reply"]


async def test_alone_it_lists_the_automations_of_this_session():
    async with house(clock=ManualClock()) as home, home.client(home.operator) as client:
        nothing = await replied(client, "/cron")
        await made(client)
        await made(client, name="hourly", schedule={"kind": "every", "every_s": 3600})
        await made(client, name="elsewhere", session_key="system:activity")
        await client.post(f"{AT}/hourly/pause")
        listed = await replied(client, "/cron")

    assert nothing.startswith("No automation runs here.")
    assert listed.splitlines() == [
        "hourly: paused (every 1h)",
        "daily: on, next in 1d (cron 0 9 * * *, Europe/Berlin)",
    ]


async def test_it_shows_when_an_automation_is_due_on_its_own_clocks():
    async with house(clock=ManualClock()) as home, home.client(home.operator) as client:
        job = await made(client)
        shown = await replied(client, "/cron show daily")
        times = await replied(client, f"/cron next {job['id']}")

    assert job["id"] in shown
    assert "says: look at the news" in shown
    assert times.count(" CET") == 5
    assert times.startswith("next: 2027-01-16 09:00:00 CET, 2027-01-17 09:00:00 CET")


async def test_the_operator_pauses_resumes_runs_and_removes():
    async with house(clock=ManualClock()) as home, home.client(home.operator) as client:
        await made(client)
        answers = [await replied(client, f"/cron {what} daily") for what in ("pause", "resume")]
        ran = await replied(client, "/cron run daily")
        await wait_for(home.runtime, "automation.ok")
        gone = await replied(client, "/cron rm daily")
        unknown = await replied(client, "/cron rm daily")
        wrong = await replied(client, "/cron dance daily")
        bare = await replied(client, "/cron pause")
        audit = await home.runtime.store.read("SELECT who, action FROM audit ORDER BY id")

    assert answers == ["daily is paused. /cron resume lets it go on.", "daily goes on, next in 1d."]
    assert ran == "daily runs as soon as its session is idle."
    assert gone == "daily is gone."
    assert "no automation 'daily'" in unknown
    assert "must be nothing, or show" in wrong
    assert "must be nothing, or show" in bare
    done = [row[1] for row in audit if row[1].startswith("automations.")]
    assert done == [f"automations.{what}" for what in ("add", "pause", "resume", "run", "remove")]


async def test_a_name_means_the_automation_of_this_session_first():
    async with house() as home, home.client(home.operator) as client:
        here = await made(client)
        await client.post(f"{AT}/daily/pause")
        await made(client, session_key="system:activity")
        shown = await replied(client, "/cron show daily")
        elsewhere = await replied(client, "/cron show daily", "api:x")

    assert here["id"] in shown
    assert "is the name of several" in elsewhere


async def test_a_command_that_comes_again_with_its_key_runs_nothing_twice():
    async with house() as home, home.client(home.operator) as client:
        await made(client)
        first, again = [await said(client, "/cron run daily", dedup_key="once") for _ in range(2)]
        await wait_for(home.runtime, "automation.ok")
        runs = (await client.get(f"{AT}/daily/runs")).json()["items"]

    assert first["reply"] == again["reply"]
    assert len(runs) == 1


async def test_whoever_is_not_the_operator_looks_at_their_own_and_changes_nothing():
    async with (
        house() as home,
        home.client(home.operator) as operator,
        home.client(await home.token("send", name="a")) as a,
    ):
        await made(operator, name="secret")
        await owned(home, a, "mine")
        await made(a, name="mine", session_key="api:mine")
        listed = await replied(a, "/cron", "api:mine")
        foreign = await replied(a, "/cron show secret", "api:mine")
        refused = [
            await replied(a, f"/cron {what} mine", "api:mine")
            for what in ("pause", "resume", "run", "rm")
        ]
        job = (await a.get(f"{AT}/mine")).json()

    assert listed.startswith("mine: on")
    assert "no automation 'secret'" in foreign
    assert set(refused) == {"Only the operator changes automations here."}
    assert job["enabled"]
