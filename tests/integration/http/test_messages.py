"""What sending a message over HTTP promises."""

import base64
from typing import Any

import pytest

from tests.integration.http.serving import Frame, frames, house, take
from wakeful.models.scripted import Pause, call, says


async def test_a_message_is_answered_with_its_receipt():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post("/api/sessions/main/messages", json={"text": "hello"})

        assert answer.status_code == 202
        receipt = answer.json()
        assert receipt["outcome"] == "started"
        assert receipt["session_key"] == "agent:main:main"
        stimulus = (await client.get(f"/api/stimuli/{receipt['stimulus_id']}")).json()
        assert stimulus["text"] == "hello"
        assert stimulus["source"] == "the operator"
        assert stimulus["trust"] == "operator"


async def test_waiting_answers_with_the_turn():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post("/api/sessions/main/messages?wait=10", json={"text": "hello"})

        assert answer.status_code == 200
        turn = answer.json()["turn"]
        assert turn["state"] == "done"
        assert turn["reply"] == "well"


async def test_waiting_too_short_answers_with_the_receipt():
    pause = Pause("slowly")
    async with house([pause]) as home, home.client(home.operator) as client:
        answer = await client.post("/api/sessions/main/messages?wait=0.05", json={"text": "hello"})

        assert answer.status_code == 202
        assert "turn" not in answer.json()
        pause.go_on.set()


async def test_the_stream_of_a_message_tells_receipt_deltas_tools_and_turn():
    script = [says("let me look", call("current_time")), "it is late"]
    async with (
        house(script) as home,
        home.client(home.operator) as client,
        client.stream(
            "POST", "/api/sessions/main/stream", json={"text": "what time is it?"}
        ) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        told = [frame async for frame in frames(response) if isinstance(frame, Frame)]

    kinds = [frame.kind for frame in told]
    assert kinds[0] == "receipt"
    assert kinds[-1] == "turn"
    assert [frame.data for frame in told if frame.kind == "tool"] == [
        {"name": "current_time", "phase": "started"},
        {"name": "current_time", "phase": "done"},
    ]
    assert "".join(frame.data["text"] for frame in told if frame.kind == "delta").endswith(
        "it is late"
    )
    assert told[-1].data["reply"] == "it is late"
    assert told[-1].data["state"] == "done"


async def test_the_stream_of_a_cancelled_stimulus_tells_its_end():
    pause = Pause("busy")
    async with house([pause, "more"]) as home, home.client(home.operator) as client:
        await client.post("/api/sessions/main/messages", json={"text": "first"})
        await pause.reached.wait()
        async with client.stream(
            "POST", "/api/sessions/main/stream", json={"text": "second", "mode": "queue"}
        ) as response:
            told = frames(response)
            (receipt,) = await take(told, 1)
            await client.delete(f"/api/stimuli/{receipt.data['stimulus_id']}")
            (end,) = await take(told, 1)

        assert end.kind == "stimulus"
        assert end.data["state"] == "cancelled"
        pause.go_on.set()


async def test_an_idempotency_key_repeats_the_first_answer():
    async with house() as home, home.client(home.operator) as client:
        key = {"Idempotency-Key": "k1"}
        first = await client.post("/api/sessions/main/messages", json={"text": "a"}, headers=key)
        again = await client.post("/api/sessions/main/messages", json={"text": "a"}, headers=key)
        waited = await client.post(
            "/api/sessions/main/messages?wait=10", json={"text": "a"}, headers=key
        )

        assert first.json() == again.json()
        assert waited.json()["turn"]["reply"] == "well"
        assert len((await client.get("/api/stimuli")).json()["items"]) == 1


async def test_a_repeated_request_hears_the_first_reason_too():
    async with house() as home, home.client(home.operator) as client:
        key, path = {"Idempotency-Key": "k1"}, "/api/sessions/main/messages"
        keyed = {"text": "c", "dedup_key": "k2"}
        await client.post("/api/halt", json={})
        first = await client.post(path, json={"text": "b"}, headers=key)
        again = await client.post(path, json={"text": "b"}, headers=key)
        told = (await client.post(path, json=keyed)).json()
        repeated = (await client.post(path, json=keyed)).json()

        assert first.json()["reason"] == "halted"
        assert again.json() == first.json()
        assert (repeated["reason"], repeated["first_reason"]) == (told["outcome"], told["reason"])


async def test_an_idempotency_key_with_another_body_is_a_conflict():
    async with house() as home, home.client(home.operator) as client:
        key = {"Idempotency-Key": "k1"}
        await client.post("/api/sessions/main/messages", json={"text": "a"}, headers=key)
        other = await client.post("/api/sessions/main/messages", json={"text": "b"}, headers=key)

        assert other.status_code == 409
        assert other.json()["code"] == "conflict"


async def test_a_dedup_key_and_an_idempotency_key_may_be_equal():
    async with house() as home, home.client(home.operator) as client:
        path = "/api/sessions/main/messages"
        keyed = await client.post(path, json={"text": "a", "dedup_key": "k"})
        other = await client.post(path, json={"text": "b"}, headers={"Idempotency-Key": "k"})
        again = await client.post(path, json={"text": "b"}, headers={"Idempotency-Key": "k"})

        assert other.status_code == 202
        assert other.json()["stimulus_id"] != keyed.json()["stimulus_id"]
        assert again.json() == other.json()


@pytest.mark.parametrize("field", ["dedup_key", "source"])
async def test_a_name_with_half_a_character_is_refused_and_no_other_one_is_made_of_it(field: str):
    """T18: two such keys would become one, and the second message would be lost."""
    async with house() as home, home.client(home.operator) as client:
        answers = [
            await client.post(
                "/api/sessions/main/messages",
                content=f'{{"text": "a", "{field}": "{key}"}}',
                headers={"Content-Type": "application/json"},
            )
            for key in (r"k\ud800", r"k\udc00", r"k\ufffd")
        ]

    assert [answer.status_code for answer in answers] == [422, 422, 202]
    assert answers[0].json()["field"] == field


async def test_a_dedup_key_names_the_first_stimulus():
    async with house() as home, home.client(home.operator) as client:
        body = {"text": "a", "dedup_key": "k"}
        first = (await client.post("/api/sessions/main/messages", json=body)).json()
        again = (await client.post("/api/sessions/main/messages", json=body)).json()

        assert again["outcome"] == "duplicate"
        assert again["duplicate_of"] == first["stimulus_id"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"text": ""}, 422, "text"),
        ({"text": "a", "priority": "soon"}, 422, "priority"),
        ({"text": "a", "mode": "nonsense"}, 422, "mode"),
        ({"text": 1}, 422, "text"),
        ({"text": "a", "unknown": 1}, 422, "body"),
        ({"text": "a", "attachments": [{"name": "x"}]}, 422, "attachments[0]"),
        (
            {"text": "a", "attachments": [{"name": "x", "media_type": "y", "data": "%"}]},
            422,
            "attachments",
        ),
        ([], 422, "body"),
    ],
)
async def test_a_bad_message_is_refused_by_field(body: Any, status: int, field: str):
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post("/api/sessions/main/messages", json=body)

        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["field"] == field
        assert (await client.get("/api/stimuli")).json()["items"] == []


