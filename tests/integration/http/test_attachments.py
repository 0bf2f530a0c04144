"""Attachments come as base64 or as files of a form, and are kept once."""

import asyncio
import base64
import hashlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.integration.http.serving import House, house
from tests.patience import patience
from wakeful import attachments
from wakeful.intake.draft import AttachmentLimits
from wakeful.models.model import Request
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import ReadyAttachment

PATH = "/api/sessions/main/messages?wait=10"
CONTENT = b"\x00\xff<script>alert(1)</script>"
HASH = hashlib.sha256(CONTENT).hexdigest()


def in_base64(content: bytes = CONTENT, name: str = "a.bin") -> dict[str, str]:
    data = base64.b64encode(content).decode()
    return {"name": name, "media_type": "text/html", "data": data}


async def send_file(client: httpx2.AsyncClient, **fields: str) -> httpx2.Response:
    file = ("a.bin", CONTENT, "text/html")
    return await client.post(PATH, data=fields, files={"file": file})


async def rows(home: House, table: str) -> int:
    return (await home.runtime.store.read(f"SELECT COUNT(*) FROM {table}"))[0][0]


async def test_a_form_is_a_message_with_its_files():
    read: list[Request] = []

    def answer(request: Request) -> str:
        read.append(request)
        return "well"

    async with house(answer) as home, home.client(home.operator) as client:
        sent = await send_file(client, text="look", priority="later", source="me")
        stimulus = (await client.get(f"/api/stimuli/{sent.json()['stimulus_id']}")).json()

    assert sent.status_code == 200
    assert (stimulus["text"], stimulus["priority"], stimulus["source"]) == ("look", "later", "me")
    assert stimulus["attachments"] == [
        {"name": "a.bin", "media_type": "text/html", "size": len(CONTENT), "hash": HASH}
    ]
    named = f"[attachment {HASH[:16]}: a.bin (text/html, {len(CONTENT)} bytes)]"
    assert named in str(read[0])


def form_of(disposition: str) -> dict[str, Any]:
    """Return a form of one text and one file, whose header says this of it."""
    parts = (
        '--B\r\nContent-Disposition: form-data; name="text"\r\n\r\nlook\r\n'
        f"--B\r\nContent-Disposition: form-data; {disposition}\r\n\r\nbytes\r\n--B--\r\n"
    )
    return {
        "content": parts.encode(),
        "headers": {"Content-Type": "multipart/form-data; boundary=B"},
    }


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ("name=file; filename*=UTF-8''na%C3%AFve%20plan.txt", "naïve plan.txt"),
        ("name=file; filename*=utf-8'en'a%22b%5C.txt", 'a"b\\.txt'),
        ("name=file; filename*=iso-8859-1''na%EFve.txt", "naïve.txt"),
        # Forms must not have the long form beside the plain one (RFC 7578, 4.2).
        ('name=file; filename="plain.txt"; filename*=UTF-8other.txt', "plain.txt"),
    ],
)
async def test_a_file_whose_name_is_written_in_the_long_form_is_a_file(disposition: str, name: str):
    async with house() as home, home.client(home.operator) as client:
        sent = await client.post(PATH, **form_of(disposition))
        stimulus = (await client.get(f"/api/stimuli/{sent.json()['stimulus_id']}")).json()

    assert [one["name"] for one in stimulus["attachments"]] == [name]


@pytest.mark.parametrize(
    "written",
    ["a.txt", "UTF-8''%ff.txt", "punycode''a.txt", "UTF-8''a%0d%0aX.txt", "UTF-8''"],
)
async def test_a_file_name_in_the_long_form_that_cannot_be_read_is_refused(written: str):
    async with house() as home, home.client(home.operator) as client:
        sent = await client.post(PATH, **form_of(f"name=file; filename*={written}"))

    assert (sent.status_code, sent.json()["field"]) == (422, "attachments")


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "undefined", "unicode_escape", "utf-7", "latin-1", '"utf-16"']
)
async def test_a_form_in_another_encoding_is_refused_unread(charset: str):
    """T10: no client chooses the codec that reads a megabyte of its words."""
    part = b'--B\r\nContent-Disposition: form-data; name="text-"\r\n\r\n-%b\r\n' % (
        b"a" * 1_000_000
    )
    async with house() as home, home.client(await home.token("send")) as client:
        async with asyncio.timeout(patience(5)):
            answer = await client.post(
                PATH,
                content=part + b"--B--\r\n",
                headers={"Content-Type": f"multipart/form-data; boundary=B; charset={charset}"},
            )

        assert answer.status_code == 415
        assert await rows(home, "stimuli") == 0


