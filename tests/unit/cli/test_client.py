"""What a server answers becomes data, or a sentence with an exit code."""

import socket
import threading

import pytest

from wakeful.cli.client import ServerClient, SseFrame, answered, frames, segment
from wakeful.cli.exits import CommandFailed, ExitCode, Misused, Unreachable, code_of
from wakeful.vocabulary.errors import InvalidInput, NotFound, StoreBusy, StoreDamaged

WHERE = "http://server/api"


def test_an_answer_is_its_data():
    assert answered(200, b'{"a": 1}', WHERE) == {"a": 1}
    assert answered(204, b"", WHERE) is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ExitCode.USAGE),
        (401, ExitCode.DENIED),
        (403, ExitCode.DENIED),
        (404, ExitCode.NOT_FOUND),
        (409, ExitCode.USAGE),
        (413, ExitCode.USAGE),
        (421, ExitCode.DENIED),
        (422, ExitCode.USAGE),
        (429, ExitCode.BUSY),
        (500, ExitCode.FAILURE),
        (503, ExitCode.BUSY),
        (507, ExitCode.BUSY),
    ],
)
def test_a_problem_has_the_exit_code_of_its_kind(status: int, code: ExitCode):
    with pytest.raises(CommandFailed) as caught:
        answered(status, b'{"title": "Title", "detail": "what to do"}', WHERE)

    assert code_of(caught.value) is code
    assert status == 401 or str(caught.value) == "what to do"


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"\xff"])
def test_a_stranger_at_the_port_is_no_crash(body: bytes):
    with pytest.raises(CommandFailed):
        answered(500, body, WHERE)
    with pytest.raises(CommandFailed, match="answers unlike a wakeful server"):
        answered(200, b"<html>", WHERE)


def test_a_server_that_is_not_there_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = ServerClient(f"http://127.0.0.1:{free.getsockname()[1]}", "token")

        with pytest.raises(Unreachable, match="start one with `wakeful up`"):
            client.get("/api/agents")
        assert not client.is_ready()


def test_a_server_that_dies_before_it_answers_may_have_done_what_was_asked():
    def die(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = ServerClient(f"http://127.0.0.1:{listening.getsockname()[1]}", "token")
        dying = threading.Thread(target=die, args=(listening,))
        dying.start()
        with pytest.raises(Unreachable, match="may be on disk"):
            client.post("/api/sessions/main/messages", {"text": "hello"})
        dying.join()


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8484", "ftp://x", "http://", "http://x:port", "http://[::1"]
)
def test_an_address_that_is_none_is_told(url: str):
    with pytest.raises((Misused, Unreachable)):
        ServerClient(url, None).get("/api/agents")


def test_a_stream_is_read_frame_by_frame():
    told = (
        b': wakeful\n\nid: ep_1-1\nevent: turn.started\ndata: {"a":1}\n\n'
        b": keep-alive\n\nevent: odd\ndata: [1]\n\nevent:turn.delta\r\ndata:{}\r\n\r\n"
        b"event: cut\ndata: {"
    )

    assert list(frames(told.splitlines(keepends=True))) == [
        SseFrame(id="ep_1-1", kind="turn.started", data={"a": 1}),
        SseFrame(id="", kind="turn.delta", data={}),
    ]


def test_a_name_is_one_segment_of_a_path():
    assert segment("agent:main:../x y%2f") == "agent%3Amain%3A..%2Fx%20y%252f"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("turn", "none"), ExitCode.NOT_FOUND),
        (InvalidInput("key", "bad"), ExitCode.USAGE),
        (StoreBusy(), ExitCode.BUSY),
        (StoreDamaged(), ExitCode.FAILURE),
        (Unreachable(), ExitCode.UNREACHABLE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_an_exit_code(error: CommandFailed, code: ExitCode):
    assert code_of(error) is code
