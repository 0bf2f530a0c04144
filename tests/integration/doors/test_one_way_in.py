"""The same words come to the same at every door; a new door joins by a row of `DOORS`."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.integration.http.serving import Frame, House, frames, house
from wakeful.access.principal import Principal
from wakeful.doors.http.shapes import answered
from wakeful.intake.bindings import Contact
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import wait_for
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.stimulus import Receipt

ANN = Contact(door="telegram", peer="ann")
# A chat waits a moment by itself, which is no difference in what is done.
AT_ONCE = Settings(drain_s=1, queue=QueueOverrides(debounce_ms=0))

CHATS = {"operator": "main", "stranger": "api:1"}


@dataclass(frozen=True)
class Stage:
    """A runtime with an open door, and what each shows there."""

    home: House
    secrets: dict[str, str]

    @property
    def runtime(self) -> Runtime:
        return self.home.runtime

    def client(self, who: str) -> httpx2.AsyncClient:
        return self.home.client(self.secrets[who])


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage, None]:
    async with house(settings=AT_ONCE) as home:
        token = await home.token("send", name="stranger")
        yield Stage(home, {"operator": home.operator, "stranger": token})


Say = Callable[[Stage, str, str], Awaitable[dict[str, Any]]]  # who says what


async def by_send(stage: Stage, _who: str, text: str) -> dict[str, Any]:
    return read(await stage.runtime.send(text))


async def by_receive(stage: Stage, who: str, text: str) -> dict[str, Any]:
    principal = Principal.operator() if who == "operator" else Principal.stranger()
    return read(await stage.runtime.receive(principal, ANN, text))


async def by_messages(stage: Stage, who: str, text: str) -> dict[str, Any]:
    path = f"/api/sessions/{CHATS[who]}/messages"
    async with stage.client(who) as client:
        return (await client.post(path, json={"text": text})).json()


async def by_stream(stage: Stage, who: str, text: str) -> dict[str, Any]:
    path = f"/api/sessions/{CHATS[who]}/stream"
    async with (
        stage.client(who) as client,
        client.stream("POST", path, json={"text": text}) as response,
    ):
        told = [frame async for frame in frames(response) if isinstance(frame, Frame)]
    return told[0].data


def read(receipt: Receipt) -> dict[str, Any]:
    shape = answered(receipt)
    found = {name: getattr(shape, name) for name in ("outcome", "stimulus_id", "reply")}
    return {name: value for name, value in found.items() if value is not None}


async def the_token(stage: Stage) -> str:
    ((token_id,),) = await stage.runtime.store.read("SELECT id FROM tokens WHERE name = 'stranger'")
    return token_id


async def the_peer(_stage: Stage) -> str:
    return "telegram:dm:ann"


@dataclass(frozen=True)
class Row:
    """A door: who stands there, how it is spoken to, and whose a stranger's words are."""

    say: Say
    owner: Callable[[Stage], Awaitable[str]] = the_token
    who: Sequence[str] = ("operator", "stranger")


DOORS = {
    "send": Row(by_send, who=("operator",)),
    "receive": Row(by_receive, owner=the_peer),
    "messages": Row(by_messages),
    "stream": Row(by_stream),
}
AT_EVERY_DOOR = pytest.mark.parametrize(
    ("door", "who"), [(door, who) for door, row in DOORS.items() for who in row.who]
)


async def filed(stage: Stage, answer: dict[str, Any]) -> tuple[str, str, str | None, str]:
    """Return text, trust and mode of what was filed, and whose session it is in."""
    (row,) = await stage.runtime.store.read(
        "SELECT text, trust, mode, owner FROM stimuli JOIN sessions ON key = session_key "
        "WHERE id = :id",
        id=answer["stimulus_id"],
    )
    return tuple(row)


@AT_EVERY_DOOR
@pytest.mark.parametrize(
    ("text", "read_as", "mode"),
    [
        ("hello", "hello", None),
        ("a /queue collect message", "a message", "collect"),
        ("/queue collect message", "message", "collect"),
        ("/etc/hosts is a file", "/etc/hosts is a file", None),
    ],
)
async def test_what_is_for_the_agent_is_filed(
    door: str, who: str, text: str, read_as: str, mode: str | None
):
    async with stage() as here:
        answer = await DOORS[door].say(here, who, text)
        found = await filed(here, answer)
        owner = "operator" if who == "operator" else await DOORS[door].owner(here)

    trust = "operator" if who == "operator" else "external"
    assert answer["outcome"] == "started"
    assert found == (read_as, trust, mode, owner)


@AT_EVERY_DOOR
@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("/stop", "Nothing was running."),
        ("/stpo", "There is no command /stpo. Did you mean /stop? /help lists them all."),
        ("/queue sideways", "/queue [MODE] [debounce:2s] [cap:20] [drop:old] | default: "),
    ],
)
async def test_what_is_for_the_runtime_is_done_and_answered(
    door: str, who: str, text: str, reply: str
):
    async with stage() as here:
        await DOORS[door].say(here, who, "hello")
        await wait_for(here.runtime, "turn.finished")
        answer = await DOORS[door].say(here, who, text)
        stimuli = await here.runtime.store.read("SELECT text FROM stimuli")

    assert answer["outcome"] == "command"
    assert answer["reply"].startswith(reply)
    assert "stimulus_id" not in answer
    assert [row[0] for row in stimuli] == ["hello"]


@AT_EVERY_DOOR
async def test_a_bare_stop_is_the_operators_word(door: str, who: str):
    async with stage() as here:
        answer = await DOORS[door].say(here, who, "stop")

    assert answer["outcome"] == ("command" if who == "operator" else "started")


@AT_EVERY_DOOR
async def test_what_only_the_operator_may_do_is_said_to_others(door: str, who: str):
    async with stage() as here:
        answer = await DOORS[door].say(here, who, "/halt")

    allowed, refused = "Halted everything.", "Only the operator may use /halt."
    assert answer["reply"] == (allowed if who == "operator" else refused)