async def test_a_form_may_say_that_it_is_utf_8():
    part = '--B\r\nContent-Disposition: form-data; name="text"\r\n\r\ncafé\r\n--B--\r\n'
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(
            PATH,
            content=part.encode(),
            headers={"Content-Type": "multipart/form-data; boundary=B; charset=UTF-8"},
        )
        stimulus = (await client.get(f"/api/stimuli/{answer.json()['stimulus_id']}")).json()

    assert stimulus["text"] == "café"


async def test_a_form_may_be_streamed_too():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(
            "/api/sessions/main/stream", data={"text": "look"}, files={"f": ("a", CONTENT)}
        )

        assert "event: turn" in answer.text
        assert await rows(home, "attachments") == 1


async def test_the_same_bytes_are_kept_once_however_they_come():
    async with house() as home, home.client(home.operator) as client:
        await send_file(client, text="one")
        await send_file(client, text="two")
        body = {"text": "three", "attachments": [in_base64(name="b"), in_base64(name="c")]}
        await client.post(PATH, json=body)

        assert await rows(home, "attachments") == 1
        assert await rows(home, "attachment_uses") == 6  # three stimuli, and their entries


async def test_an_attachment_is_given_to_whoever_may_see_its_stimulus_and_as_bytes_only():
    async with house() as home:
        mine = await home.token("send", name="mine")
        other = await home.token("send", name="other")
        async with home.client(mine) as client:
            file = {"file": ("a.bin", CONTENT, "text/html")}
            path = "/api/sessions/api:a/messages?wait=10"
            sent = (await client.post(path, data={"text": "look"}, files=file)).json()
            path = f"/api/stimuli/{sent['stimulus_id']}/attachments/{HASH}"
            taken = await client.get(path)
            wrong = await client.get(path.replace(HASH, "0" * 64))
        async with home.client(other) as stranger:
            refused = await stranger.get(path)

    assert taken.content == CONTENT
    assert taken.headers["content-type"] == "application/octet-stream"
    assert taken.headers["content-disposition"] == "attachment"
    assert (wrong.status_code, refused.status_code) == (404, 404)


@pytest.mark.parametrize(
    ("request_body", "status", "field"),
    [
        ({"data": {"text": "a", "unknown": "b"}, "files": {"f": b"x"}}, 422, "body"),
        ({"data": {"text": ["a", "b"]}, "files": {"f": b"x"}}, 422, "text"),
        ({"data": {"text": "a", "attachments": "b"}, "files": {"f": b"x"}}, 422, "attachments"),
        ({"data": {"text": "a", "mode": "fast"}, "files": {"f": b"x"}}, 422, "mode"),
        ({"json": {"text": "a", "attachments": [in_base64(name="a]\n[b")]}}, 422, "attachments"),
        ({"files": {f"f{number}": b"x" for number in range(200)}}, 400, None),
        ({"files": {f"f{number}": b"x" for number in range(21)}}, 422, "attachments"),
        ({"json": {"text": "a", "attachments": [in_base64()] * 21}}, 422, "attachments"),
        ({"files": {"f": bytes(10 * 1024 * 1024 + 1)}}, 413, None),
        ({"content": b"--x\r\n", "headers": {"Content-Type": "multipart/form-data"}}, 400, None),
        (
            {
                "content": b"--x\r\nnonsense",
                "headers": {"Content-Type": "multipart/form-data; boundary=x"},
            },
            422,
            "text",
        ),
    ],
)
async def test_a_form_that_breaks_a_rule_leaves_nothing(
    request_body: dict[str, Any], status: int, field: str | None
):
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post(PATH, **request_body)

        assert (answer.status_code, answer.json().get("field")) == (status, field)
        assert await rows(home, "stimuli") == 0
        assert await rows(home, "attachments") == 0


async def test_no_other_route_takes_a_form():
    async with house() as home, home.client(home.operator) as client:
        answer = await client.post("/api/tokens", data={"name": "x"}, files={"f": b"x"})

    assert answer.status_code == 415


