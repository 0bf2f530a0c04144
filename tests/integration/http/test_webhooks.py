"""Webhooks over real HTTP: who is believed, what is written, what the sender is told."""

import gzip
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from tests.integration.http.raw import connected, exchange
from tests.integration.http.senders import (
    GITHUB_BODY,
    GITHUB_SIGNATURE,
    SCHEMES,
    STANDARD_AT_MS,
    STANDARD_BODY,
    STANDARD_HEADERS,
    counts,
    hooks,
    signed,
    with_hooks,
)
from tests.integration.http.serving import PATIENCE_S, House, house
from wakeful.doors.http.endpoint import LARGEST_BODY
from wakeful.doors.http.hooks import AT_ONCE_EACH
from wakeful.settings.settings import Settings
from wakeful.turns.turns import Turn
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.stimulus import Outcome, Receipt, State, StormOverrides

TEXT = {"Content-Type": "text/plain"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
ACTIVITY = "agent:main:activity"


async def stimuli(home: House) -> list[tuple[Any, ...]]:
    rows = await home.runtime.store.read(
        "SELECT session_key, kind, source, trust, priority, text, state FROM stimuli ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def posted(
    client: httpx2.AsyncClient, name: str, body: bytes, now: int, **more: Any
) -> httpx2.Response:
    """Send what the sender of a scheme sends, with something changed."""
    headers = {**JSON, **signed(name, more.pop("signed_body", body), more.pop("at", now))}
    headers |= more.pop("headers", {})
    return await client.post(f"/hooks/{more.pop('to', name)}", content=body, headers=headers)


async def test_the_published_examples_are_taken_and_each_is_one_item():
    clock = ManualClock(STANDARD_AT_MS)
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        standard = await client.post(
            "/hooks/standard", content=STANDARD_BODY, headers=STANDARD_HEADERS | JSON
        )
        github = await client.post(
            "/hooks/github",
            content=GITHUB_BODY,
            headers=TEXT | {"X-Hub-Signature-256": GITHUB_SIGNATURE, "X-GitHub-Delivery": "72d3"},
        )
        found = await stimuli(home)

    assert (standard.status_code, github.status_code) == (202, 202)
    assert standard.json()["outcome"] == github.json()["outcome"] == "held"
    rest = ("external", 1)
    assert found == [
        (ACTIVITY, "webhook", "standard", *rest, STANDARD_BODY.decode(), State.HELD),
        (ACTIVITY, "webhook", "github", *rest, "Hello, World!", State.HELD),
    ]


CHANGES: dict[str, tuple[dict[str, Any], int]] = {
    "a flipped bit": ({"signed_body": b'{"a": 2}'}, 401),
    "an unknown name": ({"to": "nobody"}, 401),
    "a name in capitals": ({"to": "GitHub"}, 401),
    "gzip": ({"headers": {"Content-Encoding": "gzip"}}, 415),
}


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("what", CHANGES)
async def test_what_is_not_proved_writes_no_row(name: str, what: str):
    """T9: forged, altered, packed, or sent to nobody."""
    changed, status = CHANGES[what]
    if what == "a flipped bit" and name == "plain":
        changed = {"headers": {"Authorization": "Bearer b-token-of-many-letters"}}
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        before = await counts(home.runtime)
        body = gzip.compress(b'{"a": 1}') if what == "gzip" else b'{"a": 1}'
        if what == "gzip":
            changed = {**changed, "signed_body": b"{}"}
        answer = await posted(client, name, body, clock.now(), **changed)

        assert answer.status_code == status
        assert await counts(home.runtime) == before


async def test_standard_webhooks_are_new_for_five_minutes_and_no_second_longer():
    clock = ManualClock(STANDARD_AT_MS)
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        before = await counts(home.runtime)
        old = await posted(client, "standard", b"{}", clock.now(), at=clock.now() - 301_000)
        early = await posted(client, "standard", b"{}", clock.now(), at=clock.now() + 301_000)
        written = await counts(home.runtime)
        good = await posted(client, "standard", b"{}", clock.now(), at=clock.now() - 300_000)

    assert [one.status_code for one in (old, early, good)] == [401, 401, 202]
    assert written == before


@pytest.mark.parametrize("name", SCHEMES)
async def test_an_unknown_name_and_a_bad_signature_are_answered_alike(name: str):
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        unknown = await posted(client, name, b"{}", clock.now(), to="nobody")
        forged = await client.post(f"/hooks/{name}", content=b"{}", headers=JSON)

    assert unknown.status_code == forged.status_code == 401
    assert unknown.content == forged.content
    assert "the signature is wrong or too old" in forged.json()["detail"]
    unknown.headers.pop("date", None)
    forged.headers.pop("date", None)
    assert unknown.headers.raw == forged.headers.raw


async def test_another_method_is_none_of_a_hook():
    async with house(settings=with_hooks()) as home, home.client(home.operator) as client:
        before = await counts(home.runtime)
        answers = [
            await client.request(method, "/hooks/github") for method in ("GET", "PUT", "DELETE")
        ]

        assert {one.status_code for one in answers} == {405}
        assert answers[0].headers["allow"] == "POST"
        assert await counts(home.runtime) == before


@pytest.mark.parametrize("name", SCHEMES)
async def test_a_mebibyte_is_taken_and_one_byte_more_is_not(name: str):
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        before = await counts(home.runtime)
        more = b"x" * (LARGEST_BODY + 1)
        large = await posted(client, name, more, clock.now(), headers=TEXT)
        written = await counts(home.runtime)
        whole = await posted(client, name, more[1:], clock.now(), headers=TEXT)
        [(length,)] = await home.runtime.store.read("SELECT LENGTH(text) FROM stimuli")

    assert (large.status_code, whole.status_code) == (413, 202)
    assert written == before
    assert length == LARGEST_BODY


@pytest.mark.parametrize("size", [2, LARGEST_BODY + 1])
async def test_a_body_in_chunks_is_proved_whole_and_within_its_size(size: int):
    body = b"x" * size
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home:
        before = await counts(home.runtime)
        head = signed("github", body, clock.now()) | TEXT | {"Connection": "close"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        pieces = [body[at : at + 65_536] for at in range(0, size, 65_536)]
        answer = await exchange(
            home.port,
            f"POST /hooks/github HTTP/1.1\r\nHost: localhost\r\n{lines}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
            + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
            + b"0\r\n\r\n",
        )
        written = await counts(home.runtime)

    if size > LARGEST_BODY:
        # The rest of it may still be under way when the answer leaves.
        assert answer.startswith(b"HTTP/1.1 413") or not answer
        assert written == before
    else:
        assert answer.startswith(b"HTTP/1.1 202")


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        (JSON, b'{"repo": {"name": "x"}, "files": ["a", "b"]}', "x: b, push"),
        (FORM, b"payload=%7B%22repo%22%3A%7B%22name%22%3A%22x%22%7D%7D", "x: , push"),
        (FORM, b"repo=flat", ": , push"),
        (TEXT, b"words", ": , push"),
    ],
)
async def test_the_text_is_made_by_the_template_of_json_form_or_words(
    kind: dict[str, str], body: bytes, text: str
):
    settings = with_hooks(text="{payload.repo.name}: {payload.files.1}, {X-GitHub-Event}")
    clock = ManualClock()
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        answer = await posted(
            client, "github", body, clock.now(), headers={**kind, "X-GitHub-Event": "push"}
        )
        [found] = await stimuli(home)

    assert answer.status_code == 202
    assert found[5] == text


