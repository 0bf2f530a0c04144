"""The network of clients that others wrote."""

import asyncio

import httpx2

from tests.integration.net.receiver import answers, receiving
from wakeful.net.addresses import allow
from wakeful.net.streaming import LEAST_PAUSE_S, guarded_transport
from wakeful.net.wire import Patience
from wakeful.vocabulary.clock import ManualClock


async def test_who_wants_to_be_looked_at_again_at_once_is_looked_at_after_a_pause():
    clock = ManualClock()
    transport = await guarded_transport(
        clock, allowed=allow(["127.0.0.1"]), patience=Patience(), most_bytes=1000
    )
    async with (
        receiving(answers(200, headers="connection: close\r\n")) as receiver,
        httpx2.AsyncClient(
            transport=transport, timeout=None, trust_env=False, headers={"Content-Length": "0"}
        ) as client,
    ):
        await client.get(receiver.url)
        async with asyncio.TaskGroup() as group:
            group.create_task(client.get(receiver.url))
            await client.post(receiver.url)
            seen = [received.line.split()[0] for received in receiver.requests]
            clock.advance(LEAST_PAUSE_S)

    assert seen == ["GET", "POST"]
    assert len(receiver.requests) == 3
