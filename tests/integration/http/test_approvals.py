"""Approvals over HTTP: listed, decided once, and not there for anybody but the operator."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.http.serving import Frame, House, following, house, is_time, take
from wakeful.models.model import Request
from wakeful.models.scripted import call, says
from wakeful.tools.tool import tool
from wakeful.vocabulary.stimulus import Trust

acts: list[str] = []


@tool
def act(what: str = "") -> str:
    """Act."""
    acts.append(what)
    return f"did {what}"


def speaks(request: Request) -> Any:
    return "done" if "Approval #" in request.messages[-1].text else says("", call("act", what="x"))


async def asked(home: House, session: str = "main") -> None:
    async with home.client(home.operator) as client:
        await client.post(f"/api/sessions/{session}/messages?wait=10", json={"text": "go"})


async def until_finished(source: AsyncIterator[Frame | str]) -> list[str]:
    """Return the kinds of events up to the end of a turn."""
    found: list[str] = []
    while "turn.finished" not in found:
        found += [frame.kind for frame in await take(source, 1)]
    return found


async def test_an_approval_has_the_fields_of_the_contract_and_is_decided_once():
    acts.clear()
    async with (
        house(speaks, tools=[act], approvals={"act": "ask"}) as home,
        home.client(home.operator) as client,
    ):
        await asked(home)
        (row,) = (await client.get("/api/approvals?state=open")).json()["items"]
        decided = await client.post(
            f"/api/approvals/{row['id']}", json={"decision": "approve", "note": "go on"}
        )
        again = await client.post("/api/approvals/1", json={"decision": "deny"})
        turn = (await client.get(f"/api/turns/{row['turn_id']}/why")).json()["chain"][0]
        agent = (await client.get("/api/agents/main")).json()
        none = (await client.get("/api/approvals?state=open")).json()
        unknown = await client.get("/api/approvals/99")
        wrong = await client.post("/api/approvals/1", json={"decision": "perhaps"})

    assert {
        "number": 1,
        "kind": "tool",
        "session_key": "agent:main:main",
        "tool": "act",
        "arguments": {"what": "x"},
        "question": None,
        "state": "open",
        "note": None,
        "decided_by": None,
    }.items() <= row.items()
    assert is_time(row["created_at"])
    assert is_time(row["expires_at"])
    assert decided.status_code == 200
    assert decided.json()["state"] == "granted"
    assert decided.json()["note"] == "go on"
    assert (again.status_code, again.json()["code"]) == (409, "too-late")
    assert [one["number"] for one in turn["approvals"]] == [1]
    assert agent["approvals"] == 0
    assert none == {"items": [], "next": None}
    assert unknown.status_code == 404
    assert wrong.status_code == 422


async def test_approvals_are_paged_newest_first():
    def many(request: Request) -> Any:
        calls = [call("act", f"c{number}", what=str(number)) for number in range(5)]
        return says("", *calls)

    async with (
        house(many, tools=[act], approvals={"act": "ask"}) as home,
        home.client(home.operator) as client,
    ):
        await asked(home)
        seen: list[int] = []
        cursor: str | None = ""
        while cursor is not None:
            after = f"&after={cursor}" if cursor else ""
            page = (await client.get(f"/api/approvals?limit=2{after}")).json()
            seen += [one["number"] for one in page["items"]]
            cursor = page["next"]
        agent = (await client.get("/api/agents/main")).json()
        counts = (await client.get("/api/counts")).json()

    assert seen == [5, 4, 3, 2, 1]
    assert counts["approvals"] == 5
    assert agent["approvals"] == 5


@pytest.mark.parametrize("scope", ["send", "read", "inbox:feed"])
async def test_nobody_but_the_operator_learns_that_there_are_approvals(scope: str):
    async with house(speaks, tools=[act], approvals={"act": "ask"}) as home:
        await asked(home)
        token = (
            await home.token(scope, trust=Trust.OPERATOR)
            if scope == "send"
            else (await home.token(scope))
        )
        async with home.client(token) as client:
            refusals = [
                await client.get("/api/approvals"),
                await client.get("/api/approvals/1"),
                await client.post("/api/approvals/1", json={"decision": "approve"}),
                await client.post("/api/approvals/1", json={"nonsense": 1}),
            ]
            unknown = await client.get("/api/no-such-thing")
        rows = await home.runtime.approvals()

    assert {(one.status_code, one.content) for one in refusals} == {(404, unknown.content)}
    assert [one.number for one in rows] == [1]


async def test_the_owner_of_a_session_hears_no_event_of_an_approval_there():
    async with house(speaks, tools=[act], approvals={"act": "ask"}) as home:
        token = await home.token("send", trust=Trust.OPERATOR)
        async with (
            home.client(token) as client,
            home.client(home.operator) as operator,
            following(client) as own,
            following(operator) as all_of_it,
        ):
            await client.post("/api/sessions/api:mine/messages?wait=10", json={"text": "go"})
            said = await client.post("/api/sessions/api:mine/messages", json={"text": "/approve 1"})
            heard = await until_finished(own)
            operators = await until_finished(all_of_it)
        rows = await home.runtime.approvals()

    assert said.json()["reply"] == "Only the operator may use /approve."
    assert not any(kind.startswith("approval.") for kind in heard)
    assert "approval.asked" in operators
    assert [one.state for one in rows] == ["open"]


async def test_commands_approve_and_deny():
    acts.clear()
    async with (
        house(speaks, tools=[act], approvals={"act": "ask"}) as home,
        home.client(home.operator) as client,
    ):
        await asked(home)
        await asked(home, "api:b")
        path = "/api/sessions/main/messages"
        replies = [
            (await client.post(path, json={"text": text})).json()["reply"]
            for text in ("/deny 2 no", "/approve #1", "/approve 1", "/approve", "/deny 77")
        ]

    assert replies[:2] == ["Denied #2: act.", "Approved #1: act."]
    assert "decided before" in replies[2]
    assert replies[3] == "Nobody waits for an answer."
    assert "no approval '77'" in replies[4]