async def test_json_that_cannot_be_read_is_told_where_the_template_needs_it():
    clock = ManualClock()
    settings = with_hooks(text="{payload.a}")
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        before = await counts(home.runtime)
        answer = await posted(client, "github", b"{", clock.now())

        assert answer.status_code == 400
        assert await counts(home.runtime) == before


async def test_a_delivery_without_words_is_told_as_such():
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        await posted(client, "github", b"", clock.now())
        [found] = await stimuli(home)

    assert found[5] == "(a webhook without text)"


async def test_a_retry_is_answered_with_the_first_receipt_and_another_body_is_a_conflict():
    """T9: a replay opens no second turn, and an id belongs to the hook that it came to."""
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        first = await posted(client, "standard", b'{"a":1}', clock.now())
        clock.advance(60)
        again = await posted(client, "standard", b'{"a":1}', clock.now())
        before = await counts(home.runtime)
        other = await posted(client, "standard", b'{"a": 1}', clock.now())
        after = await counts(home.runtime)
        elsewhere = await posted(client, "github", b'{"a": 1}', clock.now())
        listed = (await _listed(home))["standard"]
        metrics = await _metrics(home)

    assert (first.status_code, again.status_code, other.status_code) == (202, 200, 409)
    assert first.content == again.content
    assert before == after
    assert elsewhere.status_code == 202  # the same id of another source is another delivery
    assert (listed["refused"], listed["last_refusal"]) == (1, "different-body")
    assert 'wakeful_webhooks_total{hook="standard",outcome="different-body"} 1.0' in metrics
    assert 'wakeful_webhooks_total{hook="standard",outcome="repeated"} 1.0' in metrics


