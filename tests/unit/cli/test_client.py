"""What a server answers becomes data, or a sentence with an exit code."""

import socket

import httpx2
import msgspec
import pytest

from wakeful.cli.client import ServerClient, answered, segment
from wakeful.cli.exits import CommandFailed, ExitCode, Unreachable, code_of
from wakeful.vocabulary.errors import InvalidInput, NotFound, StoreBusy, StoreDamaged


def response(status: int, body: object) -> httpx2.Response:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    request = httpx2.Request("GET", "http://server/api")
    return httpx2.Response(status, content=content, request=request)


def test_an_answer_is_its_data():
    assert answered(response(200, {"a": 1})) == {"a": 1}
    assert answered(response(204, b"")) is None


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
        answered(response(status, {"title": "Title", "detail": "what to do"}))

    assert code_of(caught.value) is code
    assert status == 401 or str(caught.value) == "what to do"


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"\xff"])
def test_a_stranger_at_the_port_is_no_crash(body: bytes):
    with pytest.raises(CommandFailed):
        answered(response(500, body))
    with pytest.raises(CommandFailed, match="answers unlike a wakeful server"):
        answered(response(200, b"<html>"))


def test_a_server_that_is_not_there_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = ServerClient(f"http://127.0.0.1:{free.getsockname()[1]}", "token")

        with pytest.raises(Unreachable, match="start one with `wakeful up`"):
            client.get("/api/agents")
        assert not client.is_ready()


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
