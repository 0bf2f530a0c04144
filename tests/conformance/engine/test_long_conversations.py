"""A very long conversation keeps nobody waiting: it is read and weighed off the writer thread."""

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.integration.engine.small import summary
from wakeful.lanes.contexts import MOST_AT_ONCE, Contexts, ContextUnread
from wakeful.models.model import Request
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import Scripted, wait_for
from wakeful.transcript import entries, sessions
from wakeful.transcript.entries import NewEntry
from wakeful.transcript.sessions import Session
from wakeful.turn.agent import Agent
from wakeful.turn.context import Context, build
from wakeful.vocabulary.entry import EntryKind, NoteBody
from wakeful.vocabulary.ids import Ids

MAIN = "agent:main:main"
WORDS = "the river rises and the bridge is closed until the rain has ended " * 4


def session_of(tx: Tx) -> Session:
    session = sessions.get(tx, MAIN)
    assert session is not None
    return session


async def lengthen(runtime: Runtime, count: int) -> None:
    """Add so many lines to the conversation, as an import would."""
    ids = Ids(runtime.clock)
    lines = [
        NewEntry(
            id=ids.new("en"),
            kind=EntryKind.CUSTOM_MESSAGE,
            body=NoteBody(topic="news", text=f"{number}: {WORDS}"),
        )
        for number in range(count)
    ]
    await runtime.store.transact(lambda tx: entries.append(tx, session_of(tx), lines))


def read(tx: Tx) -> Context:
    session = session_of(tx)
    return build(session.branch, entries.path(tx, session, session.context_from - 1))


def runtime_of(settings_for: SettingsFor, *lines: str) -> Runtime:
    return Runtime(agents=[Agent(model=Scripted(list(lines)))], settings=settings_for())


async def test_a_long_conversation_is_read_before_its_lane_is_opened(settings_for: SettingsFor):
    async with runtime_of(settings_for, "well") as runtime:
        store, contexts = runtime.store, Contexts()
        await runtime.ask("hello")
        await lengthen(runtime, MOST_AT_ONCE)
        with pytest.raises(ContextUnread) as unread:
            await store.transact(lambda tx: contexts.take(tx, session_of(tx), None))
        await contexts.read_ahead(store, unread.value)
        taken = await store.transact(lambda tx: contexts.take(tx, session_of(tx), None))
        whole = await store.transact(read)

    assert len(taken.messages) > MOST_AT_ONCE
    assert vars(taken) == vars(whole)


async def test_what_is_said_while_it_is_read_ahead_is_not_missed(settings_for: SettingsFor):
    async with runtime_of(settings_for, "well") as runtime:
        store, contexts = runtime.store, Contexts()
        await runtime.ask("hello")
        await lengthen(runtime, MOST_AT_ONCE)
        with pytest.raises(ContextUnread) as unread:
            await store.transact(lambda tx: contexts.take(tx, session_of(tx), None))
        await contexts.read_ahead(store, unread.value)
        await lengthen(runtime, 1)
        taken = await store.transact(lambda tx: contexts.take(tx, session_of(tx), None))
        whole = await store.transact(read)

    assert vars(taken) == vars(whole)


async def test_a_long_conversation_is_compacted_and_goes_on(settings_for: SettingsFor):
    def answer(request: Request) -> str:
        return summary("a flood") if request.purpose == "summary" else "well"

    agent = Agent(model=Scripted(answer))
    async with Runtime(agents=[agent], settings=settings_for()) as runtime:
        await runtime.ask("hello")
        await lengthen(runtime, MOST_AT_ONCE + 500)
        receipt = await runtime.compact()
        event = await wait_for(runtime, "session.compacted")
        await runtime.wait(receipt)
        said = await runtime.ask("and now?")
        shown = await runtime.store.transact(read)

    assert event.data["tokens_after"] < event.data["tokens_before"]
    assert said == "well"
    assert "closed until the rain" in shown.messages[1].text