async def test_a_query_that_nobody_signs_is_refused_and_writes_no_row():
    """T9: in whichever order it stands."""
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        before = await counts(home.runtime)
        answers = [
            await posted(client, "standard", b"{}", clock.now(), to=f"standard{query}")
            for query in ("?a=1&b=2", "?b=2&a=1")
        ]
        after = await counts(home.runtime)
        plain = await posted(client, "standard", b"{}", clock.now())

    assert [one.status_code for one in (*answers, plain)] == [422, 422, 202]
    assert before == after


async def test_equal_words_made_of_other_bytes_are_a_conflict_under_one_id():
    clock = ManualClock()
    settings = with_hooks(text="{payload.a}")
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        first = await posted(client, "standard", b'{"a":1}', clock.now())
        other = await posted(client, "standard", b'{"a":1,"b":2}', clock.now())

    assert (first.status_code, other.status_code) == (202, 409)


@pytest.mark.parametrize(
    ("fields", "same", "statuses"),
    [
        ({}, {}, [202, 202]),  # a shop has no id for a delivery
        ({"dedup": "{X-Id}"}, {"X-Id": "7"}, [202, 200]),
        ({"dedup": "{X-Id}"}, {}, [202, 202]),
        ({"dedup": "{body}"}, {}, [202, 200]),
        ({"dedup": "{X-Id}"}, {"X-Id": "7" * 5000}, [202, 200]),
    ],
)
async def test_a_template_may_say_by_what_a_delivery_is_known(
    fields: dict[str, str], same: dict[str, str], statuses: list[int]
):
    clock = ManualClock()
    async with house(settings=with_hooks(**fields), clock=clock) as home, home.client() as client:
        answers = [
            await posted(client, "shop", b"words", clock.now(), headers=same) for _ in range(2)
        ]

    assert [one.status_code for one in answers] == statuses


async def test_a_key_counts_inside_its_window_whatever_becomes_of_the_clock():
    clock = ManualClock()
    settings = with_hooks(dedup_window_s=600)
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        answers = [await posted(client, "github", b"x", clock.now())]
        for by_s in (599, -3600, 599, 2):  # set back, a window is never longer than from then on
            clock.jump_to(clock.now() + by_s * 1000)
            answers.append(await posted(client, "github", b"x", clock.now()))

    assert [one.status_code for one in answers] == [202, 200, 200, 200, 202]


async def test_with_a_session_a_delivery_opens_a_turn_there_and_as_now_in_activity():
    clock = ManualClock()
    settings = Settings(
        drain_s=1,
        hooks={"github": hooks(session="builds")["github"], "shop": hooks(priority="now")["shop"]},
    )
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        build = (await posted(client, "github", b"/stop", clock.now(), headers=TEXT)).json()
        order = (await posted(client, "shop", b"/status", clock.now(), headers=TEXT)).json()
        turns = [await _turn_of(home, receipt) for receipt in (build, order)]
        owners = await home.runtime.store.read("SELECT DISTINCT owner FROM sessions")

    assert (build["session_key"], build["outcome"]) == ("agent:main:builds", "started")
    assert (order["session_key"], order["outcome"]) == (ACTIVITY, "started")
    assert [(turn.trust, turn.kind, turn.source) for turn in turns] == [
        ("external", "webhook", "github"),
        ("external", "webhook", "shop"),
    ]
    assert [tuple(row) for row in owners] == [("operator",)]


async def test_a_storm_holds_the_rest_and_its_sender_learns_it():
    clock = ManualClock()
    settings = with_hooks(session="builds", storm=StormOverrides(turns=2))
    async with house(settings=settings, clock=clock) as home, home.client() as client:
        receipts = [(await posted(client, "shop", b"%d" % n, clock.now())).json() for n in range(4)]

    assert [one["outcome"] for one in receipts[2:]] == ["held", "held"]
    assert receipts[3]["reason"] == "storm"
    assert "held" not in [one["outcome"] for one in receipts[:2]]


async def test_other_hooks_are_taken_after_a_change_of_the_settings():
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        only = Settings(drain_s=1, hooks={"shop": hooks()["shop"]})
        await home.runtime.reconfigure(settings=only)
        gone = await posted(client, "github", b"x", clock.now())
        kept = await posted(client, "shop", b"x", clock.now())

    assert (gone.status_code, kept.status_code) == (401, 202)


