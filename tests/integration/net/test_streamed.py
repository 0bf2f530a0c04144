"""Answers that are read as they come: real connections on loopback, kept, broken and refused."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from wakeful.net.addresses import NOBODY, allow
from wakeful.net.exchange import LARGEST_HEAD, AddressRefused, OutOfReach
from wakeful.net.streamed import IDLE_S, StreamingClient
from wakeful.net.target import parse
from wakeful.vocabulary.clock import ManualClock, SystemClock

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Place:
    """A server that answers each request with the next piece of its script, byte for byte."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)  # None: the connection is closed instead
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.tasks: list[asyncio.Task[None]] = []
        self.closed = asyncio.Event()
        self.go_on = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            self.heads.append(head)
            self.bodies.append(await reader.readexactly(length))
            answer = self.answers.pop(0) if self.answers else SHORT
            if answer is None:
                break
            first, _, rest = answer.removesuffix(b"!").partition(b"|")
            writer.write(first)
            if rest:
                await self.go_on.wait()
                writer.write(rest)
            if answer.endswith(b"!"):  # and that is all
                break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.closed.set()


Client = Callable[..., StreamingClient]


@asynccontextmanager
async def running(place: Place) -> AsyncGenerator[Client, None]:
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    made: list[StreamingClient] = []

    def client(clock: ManualClock | None = None) -> StreamingClient:
        target = parse(f"http://127.0.0.1:{port}")
        found = StreamingClient(target, clock or SystemClock(), allowed=allow(["127.0.0.1"]))
        made.append(found)
        return found

    try:
        yield client
    finally:
        for one in made:
            await one.aclose()
        server.close()
        place.go_on.set()
        await asyncio.gather(*place.tasks)


async def asked(client: StreamingClient, body: bytes = b"{}") -> bytes:
    found = b""
    async with client.post("/v1/x", {"x-key": "k"}, body) as answer:
        while piece := await answer.read():
            found += piece
    return found


async def test_pieces_are_read_as_they_come():
    place = Place(CHUNKED + b"3\r\none\r\n|3\r\ntwo\r\n" + END)
    async with (
        running(place) as client,
        client().post("/v1/x", {"x-key": "k"}, b"[1]") as answer,
    ):
        first = await answer.read()
        place.go_on.set()
        rest = [await answer.read(), await answer.read()]

    assert (answer.status, first, rest) == (200, b"one", [b"two", b""])
    assert answer.headers["content-type"] == "text/event-stream"
    assert place.heads[0].startswith(b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"x-key: k\r\n" in place.heads[0]
    assert b"Accept-Encoding: identity\r\n" in place.heads[0]
    assert place.bodies == [b"[1]"]


async def test_a_connection_serves_one_request_after_the_other():
    place = Place()
    async with running(place) as client:
        one = client()
        answers = [await asked(one), await asked(one), await asked(one)]

    assert answers == [b"ok"] * 3
    assert place.connections == 1


async def test_requests_at_the_same_time_have_connections_of_their_own():
    place = Place(*[CHUNKED + b"|1\r\na\r\n" + END] * 2)
    async with running(place) as client:
        one = client()
        async with one.post("/", {}, b"") as first, one.post("/", {}, b"") as second:
            place.go_on.set()
            assert [await first.read(), await second.read()] == [b"a", b"a"]

    assert place.connections == 2


async def test_a_kept_connection_that_was_closed_meanwhile_is_replaced():
    place = Place(SHORT, None, SHORT)
    async with running(place) as client:
        one = client()
        answers = [await asked(one), await asked(one)]

    assert answers == [b"ok", b"ok"]
    assert place.connections == 2


async def test_a_new_connection_that_breaks_before_it_answers_is_told():
    async with running(Place(None)) as client:
        with pytest.raises(OutOfReach, match="broke the connection"):
            await asked(client())


async def test_an_answer_that_breaks_off_is_told():
    async with running(Place(CHUNKED + b"3\r\none\r\n!")) as client:
        with pytest.raises(OutOfReach):
            await asked(client())


async def test_an_answer_of_the_old_kind_ends_with_its_connection():
    async with running(Place(b"HTTP/1.0 200 OK\r\n\r\nall of it!")) as client:
        assert await asked(client()) == b"all of it"


async def test_a_hint_of_what_will_come_is_no_answer():
    hint = b"HTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\n\r\n"
    async with running(Place(hint + SHORT)) as client:
        assert await asked(client()) == b"ok"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "packed"),
        (b"220 mail.example ESMTP\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * LARGEST_HEAD + b"\r\n\r\n", "too many headers"),
    ],
    ids=["packed", "no HTTP", "a large head"],
)
async def test_an_answer_that_nobody_asked_for_is_refused(answer: bytes, told: str):
    async with running(Place(answer)) as client:
        with pytest.raises(OutOfReach, match=told):
            await asked(client())


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        CHUNKED + b"5;",
        CHUNKED + b"2\r\nok\r\n0\r\nX: ",
    ],
    ids=["status", "header", "mark of a chunk", "trailer"],
)
async def test_a_line_around_an_answer_ends_or_the_answer_does(head: bytes):
    async with running(Place(head + b"a" * 4 * 1024 * 1024)) as client, asyncio.timeout(5):
        with pytest.raises(OutOfReach, match="without end"):
            await asked(client())


