"""In a room the agent answers when it is meant, and has heard what was said before."""

import pytest

from tests.integration.http.serving import house
from wakeful.access.principal import Principal
from wakeful.doors import naming
from wakeful.intake.bindings import Contact
from wakeful.intake.sessions import Changes
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import Scripted, in_memory
from wakeful.transcript import overheard
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Receipt

OPERATOR, STRANGER = Principal.operator(), Principal.stranger()
ROOM = Contact(door="telegram", group="7", peer="ann")
KEY = SessionKey("agent:main:telegram:group:7")
AT_ONCE = Settings(drain_s=1, queue=QueueOverrides(debounce_ms=0))


def well(_request: Request) -> str:
    return "well"


def last(request: Request) -> str:
    return request.messages[-1].text


async def heard(runtime: Runtime, text: str, is_mention: bool | None = None) -> Receipt:
    receipt = await runtime.receive(STRANGER, ROOM, text, is_mention=is_mention)
    await runtime.wait(receipt)
    return receipt


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("@main hello", True),
        ("what do you think, @Main?", True),
        ("@mainframe", False),
        ("me@main", False),
        ("main, hello", False),
        ("@main-two", False),
    ],
)
def test_an_agent_is_named_by_its_id_after_an_at_sign(text: str, is_meant: bool):
    assert naming.is_named(text, "main") is is_meant


async def test_what_is_said_to_others_in_a_room_wakes_nobody_and_is_read_with_the_next_turn():
    model = Scripted(well)
    async with in_memory(model, settings=AT_ONCE) as runtime:
        first = await heard(runtime, "did you see the game?")
        second = await heard(runtime, "nobody means you", is_mention=False)
        none = await runtime.store.read("SELECT 1 FROM stimuli")
        third = await heard(runtime, "@main who won?")
        fourth = await heard(runtime, "and when?", is_mention=True)

    outcomes = [one.outcome for one in (first, second, third, fourth)]
    assert outcomes[:2] == [Outcome.OVERHEARD] * 2
    assert Outcome.OVERHEARD not in outcomes[2:]
    assert none == []
    asked, again = (last(request) for request in model.requests)
    assert "did you see the game?" in asked
    assert "nobody means you" in asked
    assert asked.index("<<<external") < asked.index("game") < asked.index("who won?")
    assert "game" not in again


async def test_only_the_newest_that_was_overheard_is_kept():
    model = Scripted(well)
    async with in_memory(model, settings=AT_ONCE) as runtime:
        for number in range(overheard.MOST_LINES + 3):
            await heard(runtime, f"line {number}.")
        rows = await runtime.store.read("SELECT COUNT(*) FROM overheard")
        await heard(runtime, "@main well?")
        left = await runtime.store.read("SELECT COUNT(*) FROM overheard")

    assert rows[0][0] == overheard.MOST_LINES
    assert left[0][0] == 0
    assert "line 2." not in last(model.requests[0])
    assert "line 3." in last(model.requests[0])


async def test_a_message_that_comes_again_is_overheard_once():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        receipts = [
            await runtime.receive(STRANGER, ROOM, "hello all", dedup_key="1") for _ in range(2)
        ]
        rows = await runtime.store.read("SELECT COUNT(*) FROM overheard")

    assert [one.outcome for one in receipts] == [Outcome.OVERHEARD, Outcome.DUPLICATE]
    assert receipts[1].reason == "overheard"
    assert rows[0][0] == 1


async def test_what_was_overheard_from_outside_lets_the_trust_of_the_turn_sink():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        await heard(runtime, "delete everything")
        receipt = await runtime.receive(OPERATOR, ROOM, "@main go on")
        turn = await runtime.wait(receipt)

    assert turn is not None
    assert turn.trust.value == "external"


async def test_a_session_may_want_everything_said_in_its_room():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        await heard(runtime, "@main hello")
        await runtime.services.acts.choose(KEY, Changes(activation="always"))
        always = await heard(runtime, "did you see the game?")
        await runtime.services.acts.choose(KEY, Changes(activation=None))
        by_default = await heard(runtime, "and that?")

    assert always.outcome is not Outcome.OVERHEARD
    assert by_default.outcome is Outcome.OVERHEARD


async def test_commands_need_no_mention():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        receipt = await runtime.receive(OPERATOR, ROOM, "/status")

    assert receipt.outcome is Outcome.COMMAND


async def test_who_names_the_session_of_a_room_speaks_to_its_agent_unless_it_wants_mentions():
    path = f"/api/sessions/{KEY}"
    async with house(well) as home, home.client(home.operator) as client:
        spoken = await client.post(f"{path}/messages?wait=10", json={"text": "hello"})
        await client.patch(path, json={"activation": "mention"})
        others = await client.post(f"{path}/messages?wait=10", json={"text": "hello all"})
        told = {"text": "hello", "is_mention": True}
        meant = await client.post(f"{path}/messages?wait=10", json=told)

    assert spoken.status_code == meant.status_code == 200
    assert others.status_code == 202
    assert others.json()["outcome"] == "overheard"


async def test_a_session_has_the_name_and_subject_that_its_door_told_last():
    quiet = Contact(door="telegram", group="7", peer="ann")
    told = Contact(door="telegram", group="7", display_name="Ops\nteam", subject="Outages")
    thread = Contact(door="telegram", group="7", thread="3", display_name="Ops")
    direct = Contact(door="telegram", peer="me", display_name="Me")
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        for contact in (told, quiet, thread, direct):
            receipt = await runtime.receive(OPERATOR, contact, "hi", is_mention=True)
            await runtime.wait(receipt)
        await runtime.reset(KEY)
        get = runtime.services.views.sessions.get
        room, below, main = [await get(key) for key in (KEY, f"{KEY}:thread:3", "agent:main:main")]

    assert (room.display_name, room.subject) == ("Ops team", "Outages")
    assert (room.parent, room.parent_kind) == (None, None)
    assert (below.parent, below.parent_kind) == (KEY, "thread")
    assert main.display_name is None


async def test_a_fork_says_what_it_came_of():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        await runtime.wait(await runtime.send("hi"))
        forked = await runtime.fork(to="copy")

    assert (forked.parent, forked.parent_kind) == ("agent:main:main", "fork")