async def test_wrong_signatures_are_told_to_wait_and_right_ones_still_come_in():
    clock = ManualClock()
    async with house(settings=with_hooks(), clock=clock) as home, home.client() as client:
        answers = [
            await client.post(f"/hooks/{name}", content=b"{}", headers=JSON)
            for name in ["github", "nobody"] * 11
        ]
        good = await posted(client, "github", b"x", clock.now())
        metrics = await _metrics(home)

    assert [one.status_code for one in answers] == [401] * 20 + [429] * 2
    assert "retry-after" in answers[-1].headers
    assert good.status_code == 202
    assert 'wakeful_webhooks_total{hook="",outcome="unknown-name"} 11.0' in metrics
    assert "nobody" not in metrics


async def _turn_of(home: House, receipt: dict[str, Any]) -> Turn:
    told = Receipt(
        stimulus_id=receipt["stimulus_id"],
        session_key=receipt["session_key"],
        outcome=Outcome(receipt["outcome"]),
    )
    turn = await home.runtime.wait(told, PATIENCE_S)
    assert turn is not None
    return turn


async def _listed(home: House) -> dict[str, dict[str, Any]]:
    async with home.client(home.operator) as client:
        return {one["name"]: one for one in (await client.get("/api/hooks")).json()["items"]}


async def _metrics(home: House) -> str:
    async with home.client(home.operator) as client:
        return (await client.get("/metrics")).text


@pytest.mark.parametrize("name", SCHEMES)
async def test_an_example_goes_by_the_real_route_and_answers_its_receipt(name: str):
    clock = ManualClock()
    async with (
        house(settings=with_hooks(session="builds"), clock=clock) as home,
        home.client(home.operator) as client,
    ):
        answer = await client.post(f"/api/hooks/{name}/test", json={})
        again = await client.post(f"/api/hooks/{name}/test", json={"payload": {"ref": "main"}})
        listed = (await _listed(home))[name]
        metrics = await _metrics(home)
        audit = await home.runtime.store.read("SELECT who, action, target FROM audit")

    assert (answer.status_code, again.status_code) == (202, 202)
    assert answer.json()["session_key"] == "agent:main:builds"
    assert answer.json()["stimulus_id"] != again.json()["stimulus_id"]
    expected: dict[str, object] = {
        "name": name,
        "verify": SCHEMES[name]["verify"],
        "agent": "main",
        "session": "agent:main:builds",
        "priority": "next",
        "tools": [],
        "accepted": 2,
        "refused": 0,
        "last_at": "2027-01-15T08:00:00Z",
        "last_refused_at": None,
        "last_refusal": None,
    }
    assert listed == expected
    assert 'route="/hooks/{name}",status="202"} 2.0' in metrics
    assert ("the operator", "hook.test", name) in [tuple(row) for row in audit]


async def test_an_example_for_nobody_is_told_and_only_the_operator_sends_one():
    async with house(settings=with_hooks()) as home:
        reader = await home.token("read")
        async with home.client(home.operator) as client:
            unknown = await client.post("/api/hooks/nobody/test", json={})
        async with home.client(reader) as client:
            seen = await client.get("/api/hooks")
            refused = await client.post("/api/hooks/github/test", json={})

    assert (unknown.status_code, seen.status_code, refused.status_code) == (404, 200, 403)


async def test_what_is_refused_inside_is_answered_as_outside():
    clock = ManualClock()
    settings = with_hooks(dedup="{payload.id}")
    async with (
        house(settings=settings, clock=clock) as home,
        home.client(home.operator) as client,
    ):
        answers = [
            await client.post("/api/hooks/shop/test", json={"payload": {"id": 1, "n": n}})
            for n in (1, 1, 2)
        ]

    assert [one.status_code for one in answers] == [202, 200, 409]
    assert answers[2].json()["code"] == "conflict"


async def test_too_many_at_once_of_one_address_wait_before_a_byte_of_theirs_is_read():
    async with house(settings=with_hooks()) as home, AsyncExitStack() as stack:
        head = b"POST /hooks/github HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"
        for _ in range(AT_ONCE_EACH):
            _, writer = await stack.enter_async_context(connected(home.port))
            writer.write(head)
            await writer.drain()
        async with home.client() as client:
            answer = await client.post("/hooks/github", content=b"x")
            while answer.status_code == 401:  # until the others have arrived
                answer = await client.post("/hooks/github", content=b"x")

    assert answer.status_code == 429
    assert answer.json()["detail"] == "too many webhooks at once"