async def test_hints_without_end_are_no_answer():
    async with (
        running(Place(b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000)) as client,
        asyncio.timeout(5),
    ):
        with pytest.raises(OutOfReach, match="without end"):
            await asked(client())


async def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next():
    place = Place(SHORT + b"|" + SHORT.replace(b"ok", b"no"), SHORT)
    async with running(place) as client:
        one = client()
        first = await asked(one)
        place.go_on.set()
        async with asyncio.timeout(5):
            await place.closed.wait()
        second = await asked(one)

    assert (first, second) == (b"ok", b"ok")
    assert place.connections == 2


async def test_a_second_answer_right_behind_the_first_is_not_taken_for_it():
    place = Place(SHORT + SHORT.replace(b"200 OK", b"500 No").replace(b"ok", b"no"), SHORT)
    async with running(place) as client:
        one = client()
        async with one.post("/", {}, b"") as answer:
            first = answer.status, await answer.read()
        second = await asked(one)

    assert (first, second) == ((200, b"ok"), b"ok")
    assert place.connections == 2


async def test_an_answer_may_be_given_so_much_time_to_end_and_no_more():
    place, clock = Place(CHUNKED + b"3\r\none\r\n|never"), ManualClock()
    async with running(place) as client, client(clock).post("/", {}, b"") as answer:
        await answer.read()
        for _ in range(2):  # the second time does not count
            answer.end_within(clock, 1)
            clock.advance(0.6)
        with pytest.raises(OutOfReach):
            await answer.read()


async def test_an_answer_that_ends_in_time_leaves_its_connection_for_the_next():
    place, clock = Place(CHUNKED + b"3\r\none\r\n|" + END, SHORT), ManualClock()
    async with running(place) as client:
        one = client(clock)
        async with one.post("/", {}, b"") as answer:
            await answer.read()
            answer.end_within(clock, 1)
            place.go_on.set()
            assert await answer.read() == b""
        clock.advance(2)
        second = await asked(one)

    assert second == b"ok"
    assert place.connections == 1


async def test_leaving_before_the_end_closes_the_connection():
    place = Place(CHUNKED + b"3\r\none\r\n|never")
    async with running(place) as client:
        async with client().post("/", {}, b"") as answer:
            await answer.read()
        place.go_on.set()
        async with asyncio.timeout(5):
            await place.closed.wait()

    assert place.connections == 1


async def test_a_connection_that_nobody_uses_is_closed_after_a_while():
    place, clock = Place(), ManualClock()
    async with running(place) as client:
        await asked(client(clock))
        clock.advance(IDLE_S)
        async with asyncio.timeout(5):
            await place.closed.wait()


async def test_an_answer_that_comes_faster_than_it_is_read_waits_at_its_sender():
    large = b"x" * 8 * 1024 * 1024
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(large)
    async with running(Place(head + large)) as client, client().post("/", {}, b"") as answer:
        pieces = [await answer.read()]
        while pieces[-1]:
            pieces.append(await answer.read())

    assert b"".join(pieces) == large
    assert max(map(len, pieces)) < len(large)


async def test_an_address_that_nobody_allowed_is_not_connected_to():
    client = StreamingClient(parse("http://127.0.0.1:9"), SystemClock(), allowed=NOBODY)

    with pytest.raises(AddressRefused, match="not public"):
        await asked(client)


async def test_nobody_is_there():
    place = parse("http://127.0.0.1:9")
    client = StreamingClient(place, SystemClock(), allowed=allow(["127.0.0.1"]))

    with pytest.raises(OutOfReach, match=r"'127\.0\.0\.1:9' cannot be connected to") as told:
        await asked(client)

    assert told.value.is_early
