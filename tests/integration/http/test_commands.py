"""What slash commands promise: done at once, told at once, and never shown to the model."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from tests.integration.http.serving import Frame, frames, house
from wakeful.commands.table import TABLE
from wakeful.models.model import Request
from wakeful.models.scripted import Pause, Scripted
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.vocabulary.entry import EntryKind
from wakeful.vocabulary.errors import Transient
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.stimulus import Trust


async def said(client: httpx2.AsyncClient, text: str, session: str = "main", **more: Any) -> Any:
    body = {"text": text, **more}
    answer = await client.post(f"/api/sessions/{session}/messages?wait=10", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


async def test_a_command_is_answered_at_once_and_files_no_stimulus():
    async with house() as home, home.client(home.operator) as client:
        answer = await said(client, "/status")
        stimuli = (await client.get("/api/stimuli")).json()["items"]

    assert answer["outcome"] == "command"
    assert "agent:main:main: idle" in answer["reply"]
    assert stimuli == []


async def test_the_status_tells_until_when_the_model_is_waited_for_and_why(
    caplog: pytest.LogCaptureFixture,
):
    model = Scripted([Transient("nobody is there", retry_after_s=3600)])
    async with house(model) as home, home.client(home.operator) as client:
        await home.runtime.send("hello")
        left = await wait_for(home.runtime, "turn.left")
        answer = await said(client, "/status")

    until = datetime.fromtimestamp(left.data["resume_at"] // 1000, UTC)
    told = f"waits for the model until {until:%Y-%m-%d %H:%M:%S} UTC: nobody is there"
    assert told in answer["reply"]
    assert "waits 3600.0 s for its model: nobody is there" in caplog.text


async def test_the_status_names_the_model_that_answers_in_this_session():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello")
        await said(client, "/model demo")
        here = await said(client, "/status")
        elsewhere = await said(client, "/status", session="dm:other")

    assert "agent main, model demo, chosen for this session" in here["reply"]
    assert "agent main, model scripted\n" in elsewhere["reply"] + "\n"


async def test_a_command_stands_in_the_transcript_where_no_model_reads_it():
    model = Scripted(["one", "two"])
    async with house(model) as home, home.client(home.operator) as client:
        await said(client, "hello")
        await said(client, "/usage")
        await said(client, "and now?")
        entries = await home.runtime.entries()

    assert [entry.kind for entry in entries].count(EntryKind.CUSTOM) == 1
    assert texts(model.requests[-1]) == ["hello", "and now?"]


async def test_an_unknown_command_is_answered_with_the_nearest_ones():
    model = Scripted([])
    async with house(model) as home, home.client(home.operator) as client:
        near = await said(client, "/stpo")
        far = await said(client, "/zzz and more")
        stimuli = (await client.get("/api/stimuli")).json()["items"]

    assert near["outcome"] == "command"
    assert near["reply"] == "There is no command /stpo. Did you mean /stop? /help lists them all."
    assert far["reply"] == "There is no command /zzz. /help lists them all."
    assert stimuli == []
    assert model.requests == []


async def test_what_comes_along_with_a_command_goes_with_its_text_or_is_said_to_be_lost():
    files = [{"name": "a", "media_type": "text/plain", "data": "YQ=="}]
    async with house() as home, home.client(home.operator) as client:
        anew = await said(client, "/new look at this", attachments=files)
        looked = await said(client, "/whoami", attachments=files)
        stimulus = (await client.get(f"/api/stimuli/{anew['stimulus_id']}")).json()

    assert [kept["name"] for kept in stimulus["attachments"]] == ["a"]
    assert looked["reply"].endswith("What came along with it was not kept.")


async def test_inside_a_message_the_queue_holds_for_that_message_alone():
    pause = Pause("thinking")
    async with house([pause, "later"]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "think long"})
        await pause.reached.wait()
        path, text = "/api/sessions/main/messages", "and /queue followup this"
        answer = (await client.post(path, json={"text": text})).json()
        stimulus = (await client.get(f"/api/stimuli/{answer['stimulus_id']}")).json()
        kept = (await said(client, "/queue"))["reply"]
        pause.go_on.set()

    assert answer["outcome"] == "queued"
    assert stimulus["text"] == "and this"
    assert kept.startswith("This session queues as its agent does.")


async def test_a_message_may_bring_its_own_window_and_cap():
    clock = ManualClock()
    async with house(clock=clock) as home, home.client(home.operator) as client:
        path = "/api/sessions/main/messages"
        waits = (await client.post(path, json={"text": "/queue debounce:2s one"})).json()
        dropped = (await client.post(path, json={"text": "two /queue cap:1 drop:new"})).json()
        clock.advance(2)
        turn = await home.runtime.wait(await home.runtime.send("three"))

    assert waits["outcome"] == "debouncing"
    assert (dropped["outcome"], dropped["reason"]) == ("suppressed", "queue-cap")
    assert turn is not None


@pytest.mark.parametrize("text", ["/ help", "see /help", "/path/to/file", "a stop"])
async def test_what_is_no_command_goes_to_the_agent(text: str):
    async with house() as home, home.client(home.operator) as client:
        answer = await said(client, text)

    assert answer["turn"]["reply"] == "well"


@pytest.mark.parametrize("word", ["/stop", " /STOP ", "stop", "Stop!"])
async def test_a_stop_stops(word: str):
    pause = Pause("thinking")
    async with house([pause]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "think long"})
        await pause.reached.wait()
        answer = await said(client, word)

    assert answer["reply"].startswith("Stopped the turn tn_")


async def test_a_bare_stop_of_a_stranger_is_a_message():
    async with house() as home:
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(token) as client:
            answer = await said(client, "stop", session="api:1")

    assert answer["turn"]["reply"] == "well"


async def test_only_the_operator_may_halt():
    async with house() as home:
        token = await home.token("send")
        async with home.client(token) as client:
            answer = await said(client, "/halt", session="api:1")
            listed = await said(client, "/help", session="api:1")
        lane = await home.runtime.lane()

    assert answer["reply"] == "Only the operator may use /halt."
    assert "/halt" not in listed["reply"]
    assert lane.state == "idle"


async def test_halt_and_resume_are_commands():
    async with house() as home, home.client(home.operator) as client:
        halted = await said(client, "/halt main")
        again = await said(client, "/halt main")
        resumed = await said(client, "/resume main")
        wrong = await said(client, "/halt nobody")

    assert halted["reply"] == "Halted main."
    assert again["reply"] == "Main was halted already."
    assert resumed["reply"] == "Resumed main."
    assert "no agent 'nobody'" in wrong["reply"]


async def test_the_queue_of_a_session_is_shown_and_set():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello")
        before = await said(client, "/queue")
        done = await said(client, "/queue collect debounce:2s cap:5 drop:old")
        wrong = await said(client, "/queue sideways")
        after = await said(client, "/queue default")

    assert before["reply"] == (
        "This session queues as its agent does. "
        "Modes: steer, followup, collect, steer-backlog, queue, interrupt."
    )
    assert done["reply"] == "This session: mode collect, debounce_ms 2000, cap 5, drop old."
    assert "must be one of steer" in wrong["reply"]
    assert after["reply"] == before["reply"]


async def test_steering_joins_the_running_turn():
    pause = Pause("thinking")
    async with house([pause, "never asked"]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "think long"})
        await pause.reached.wait()
        body = {"text": "/steer but be brief"}
        answer = (await client.post("/api/sessions/main/messages", json=body)).json()
        stimulus = (await client.get(f"/api/stimuli/{answer['stimulus_id']}")).json()
        await client.post("/api/sessions/main/stop")

    assert answer["reply"].endswith("steered.")
    assert stimulus["text"] == "but be brief"


async def test_why_tells_what_woke_the_last_turn():
    async with house() as home, home.client(home.operator) as client:
        none_yet = await said(client, "/why")
        first = await said(client, "hello")
        told = await said(client, "/why")
        by_stimulus = await said(client, f"/why {first['stimulus_id']}")
        unknown = await said(client, "/why tn_nothing")

    assert "no turn in this session" in none_yet["reply"]
    assert told["reply"].startswith(first["turn"]["id"])
    assert "user the operator: 'hello'" in told["reply"]
    assert by_stimulus["reply"] == told["reply"]
    assert "no turn or stimulus 'tn_nothing'" in unknown["reply"]


async def test_help_lists_every_command_and_explains_each():
    async with house() as home, home.client(home.operator) as client:
        listed = (await said(client, "/help"))["reply"]
        explained = [(await said(client, f"/help {name}"))["reply"] for name in TABLE]
        unknown = await said(client, "/help nonsense")

    assert len(listed.splitlines()) == len(TABLE)
    assert all(text.startswith("/") for text in explained)
    assert "there is no /nonsense" in unknown["reply"]


async def test_a_stream_tells_a_command_and_ends():
    async with (
        house() as home,
        home.client(home.operator) as client,
        client.stream("POST", "/api/sessions/main/stream", json={"text": "/whoami"}) as response,
    ):
        told = [frame async for frame in frames(response) if isinstance(frame, Frame)]

    assert [frame.kind for frame in told] == ["receipt"]
    assert told[0].data["outcome"] == "command"
    assert told[0].data["reply"].startswith("the operator, with the scopes operator")


async def test_a_stranger_learns_nothing_of_other_sessions():
    async with house() as home:
        async with home.client(home.operator) as client:
            mine = await said(client, "a secret")
        token = await home.token("send", trust=Trust.EXTERNAL)
        async with home.client(token) as client:
            answer = await said(client, f"/why {mine['turn']['id']}", session="api:1")
            by_stimulus = await said(client, f"/why {mine['stimulus_id']}", session="api:1")
            listed = await said(client, "/sessions", session="api:1")

    for told in (answer, by_stimulus, listed):
        assert "secret" not in told["reply"]
        assert "agent:main:main" not in told["reply"]
    assert mine["turn"]["id"] not in by_stimulus["reply"]


async def test_a_new_conversation_begins_with_the_rest_of_the_line():
    model = Scripted(["one", "two", "three"])
    async with house(model) as home, home.client(home.operator) as client:
        await said(client, "hello")
        answer = await said(client, "/new Path/Case matters")
        bare = await said(client, "/reset")
        await said(client, "fresh")
        past = (await client.get("/api/sessions/main/transcripts")).json()["items"]

    assert answer["reply"] == "A new conversation begins."
    assert answer["turn"]["reply"] == "two"
    assert texts(model.requests[1]) == ["Path/Case matters"]
    assert bare["reply"] == "A new conversation begins."
    assert texts(model.requests[2]) == ["fresh"]
    assert len(past) == 3


async def test_another_model_speaks_from_the_next_turn_on():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello")
        chosen = await said(client, "/model demo")
        spoken = await said(client, "hello")
        shown = await said(client, "/model")
        wrong = await said(client, "/model nonsense:model")
        await said(client, "/model default")
        again = await said(client, "hello")

    assert chosen["reply"] == "From the next turn on: demo."
    assert spoken["turn"]["reply"] != "well"
    assert shown["reply"] == "demo, chosen for this session."
    assert "nonsense" in wrong["reply"]
    assert again["turn"]["reply"] == "well"


async def test_what_is_chosen_before_the_first_message_holds_for_it():
    model = Scripted(["one"])
    async with house(model) as home, home.client(home.operator) as client:
        before = [await said(client, one, "new") for one in ("/model", "/think", "/queue")]
        empty = await said(client, "/compact", "new")
        listed = (await client.get("/api/sessions")).json()["items"]
        chosen = await said(client, "/model demo", "new")
        await said(client, "/think high", "other")
        await said(client, "/queue collect", "third")
        spoken = await said(client, "hello", "new")
        rows = (await client.get("/api/sessions")).json()["items"]

    assert before[0]["reply"] == "scripted."
    assert before[1]["reply"].startswith("default (levels:")
    assert before[2]["reply"].startswith("This session queues as its agent does.")
    assert empty["reply"] == "There is nothing to compact yet: nothing was said here."
    assert [one["key"] for one in listed] == ["agent:main:activity"]
    assert chosen["reply"] == "From the next turn on: demo."
    assert spoken["turn"]["state"] == "done"
    assert model.requests == []
    made = ("activity", "new", "other", "third")
    assert {row["key"] for row in rows} == {f"agent:main:{n}" for n in made}


async def test_how_much_a_model_thinks_is_chosen_for_a_session():
    model = Scripted(["one", "two"])
    async with house(model) as home, home.client(home.operator) as client:
        await said(client, "hello")
        await said(client, "/think high")
        await said(client, "hello")
        wrong = await said(client, "/think sideways")

    assert [request.thinking for request in model.requests] == [None, "high"]
    assert "must be one of off" in wrong["reply"]


async def test_only_the_operator_chooses_what_costs_money():
    async with house() as home:
        token = await home.token("send")
        async with home.client(token) as client:
            await said(client, "hello", session="api:1")
            answer = await said(client, "/model demo", session="api:1")
            patched = await client.patch("/api/sessions/api:1", json={"thinking": "xhigh"})
            allowed = await client.patch("/api/sessions/api:1", json={"label": "mine"})

    assert answer["reply"] == "Only the operator may use /model."
    assert patched.status_code == 403
    assert allowed.status_code == 200


async def test_a_conversation_is_folded_and_unfolded_over_http():
    async with house() as home, home.client(home.operator) as client:
        await said(client, "hello")
        answer = await said(client, "/compact keep dates")
        undone = await client.post("/api/sessions/main/undo-compaction")
        filed = await client.post("/api/sessions/main/compact", json={"wish": "keep dates"})

    assert filed.status_code == 200
    assert answer["turn"]["reply"].startswith("There is nothing to compact yet: this")
    assert undone.status_code == 422
    assert "no compaction" in undone.json()["detail"]


async def test_a_line_of_usage_comes_with_the_end_of_the_turn_at_a_door_that_is_read():
    model = Scripted(lambda _: "hi")
    async with house(model) as home, home.client(home.operator) as client:
        plain = await said(client, "hello")
        chosen = await client.patch("/api/sessions/main", json={"response_usage": "on"})
        waited = await said(client, "hello")
        again = {"text": "again"}
        async with client.stream("POST", "/api/sessions/main/stream", json=again) as response:
            told = [frame async for frame in frames(response) if isinstance(frame, Frame)]
        refused = await client.patch("/api/sessions/main", json={"response_usage": "loud"})

    end = next(frame for frame in told if frame.kind == "turn")
    assert "usage_line" not in plain["turn"]
    assert chosen.json()["overrides"]["response_usage"] == "tokens"
    assert waited["turn"]["reply"] == "hi"
    assert waited["turn"]["usage_line"].startswith("tokens ")
    assert end.data["usage_line"].startswith("tokens ")
    assert refused.status_code == 422