async def test_the_janitor_forgets_bytes_that_nothing_refers_to(tmp_path: Path):
    clock = ManualClock()
    async with (
        house(clock=clock, settings=Settings(drain_s=1)) as home,
        home.client(home.operator) as client,
    ):
        await home.runtime.halt()
        file = ("a.bin", CONTENT, "text/html")
        path = "/api/sessions/main/messages"
        sent = (await client.post(path, data={"text": "one"}, files={"file": file})).json()
        store = home.runtime.store
        later = attachments.SPARED_MS // 1000 + 1
        clock.advance(later)
        await store.transact(lambda tx: attachments.prune(tx, "", 10))
        used = await rows(home, "attachments")
        await store.transact(lambda tx: attachments.release(tx, [sent["stimulus_id"]]))
        await store.transact(lambda tx: attachments.prune(tx, "", 10))

        assert (used, await rows(home, "attachments")) == (1, 0)


async def test_what_an_entry_names_is_given_to_whoever_may_see_its_session():
    async with house() as home:
        mine = await home.token("send", name="mine")
        other = await home.token("send", name="other")
        path = f"/api/sessions/api:a/attachments/{HASH}"
        async with home.client(mine) as client:
            file = {"file": ("a.bin", CONTENT, "text/html")}
            before = await client.get(path)
            await client.post("/api/sessions/api:a/messages?wait=10", data={}, files=file)
            taken = await client.get(path)
            short = await client.get(path.replace(HASH, HASH[:4]))
        async with home.client(other) as stranger:
            await stranger.post("/api/sessions/api:b/messages?wait=10", json={"text": "hi"})
            hidden = await stranger.get(path)
            elsewhere = await stranger.get(path.replace("api:a", "api:b"))

    assert (taken.status_code, taken.content) == (200, CONTENT)
    assert taken.headers["content-disposition"] == "attachment"
    assert taken.headers["content-type"] == "application/octet-stream"
    for refused in (before, short, hidden, elsewhere):
        assert refused.status_code == 404


async def test_a_delivery_and_its_files_are_shown_to_whoever_may_see_its_session():
    picture = ReadyAttachment(
        name="p.png", media_type="image/png", size=3, hash="ab" * 32, data="AAAA"
    )

    async with house() as home:
        mine = await home.token("send", name="mine")
        other = await home.token("send", name="other")
        async with home.client(mine) as client:
            path = "/api/sessions/api:a/messages?wait=10"
            key = (await client.post(path, json={"text": "hi"})).json()["session_key"]

            def write(tx: Tx) -> None:
                route = Route(door="out", address="ann")
                along = Along(attachments=(picture,), reply_to="m-1")
                outbox.file(tx, "dl_1", route, "look", session_key=key, turn_id=None, along=along)

            await home.runtime.store.transact(write)
            shown = (await client.get("/api/deliveries/dl_1")).json()
            taken = await client.get(f"/api/deliveries/dl_1/attachments/{picture.hash}")
            wrong = await client.get(f"/api/deliveries/dl_1/attachments/{'0' * 64}")
            none = await client.get("/api/deliveries/dl_2")
        async with home.client(other) as stranger:
            hidden = await stranger.get("/api/deliveries/dl_1")
            stolen = await stranger.get(f"/api/deliveries/dl_1/attachments/{picture.hash}")

    assert (shown["text"], shown["reply_to"]) == ("look", "m-1")
    assert [one["name"] for one in shown["attachments"]] == ["p.png"]
    assert taken.content == b"\x00\x00\x00"
    assert [one.status_code for one in (wrong, none, hidden, stolen)] == [404] * 4


async def test_both_ways_in_keep_to_the_limits_of_the_settings_and_name_them():
    limits = AttachmentLimits(most_files=1, most_bytes=4)
    async with (
        house(settings=Settings(drain_s=1, attachments=limits)) as home,
        home.client(home.operator) as client,
    ):
        answers = [
            await client.post(PATH, json={"attachments": [in_base64(b"1"), in_base64(b"2")]}),
            await client.post(PATH, files={"a": b"1", "b": b"2"}),
            await client.post(PATH, json={"attachments": [in_base64(b"12345")]}),
            await client.post(PATH, files={"a": b"12345"}),
            await client.post(PATH, files={"a": b"1234"}),
        ]

    assert [answer.status_code for answer in answers] == [422, 422, 413, 413, 200]
    assert "attachments: must be at most 1 files, not 2" in answers[0].text
    assert "must be at most 4 bytes together, not 5" in answers[3].text