async def test_priority_is_read_in_any_case():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(
            "/api/sessions/main/messages", json={"text": "a", "priority": "LATER"}
        )

        stimulus = await client.get(f"/api/stimuli/{answer.json()['stimulus_id']}")
        assert stimulus.json()["priority"] == "later"


async def test_attachments_may_have_ten_mebibytes_together():
    async with house() as home, home.client(home.operator) as client:

        def attachment(size: int) -> dict[str, str]:
            data = base64.b64encode(bytes(size)).decode()
            return {"name": "a.bin", "media_type": "application/octet-stream", "data": data}

        fits = {"text": "a", "attachments": [attachment(5 << 20), attachment(5 << 20)]}
        too_much = {"text": "a", "attachments": [attachment(5 << 20), attachment((5 << 20) + 1)]}
        kept = await client.post("/api/sessions/main/messages", json=fits)
        refused = await client.post("/api/sessions/main/messages", json=too_much)

        assert kept.status_code == 202
        assert refused.status_code == 413


async def test_a_session_key_is_one_encoded_segment():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(
            "/api/sessions/agent%3Amain%3Aapi%3Aone/messages?wait=10", json={"text": "a"}
        )
        plain = await client.get("/api/sessions/agent:main:api:one")

        assert answer.json()["session_key"] == "agent:main:api:one"
        assert plain.json()["key"] == "agent:main:api:one"
