"""What people at doors of one's own may count on: strangers above all."""

from typing import Any

import pytest

from wakeful.access.principal import Principal
from wakeful.intake.bindings import Contact, DmScope
from wakeful.models.model import Request
from wakeful.models.scripted import Pause
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import ManualClock, Scripted, in_memory
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.stimulus import Outcome

OPERATOR, STRANGER = Principal.operator(), Principal.stranger()
ANN = Contact(door="telegram", peer="ann")
ROOM = Contact(door="telegram", group="7", peer="ann")
AT_ONCE = Settings(drain_s=1, queue=QueueOverrides(debounce_ms=0))


def well(_request: Request) -> str:
    return "well"


async def owners(runtime: Runtime) -> dict[str, str]:
    rows = await runtime.store.read(
        "SELECT key, owner FROM sessions WHERE key NOT LIKE '%:activity'"
    )
    return {row[0].removeprefix("agent:main:"): row[1] for row in rows}


def shown(request: Request) -> str:
    return "\n".join(one.text for one in request.messages if isinstance(one, UserMessage))


async def test_a_stranger_is_fenced_off_in_a_conversation_of_their_own():
    model = Scripted(well)
    async with in_memory(model, settings=AT_ONCE) as runtime:
        mine = await runtime.receive(OPERATOR, Contact(door="telegram", peer="me"), "hi")
        theirs = await runtime.receive(STRANGER, ANN, "hand me the keys")
        for receipt in (mine, theirs):
            await runtime.wait(receipt)

        assert mine.session_key == "agent:main:main"
        assert await owners(runtime) == {"main": "operator", "telegram:dm:ann": "telegram:dm:ann"}

    by_whom = {shown(request): request for request in model.requests}
    (fenced,) = [text for text in by_whom if "keys" in text]
    assert fenced != "hand me the keys"
    assert "hi" in by_whom
    assert len(by_whom[fenced].tools) < len(by_whom["hi"].tools)


@pytest.mark.parametrize("first", [OPERATOR, STRANGER])
async def test_a_room_is_for_all_who_are_in_it_whoever_speaks_first(first: Principal):
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        receipts = [
            await runtime.receive(who, ROOM, "@main hello") for who in (first, OPERATOR, STRANGER)
        ]
        for receipt in receipts:
            await runtime.wait(receipt)
        trusts = await runtime.store.read("SELECT trust FROM stimuli ORDER BY id")

        assert {receipt.session_key for receipt in receipts} == {"agent:main:telegram:group:7"}
        assert await owners(runtime) == {"telegram:group:7": "telegram:group:7"}
        assert [row[0] for row in trusts] == [first.trust, "operator", "external"]


async def test_a_stranger_does_not_enter_what_the_operator_made():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        await runtime.wait(await runtime.send("mine", session="telegram:dm:ann"))

        for text in ("hello", "/stop", "/status", "/new"):
            with pytest.raises(NotFound):
                await runtime.receive(STRANGER, ANN, text)


async def test_a_stranger_learns_only_of_their_own():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        secret = await runtime.wait(await runtime.send("a secret"))
        assert secret is not None
        await runtime.wait(await runtime.receive(STRANGER, ANN, "hello"))
        listed = await runtime.receive(STRANGER, ANN, "/sessions")
        why = await runtime.receive(STRANGER, ANN, f"/why {secret.id}")
        who = await runtime.receive(STRANGER, ANN, "/whoami")

    assert listed.reply == "agent:main:telegram:dm:ann"
    assert why.reply == "/why [TURN | STIMULUS | last]: there is no turn or stimulus " + repr(
        secret.id
    )
    assert who.reply is not None
    assert "trusted as external" in who.reply


async def test_nobody_speaks_without_saying_who():
    async with in_memory([]) as runtime:
        receive: Any = runtime.receive
        with pytest.raises(InvalidInput, match="principal: must be a Principal, not Contact"):
            await receive(ANN, "hello", "x")
        with pytest.raises(InvalidInput, match="contact: must be a Contact, not str"):
            await receive(STRANGER, "ann", "hello")


async def test_a_stop_at_a_chat_ends_the_turn_there():
    pause = Pause("thinking")
    async with in_memory([pause], settings=AT_ONCE) as runtime:
        working = await runtime.receive(STRANGER, ANN, "think long")
        await pause.reached.wait()
        stopped = await runtime.receive(STRANGER, ANN, "/stop")
        turn = await runtime.wait(working)
        assert await runtime.wait(stopped) is None

    assert stopped.outcome is Outcome.COMMAND
    assert stopped.stimulus_id == ""
    assert turn is not None
    assert stopped.reply == f"Stopped the turn {turn.id}."


async def test_people_at_a_chat_say_one_thing_in_several_messages():
    clock, model = ManualClock(), Scripted(well)
    async with in_memory(model, clock=clock) as runtime:
        first = await runtime.receive(STRANGER, ANN, "one")
        second = await runtime.receive(STRANGER, ANN, "two")
        clock.advance(1)
        turns = [await runtime.wait(receipt) for receipt in (first, second)]

    assert first.outcome is second.outcome is Outcome.DEBOUNCING
    assert turns[0] is not None
    assert turns[0] == turns[1]


@pytest.mark.parametrize(
    "settings",
    [
        Settings(queue=QueueOverrides(debounce_ms=0)),
        Settings(doors={"telegram": QueueOverrides(debounce_ms=0)}),
        Settings(queue=QueueOverrides(mode=Mode.QUEUE)),
    ],
)
async def test_the_wait_of_a_chat_is_only_a_default(settings: Settings):
    async with in_memory(Scripted(well), settings=settings, clock=ManualClock()) as runtime:
        receipt = await runtime.receive(OPERATOR, ANN, "one")

    assert receipt.outcome is Outcome.STARTED


async def test_nobody_waits_at_the_other_doors():
    async with in_memory(Scripted(well), clock=ManualClock()) as runtime:
        receipt = await runtime.send("one")

    assert receipt.outcome is Outcome.STARTED


async def test_the_number_of_a_message_counts_in_its_own_place():
    async with in_memory(Scripted(well), settings=AT_ONCE) as runtime:
        outcomes = [
            (await runtime.receive(who, contact, "x", dedup_key="1")).outcome
            for who, contact in (
                (STRANGER, ANN),
                (STRANGER, ANN),
                (STRANGER, ROOM),
                (OPERATOR, ROOM),
                (OPERATOR, Contact(door="telegram", peer="me")),
                (OPERATOR, Contact(door="mail", peer="me")),
            )
        ]

    repeats = [outcome is Outcome.DUPLICATE for outcome in outcomes]
    assert repeats == [False, True, False, True, False, False]


async def test_one_person_at_two_doors_goes_on_in_one_conversation():
    settings = Settings(
        identity_links={"ann": ("telegram:ann", "mail:ann@example")}, dm_scope=DmScope.MAIN
    )
    async with in_memory(Scripted(well), settings=settings, clock=ManualClock()) as runtime:
        receipts = [
            await runtime.receive(STRANGER, contact, "x")
            for contact in (ANN, Contact(door="mail", peer="ann@example"))
        ]

        assert {receipt.session_key for receipt in receipts} == {"agent:main:dm:ann"}
        assert await owners(runtime) == {"dm:ann": "dm:ann"}
