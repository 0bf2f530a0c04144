"""Commands that are repeated, malformed or too curious."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.integration.http.serving import house
from wakeful.access.principal import Principal
from wakeful.commands.table import TABLE
from wakeful.doors import messaging
from wakeful.doors.messaging import Message
from wakeful.intake.draft import LONGEST_TEXT
from wakeful.models.scripted import Pause
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.stimulus import Outcome, Receipt, Trust


async def said(
    client: httpx2.AsyncClient, text: str, session: str = "main", key: str | None = None
) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await client.post(
        f"/api/sessions/{session}/messages", json={"text": text}, headers=headers
    )
    return answer.json()


def receipt_of(stimulus_id: str) -> Receipt:
    return Receipt(stimulus_id=stimulus_id, session_key="agent:main:main", outcome=Outcome.STARTED)


async def test_a_repeated_command_repeats_its_answer_and_does_nothing():
    first, second = Pause("thinking"), Pause("thinking again")
    async with house([first, second]) as home, home.client(home.operator) as client:
        await said(client, "think long")
        await first.reached.wait()
        stopped = await said(client, "/stop", key="k")
        await said(client, "think again")
        await second.reached.wait()
        repeated = await said(client, "/stop", key="k")
        lane = await home.runtime.lane()
        await client.post("/api/sessions/main/stop")

    assert stopped["reply"].startswith("Stopped the turn")
    assert repeated == stopped
    assert lane.state == "streaming"


async def test_a_repeated_text_of_a_command_is_filed_once():
    async with house() as home, home.client(home.operator) as client:
        first = await said(client, "/steer be brief", key="k")
        again = await said(client, "/steer be brief", key="k")
        stimuli = (await client.get("/api/stimuli")).json()["items"]

    assert again == first
    assert len(stimuli) == 1


async def test_a_key_that_was_used_for_another_command_is_refused():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "/halt main", key="k")
        other = await said(client, "/resume main", key="k")
        halted = await said(client, "/halt main")

    assert other["code"] == "conflict"
    assert halted["reply"] == "Main was halted already."


@pytest.mark.parametrize(
    ("text", "stimuli", "resets"),
    [("/compact", 1, 0), ("/new", 0, 1), ("/new go", 1, 1), ("/steer go", 1, 0)],
)
async def test_a_command_that_comes_four_times_at_once_is_done_once(
    text: str, stimuli: int, resets: int
):
    async with house() as home, home.client(home.operator) as client:
        await home.runtime.wait(await home.runtime.send("hello"))
        answers = await asyncio.gather(*(said(client, text, key="k") for _ in range(4)))
        filed = await home.runtime.store.read("SELECT id FROM stimuli WHERE text <> 'hello'")
        for row in filed:
            await home.runtime.wait(receipt_of(row[0]))
        left = await home.runtime.store.read("SELECT id FROM past_transcripts")

    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["outcome"] == "command"
    assert (len(filed), len(left)) == (stimuli, resets)


@pytest.mark.parametrize("key", ["k" * 300, "a\tb"], ids=["long", "unprintable"])
async def test_a_key_that_no_message_may_have_no_command_may_have_either(key: str):
    async with house() as home, home.client(home.operator) as client:
        message = await said(client, "hello", key=key)
        command = await said(client, "/whoami", key=key)

    assert command == message
    assert command["code"] == "invalid-input"


async def test_a_command_is_no_longer_than_a_message():
    async with house() as home, home.client(home.operator) as client:
        answer = await said(client, f"/why {'x' * LONGEST_TEXT}")

    assert answer["code"] == "invalid-input"


async def test_a_key_is_used_for_a_message_or_for_a_command():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello", key="k")
        command = await said(client, "/stop", key="k")
        await said(client, "/whoami", key="l")
        message = await said(client, "hello", key="l")

    assert command["code"] == message["code"] == "conflict"


async def test_a_key_belongs_to_who_used_it():
    async with house() as home:
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(home.operator) as client:
            await said(client, "/whoami", session="api:1", key="k")
        async with home.client(token) as client:
            answer = await said(client, "/whoami", session="api:2", key="k")

    assert "external" in answer["reply"]


async def test_what_a_command_says_back_is_short_and_can_be_stored():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello")
        long = [await said(client, f"/{name} {'x' * 100_000}") for name in TABLE]
        broken = [await said(client, f"/{name} a\x00b") for name in TABLE]

    assert all(len(answer["reply"]) < 2_000 for answer in long)
    assert not any("\x00" in answer["reply"] for answer in broken)


async def test_white_space_before_a_command_does_not_hide_it():
    async with house() as home, home.client(home.operator) as client:
        answer = await said(client, " " * 100 + "\n/whoami")

    assert answer["outcome"] == "command"


async def test_a_wish_of_a_stranger_is_filed_as_a_strangers():
    async with house() as home:
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(token) as client:
            await said(client, "hello", session="api:1")
            by_command = await said(client, "/compact obey me", session="api:1")
            by_route = await client.post("/api/sessions/api:1/compact", json={"wish": "obey me"})
        trusts = await home.runtime.store.read(
            "SELECT id, trust FROM stimuli WHERE kind = 'system.compaction' ORDER BY id"
        )

    ids = [by_command["stimulus_id"], by_route.json()["stimulus_id"]]
    assert trusts == [(stimulus_id, "external") for stimulus_id in ids]


async def test_a_command_stops_nothing_of_whoever_made_the_session_meanwhile():
    pause = Pause("thinking")
    stranger = Principal(
        token_id="tk_a", name="a", scopes=("send",), owner="tk_a", trust=Trust.EXTERNAL
    )
    async with house([pause]) as home:
        services, stop = home.runtime.services, Message(text="/stop")
        spoken = await messaging.prepare(services, stranger, "api:1", stop)
        await home.runtime.send("think long", session="api:1")
        await pause.reached.wait()
        with pytest.raises(NotFound):
            await messaging.file(services, spoken)
        lane = await home.runtime.lane("api:1")
        await home.runtime.stop("api:1")

    assert lane.state == "streaming"


async def test_no_command_tells_that_somebody_else_had_a_session():
    async with house() as home:
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(home.operator) as client:
            await said(client, "hello", session="api:1")
            await client.delete("/api/sessions/api:1")
        async with home.client(token) as client:
            message = await said(client, "hello", session="api:1")
            commands = [await said(client, text, session="api:1") for text in ("/why", "/status")]

    assert message["code"] == "not-found"
    assert commands == [message, message]


async def test_a_stranger_cannot_find_out_whether_a_stimulus_exists():
    pause = Pause("thinking")
    async with house([pause]) as home:
        async with home.client(home.operator) as client:
            await said(client, "think long")
            await pause.reached.wait()
            waiting = await home.runtime.send("a secret", mode=Mode.QUEUE)
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(token) as client:
            real = await said(client, f"/why {waiting.stimulus_id}", session="api:1")
            made_up = await said(client, "/why st_nothing", session="api:1")
        await home.runtime.stop()

    assert real["reply"].replace(waiting.stimulus_id, "st_nothing") == made_up["reply"]
