"""What a receiver of webhooks may rely on: signed, in order, again until it has it, never lost."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.integration.net.receiver import (
    Log,
    Manner,
    Received,
    Receiver,
    answers,
    receiving,
    says_nothing,
)
from wakeful.doors.signing import read_keys
from wakeful.doors.webhooks_out import WebhookOut
from wakeful.net.addresses import allow
from wakeful.net.client import Client
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along
from wakeful.runtime import Runtime
from wakeful.settings.settings import OutboundSettings, Settings
from wakeful.store.database import Tx
from wakeful.testing.kit import ManualClock, Scripted, in_memory, wait_for
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import ReadyAttachment

OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
CRM = Route(door="crm")


def to(secret: str = OLD, **receivers: Receiver) -> Settings:
    """Return settings with these receivers, which lie on loopback."""
    return Settings(
        drain_s=1,
        outbound={
            name: OutboundSettings(url=receiver.url, secret=secret, allow_private=True)
            for name, receiver in receivers.items()
        },
    )


@asynccontextmanager
async def delivering(
    manner: Manner | None = None,
    *,
    model: Sequence[str] = (),
    secret: str = OLD,
    clock: Clock | None = None,
) -> AsyncGenerator[tuple[Runtime, Receiver], None]:
    """Run a runtime with one receiver, `crm`."""
    async with (
        receiving(manner) as receiver,
        in_memory(model, settings=to(secret, crm=receiver), clock=clock) as runtime,
    ):
        yield runtime, receiver


async def file(runtime: Runtime, *texts: str, route: Route = CRM) -> list[str]:
    """File deliveries as a turn would, in one commit; return their ids."""

    def write(tx: Tx) -> None:
        for number, text in enumerate(texts):
            outbox.file(
                tx,
                f"dl_{tx.now:012x}_{route.door}_{number}",
                route,
                text,
                session_key="agent:main:main",
                turn_id=None,
            )

    await runtime.store.transact(write)
    rows = await runtime.store.read("SELECT id FROM deliveries ORDER BY id")
    return [row[0] for row in rows if route.door in row[0]]


async def told(runtime: Runtime, kind: str, count: int = 1) -> Event:
    """Return the n-th event of a kind."""
    seen: list[Event] = []
    return await wait_for(
        runtime, f"delivery.{kind}", lambda e: not seen.append(e) and len(seen) == count
    )


async def test_a_reply_arrives_signed_with_all_that_identifies_it():
    async with delivering(model=["it is done"]) as (runtime, receiver):
        route = Route(door="crm", address="ann", thread="t1", account="acme")
        receipt = await runtime.send("do it", route=route)
        turn = await runtime.wait(receipt)
        acknowledged = await told(runtime, "acknowledged")
    (received,) = receiver.requests
    assert turn is not None

    verified = Webhook(OLD).verify(received.body, received.headers)

    created_at = verified.pop("created_at")
    assert verified == {
        "type": "message",
        "id": received.id,
        "session_key": "agent:main:main",
        "turn_id": turn.id,
        "text": "it is done",
        "address": "ann",
        "thread": "t1",
        "account": "acme",
        "reply_to": None,
        "attachments": [],
    }
    assert created_at.endswith("+00:00")
    assert received.line == "POST /hook?token=canary HTTP/1.1"
    assert received.headers["content-type"] == "application/json"
    assert acknowledged.data["delivery_id"] == received.id


async def test_a_forged_body_and_a_foreign_secret_do_not_verify():
    async with delivering() as (runtime, receiver):
        await file(runtime, "hello")
        (received,) = await receiver.next()

    for secret, body in ((OLD, received.body + b" "), (NEW, received.body)):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, received.headers)


async def test_while_secrets_are_exchanged_either_one_verifies():
    async with delivering(secret=f"{NEW} {OLD}") as (runtime, receiver):
        await file(runtime, "hello")
        (received,) = await receiver.next()

    for secret in (OLD, NEW):
        assert Webhook(secret).verify(received.body, received.headers)["text"] == "hello"


async def test_one_receiver_gets_everything_in_order_whatever_fails_between():
    clock = ManualClock()
    async with delivering(answers(503, 200, 429, 500, 200), clock=clock) as (runtime, receiver):
        ids = await file(runtime, "one", "two", "three")
        for retry in (1, 2, 3):
            await told(runtime, "retry", retry)
            clock.advance(60)
        await told(runtime, "acknowledged", 3)

    one, two, three = ids
    assert receiver.ids == [one, one, two, two, two, three]


async def test_another_attempt_has_the_same_id_and_body_and_a_signature_of_its_time():
    clock = ManualClock()
    async with delivering(answers(500, 200), clock=clock) as (runtime, receiver):
        await file(runtime, "hello")
        await told(runtime, "retry")
        clock.advance(60)
        await told(runtime, "acknowledged")

    first, second = receiver.requests
    assert (first.id, first.body) == (second.id, second.body)
    times = [int(one.headers["webhook-timestamp"]) for one in (first, second)]
    assert times[1] - times[0] == 60
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


async def test_attempts_come_ever_more_rarely():
    clock = ManualClock()
    waits: list[int] = []
    async with delivering(answers(500), clock=clock) as (runtime, _):
        await file(runtime, "hello")
        for retry in range(1, 13):
            await told(runtime, "retry", retry)
            ((due_at,),) = await runtime.store.read("SELECT due_at FROM deliveries")
            waits.append((due_at - clock.now()) // 1000)
            clock.advance(waits[-1])

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]


async def test_a_receiver_says_how_long_to_wait():
    clock = ManualClock()
    async with delivering(answers(429, 200, headers="Retry-After: 90\r\n"), clock=clock) as (
        runtime,
        _,
    ):
        await file(runtime, "hello")
        await told(runtime, "retry")
        ((due_at,),) = await runtime.store.read("SELECT due_at FROM deliveries")
        waits = due_at - clock.now()
        clock.advance(90)
        await told(runtime, "acknowledged")

    assert waits == 90_000


async def test_an_absurd_wish_to_wait_does_not_keep_the_next_message_for_years():
    clock = ManualClock()
    async with delivering(answers(503, 200, headers="Retry-After: 999999999\r\n"), clock=clock) as (
        runtime,
        receiver,
    ):
        await file(runtime, "one", "two")
        await told(runtime, "retry")
        clock.advance(3600)
        await told(runtime, "acknowledged", 2)

    assert len(receiver.requests) == 3


async def test_what_cannot_be_delivered_for_a_day_expires_and_lets_the_next_one_pass():
    clock = ManualClock()
    async with delivering(answers(500, 200), clock=clock) as (runtime, receiver):
        (old,) = await file(runtime, "old")
        await told(runtime, "retry")
        clock.advance(86_400)
        expired = await told(runtime, "expired")
        _, new = await file(runtime, "new")
        await told(runtime, "acknowledged")

    assert expired.data["delivery_id"] == old
    assert receiver.ids == [old, new]


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422, 301, 308])
async def test_a_refusal_is_final_and_lets_the_next_one_pass(status: int):
    async with delivering(answers(status, 200), clock=ManualClock()) as (runtime, _):
        refused, passed = await file(runtime, "one", "two")
        failed = await told(runtime, "failed")
        acknowledged = await told(runtime, "acknowledged")

    assert failed.data["delivery_id"] == refused
    assert str(status) in str(failed.data["error"])
    assert acknowledged.data["delivery_id"] == passed


async def test_one_dead_receiver_delays_no_other():
    clock = ManualClock()
    async with (
        receiving(says_nothing) as hanging,
        receiving(answers(500)) as broken,
        receiving() as gone,
        receiving() as crm,
    ):
        settings = to(hanging=hanging, broken=broken, crm=crm)
        async with in_memory(settings=settings, clock=clock) as runtime:
            for dead in ("hanging", "broken"):
                await file(runtime, "to the dead", route=Route(door=dead))
            await hanging.next()
            await told(runtime, "retry")
            ids = await file(runtime, *(str(number) for number in range(20)))
            arrived = await crm.next(20)
            await told(runtime, "acknowledged", 20)

    assert gone.connections == 0
    assert len(hanging.requests) == 1
    assert sorted(ids) == sorted(received.id for received in arrived)


async def test_a_receiver_that_hangs_is_given_up_and_tried_again():
    clock = ManualClock()
    async with delivering(says_nothing, clock=clock) as (runtime, receiver):
        await file(runtime, "hello")
        await receiver.next()
        clock.advance(15)
        retry = await told(runtime, "retry")
        receiver.manner = answers(200)
        clock.advance(60)
        await told(runtime, "acknowledged")

    assert retry.data["error"] == "Transient: '127.0.0.1' took too long"
    assert len(set(receiver.ids)) == 1


async def test_an_acknowledgement_is_enough_whatever_follows_it():
    async def goes_on(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 99\r\n\r\nnever all of it")
        await says_nothing(received, writer)

    async with delivering(goes_on, clock=ManualClock()) as (runtime, receiver):
        await file(runtime, "hello")
        await told(runtime, "acknowledged")
        await receiver.gone()

    assert len(receiver.requests) == 1


@pytest.mark.parametrize("has_bytes", [False, True])
async def test_a_webhook_names_the_files_and_has_their_bytes_if_the_receiver_wants_them(
    has_bytes: bool,
):
    picture = ReadyAttachment(
        name="p.png", media_type="image/png", size=3, hash="ab" * 32, data="AAAA"
    )

    def write(tx: Tx) -> None:
        along = Along(attachments=(picture,), reply_to="m-1")
        outbox.file(
            tx, "dl_1", CRM, "look", session_key="agent:main:main", turn_id=None, along=along
        )

    async with receiving() as receiver:
        one = OutboundSettings(
            url=receiver.url, secret=OLD, allow_private=True, has_attachments=has_bytes
        )
        async with in_memory(settings=Settings(drain_s=1, outbound={"crm": one})) as runtime:
            await runtime.store.transact(write)
            await told(runtime, "acknowledged")

    (received,) = receiver.requests
    verified = Webhook(OLD).verify(received.body, received.headers)
    assert verified["reply_to"] == "m-1"
    named = {
        "name": "p.png",
        "media_type": "image/png",
        "size": 3,
        "hash": "ab" * 32,
        "path": f"/api/deliveries/dl_1/attachments/{'ab' * 32}",
    }
    assert verified["attachments"] == [named | ({"data": "AAAA"} if has_bytes else {})]


async def test_a_redirect_into_the_machine_is_never_followed():
    log, clock = Log(), ManualClock()
    async with receiving() as inside:
        there = f"location: http://127.0.0.1:{inside.port}/\r\n"
        metadata = "location: http://169.254.169.254/latest\r\n"
        async with (
            receiving(answers(302, headers=metadata)) as one,
            receiving(answers(307, headers=there)) as two,
        ):
            client = Client(clock, observer=log)
            doors = {
                name: WebhookOut(
                    name,
                    receiver.url,
                    read_keys(OLD),
                    client=client,
                    clock=clock,
                    allowed=allow(["127.0.0.1"]),
                )
                for name, receiver in (("one", one), ("two", two))
            }
            async with in_memory(clock=clock, doors=dict(doors)) as runtime:
                for name in doors:
                    await file(runtime, "hello", route=Route(door=name))
                await told(runtime, "retry", 2)

    assert inside.connections == 0
    assert {(connect.address, connect.port) for connect in log.connects} == {
        ("127.0.0.1", one.port),
        ("127.0.0.1", two.port),
    }


async def test_a_name_that_leads_inside_fails_without_a_connection_unless_it_is_permitted():
    async with receiving() as receiver:
        url = f"http://localhost:{receiver.port}/"
        settings = Settings(outbound={"crm": OutboundSettings(url=url, secret=OLD)})
        async with in_memory(settings=settings) as runtime:
            await file(runtime, "hello")
            failed = await told(runtime, "failed")

    assert failed.data["error"] == "'localhost' leads to an address that is not public"
    assert receiver.connections == 0


async def test_neither_the_path_nor_a_secret_is_told_when_things_go_wrong(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG)
    async with receiving() as receiver:
        settings = to(crm=receiver)
    async with in_memory(settings=settings, clock=ManualClock()) as runtime:
        await file(runtime, "hello")
        await told(runtime, "retry")
        stored = await runtime.store.read("SELECT error FROM deliveries")
        events = await runtime.store.read("SELECT data FROM events")

    everything = f"{caplog.text} {stored} {events}"
    assert "cannot be connected to" in everything
    for secret in ("canary", OLD.removeprefix("whsec_"), "/hook"):
        assert secret not in everything


@pytest.mark.parametrize(
    ("name", "url", "secret", "rule"),
    [
        ("crm", "ftp://x", OLD, "outbound.crm.url: must be http://… or https://…"),
        ("crm", "http://a:b@x/", OLD, "outbound.crm.url: must hold no user name or password"),
        ("crm", "http://127.0.0.1/", OLD, "outbound.crm.url: has an address that is not public"),
        ("crm", "http://[::1]/", OLD, "outbound.crm.url: has an address that is not public"),
        ("crm", "http://x/", "", "outbound.crm.secret: must not be empty"),
        ("crm", "http://x/", "weak", "outbound.crm.secret: must be 24 to 64 random bytes"),
        ("http", "http://x/", OLD, "outbound.http: must have another name"),
        ("hub", "http://x/", OLD, "outbound.hub: must have another name"),
        ("a\x1fb", "http://x/", OLD, "outbound.a\x1fb: must have another name"),
    ],
)
def test_a_receiver_that_nothing_could_be_sent_to_is_refused_at_start(
    name: str, url: str, secret: str, rule: str
):
    with pytest.raises(InvalidInput) as caught:
        Settings(outbound={name: OutboundSettings(url=url, secret=secret)})

    assert str(caught.value).startswith(rule)


def test_a_receiver_must_not_take_the_name_of_another_door():
    async def crm(delivery: outbox.Delivery) -> None:
        pass

    settings = Settings(outbound={"crm": OutboundSettings(url="http://x/", secret=OLD)})
    with pytest.raises(InvalidInput, match=r"outbound\.crm: must not be the name of another door"):
        in_memory(Scripted([]), settings=settings, doors={"crm": crm})


def test_who_has_no_receivers_does_not_load_the_client():
    code = "import sys, wakeful.cli.up; print('httpcore2' in sys.modules)"

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "False\n"
