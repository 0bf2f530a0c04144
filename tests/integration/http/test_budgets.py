"""Budgets and usage: over HTTP and by command."""

from datetime import datetime, timedelta

from tests.integration.gate.spending import costs, paid
from tests.integration.http.serving import house
from tests.integration.http.test_commands import said
from wakeful.models.tariffs import UNPRICED
from wakeful.vocabulary.budget import BudgetRules


async def test_what_is_left_is_shown_and_raised():
    async with house(paid([costs(100)])) as home, home.client(home.operator) as client:
        await said(client, "hello")
        (own, of_users) = (await client.get("/api/budgets?agent=main")).json()["items"]
        body = {"agent": "main", "money": 2.5, "turns": 10}
        raised = (await client.post("/api/budgets/raise", json=body)).json()
        command = await said(client, "/budget raise 1.00")
        shown = await said(client, "/budget")

    assert (own["scope"], of_users["scope"]) == ("agent", "origin:user")
    assert own["money"] == {
        "cap": 1.0,
        "spent": 0.001,
        "reserved": 0.0,
        "left_for_others": 0.8,
        "unpriced_calls": 0,
    }
    assert (raised["money"]["cap"], raised["turns"]["cap"], raised["released"]) == (3.5, 310, 0)
    assert command["reply"] == "Raised today's budget of main by $1.00."
    assert "main agent: $0.0010 of $4.50 spent" in shown["reply"]


async def test_a_raise_ends_with_the_longest_that_is_in_force():
    async with house(paid([])) as home, home.client(home.operator) as client:
        before = (await client.get("/api/budgets?agent=main")).json()["items"][0]
        end = datetime.fromisoformat(before["resets_at"]) + timedelta(days=7)
        raises = [
            {"agent": "main", "money": 1, "until": end.isoformat()},
            {"agent": "main", "money": 1},
        ]
        ends = [
            (await client.post("/api/budgets/raise", json=body)).json()["raised_until"]
            for body in raises
        ]

    assert before["raised_until"] is None
    assert [datetime.fromisoformat(one) for one in ends] == [end, end]


async def test_a_raise_that_means_nothing_is_refused():
    async with house(paid([])) as home, home.client(home.operator) as client:
        bodies = [
            {"agent": "main"},
            {"agent": "main", "money": -1},
            {"agent": "nobody", "money": 1},
            {"agent": "main", "money": 1, "until": "2001-01-01T00:00:00Z"},
            {"agent": "main", "money": 1, "scope": "origin:tick"},
        ]
        answers = [await client.post("/api/budgets/raise", json=body) for body in bodies]

    assert [answer.status_code for answer in answers] == [422, 422, 404, 422, 422]
    assert [answer.json()["field"] for answer in answers] == [
        "money",
        "money",
        "agent",
        "until",
        "scope",
    ]


async def test_who_is_parked_reads_why_and_until_when():
    model = paid([costs(4_000)])
    runtime_rules = BudgetRules(money_per_day=0.04)
    async with (
        house(model, budget=runtime_rules) as home,
        home.client(home.operator) as client,
    ):
        await said(client, "hello")
        answer = await client.post("/api/sessions/main/messages", json={"text": "more?"})
        budget = (await client.get("/api/budgets?agent=main")).json()["items"][0]

    receipt = answer.json()
    assert (receipt["outcome"], receipt["reason"]) == ("parked", "budget")
    assert receipt["look_at"] == budget["resets_at"]


async def test_a_receipt_says_that_nobody_knows_the_price():
    async with house(paid([costs(1)], UNPRICED)) as home, home.client(home.operator) as client:
        answer = await client.post("/api/sessions/main/messages", json={"text": "hello"})

    assert answer.json()["unpriced"] is True


async def test_usage_is_summed_up_by_whoever_caused_it():
    async with house(paid([costs(100), costs(50)])) as home, home.client(home.operator) as client:
        await said(client, "hello")
        await said(client, "again")
        sums = {
            by: (await client.get(f"/api/usage?by={by}")).json()["items"]
            for by in ("source", "agent", "session", "day")
        }
        later = (await client.get("/api/usage?since=2999-01-01T00:00:00Z")).json()["items"]

    (by_agent,) = sums["agent"]
    assert by_agent == {
        "key": "main",
        "turns": 2,
        "calls": 2,
        "input": 20,
        "output": 150,
        "cache_read": 0,
        "cache_write": 0,
        "cost": 0.0015,
        "unpriced_calls": 0,
    }
    assert sums["session"][0]["key"] == "agent:main:main"
    assert abs((datetime.fromisoformat(sums["day"][0]["key"]) - datetime.now()).days) <= 1
    assert len(sums["source"]) == 1
    assert later == []
