"""Quiet hours by the operator's word: over HTTP and by command."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.http.serving import house
from tests.integration.http.test_commands import said
from wakeful.models.scripted import Scripted
from wakeful.testing.kit import operator_draft
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.stimulus import Outcome

NOT_QUIET = {"is_quiet": False, "until": None, "by": None}
AT = "/api/agents/main/quiet"


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="milliseconds")


async def test_it_is_begun_shown_and_ended_and_what_waited_goes_on():
    until = in_an_hour()
    async with house(Scripted(["well"])) as home, home.client(home.operator) as client:
        before = (await client.get(AT)).json()
        begun = (await client.put(AT, json={"until": until})).json()
        shown = (await client.get("/api/agents/main")).json()["quiet"]
        job = operator_draft("agent:main:main", "report", kind=Kind.AUTOMATION, source="cron:daily")
        parked = await home.runtime.accept(job)
        ended = (await client.put(AT, json={"until": None})).json()
        turn = await home.runtime.wait(parked)
        again = (await client.put(AT, json={"until": None})).json()
        acts = await home.runtime.store.read("SELECT action, target FROM audit ORDER BY id")

    assert before == ended == again == NOT_QUIET
    assert begun == shown
    assert (begun["is_quiet"], begun["by"]) == (True, "operator")
    assert datetime.fromisoformat(begun["until"]) == datetime.fromisoformat(until)
    assert (parked.outcome, parked.reason) == (Outcome.PARKED, "quiet-hours")
    assert turn is not None
    assert turn.reply == "well"
    assert [tuple(row) for row in acts if row[0] == "quiet"] == [("quiet", "main")] * 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"until": "07:00"}, "until"),
        ({"until": "2001-01-01T00:00:00Z"}, "until"),
        ({"until": "2999-01-01T00:00:00Z"}, "until"),
        ({"until": None, "by": "me"}, "body"),
    ],
)
async def test_a_time_that_means_nothing_is_refused(body: dict[str, object], field: str):
    async with house(Scripted([])) as home, home.client(home.operator) as client:
        refused = await client.put(AT, json=body)
        shown = (await client.get(AT)).json()

    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert shown == NOT_QUIET


async def test_whoever_only_looks_changes_nothing_and_nobody_is_not_found():
    async with house(Scripted([])) as home, home.client(await home.token("read")) as client:
        seen = await client.get(AT)
        refused = await client.put(AT, json={"until": in_an_hour()})
        nobody = await client.get("/api/agents/nobody/quiet")

    assert (seen.status_code, refused.status_code, nobody.status_code) == (200, 403, 404)


async def test_the_command_shows_begins_and_ends_it():
    async with house(Scripted([])) as home, home.client(home.operator) as client:
        before = (await said(client, "/quiet"))["reply"]
        begun = (await said(client, "/quiet until 07:00"))["reply"]
        shown = (await said(client, "/quiet"))["reply"]
        ended = (await said(client, "/quiet off"))["reply"]
        wrong = [(await said(client, f"/quiet {word}"))["reply"] for word in ("x", "until", "on")]
        no_time = (await said(client, "/quiet until 25:00"))["reply"]
        for_a_while = (await said(client, "/quiet for 2 hours"))["reply"]

    assert before == ended == "Not quiet. /quiet until 07:00 leaves you in peace until then."
    assert begun == shown
    assert begun.startswith("Quiet until ")
    assert " 07:00 " in begun
    assert begun.endswith("by the operator's word. /quiet off ends it.")
    assert all(reply.startswith("/quiet [until 07:00 | for 2h | off]: must be") for reply in wrong)
    assert "must be a time from 00:00 to 23:59" in no_time
    assert for_a_while.startswith("Quiet until ")


async def test_only_the_operator_may_use_the_command():
    text = {"text": "/quiet off"}
    async with house(Scripted([])) as home, home.client(await home.token("send")) as client:
        answer = await client.post("/api/sessions/api:mine/messages", json=text)

    assert answer.json()["reply"] == "Only the operator may use /quiet."
