from collections.abc import AsyncIterator

import pytest

from wakeful.outbox import outbox
from wakeful.outbox.outbox import Delivery
from wakeful.store.database import Store, Tx
from wakeful.store.sqlite import open_sqlite
from wakeful.tools.running import run_in_ledger
from wakeful.tools.send_message import LONGEST_TEXT, send_message
from wakeful.tools.tool import LedgerContext, ToolResult
from wakeful.transcript.sessions import Session
from wakeful.turns.turns import Interrupt, Phase, Turn, TurnState
from wakeful.vocabulary.agent import AgentConfig
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import ToolCall
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Priority, Trust

HERE = Route(door="hub", address="alice", thread="t1")
EARLIER = Route(door="hub", address="bob")
NEWS = Route(door="outbound", address="news")
NEWS_THREAD = Route(door="outbound", address="news", thread="weekly")
CONSOLE = Route(door="console")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await open_sqlite(None, clock=ManualClock())
    yield opened
    await opened.close()


async def send(
    store: Store,
    text: str = "hello",
    where: dict[str, str] | None = None,
    *,
    turn_route: Route | None = HERE,
    session_route: Route | None = EARLIER,
    routes: tuple[Route, ...] = (NEWS, NEWS_THREAD),
) -> tuple[ToolResult, list[Delivery]]:
    """Call the tool in a transaction; return its result and what was filed."""

    def act(tx: Tx) -> tuple[ToolResult, list[Delivery]]:
        context = LedgerContext(
            tx=tx,
            ids=Ids(ManualClock()),
            turn=make_turn(turn_route),
            session=make_session(session_route),
            agent=AgentConfig(id="main", routes=routes),
            key="tn_1:1:call_1",
            publish=lambda *_, **__: None,
            file=lambda _drafts: [],
            proactive=ProactiveRules(),
            settle=lambda _ids, _state: None,
        )
        call = ToolCall(id="call_1", name="send_message", arguments={"text": text, **(where or {})})
        try:
            result = run_in_ledger(send_message, call, context)
        except InvalidInput as refused:  # as a turn would: nothing is written, the model is told
            result = ToolResult(text=str(refused), is_error=True)
        rows = tx.all(outbox.DELIVERIES.select("WHERE turn_id = 'tn_1' ORDER BY id"))
        return result, [outbox.DELIVERIES.read(row) for row in rows]

    return await store.transact(act)


async def test_without_an_address_it_goes_to_whom_the_turn_answers(store: Store) -> None:
    result, (delivery,) = await send(store)

    assert not result.is_error
    assert delivery.id.startswith("dl_")
    assert (delivery.route, delivery.text, delivery.session_key) == (
        HERE,
        "hello",
        "agent:main:main",
    )
    assert delivery.id in result.text


async def test_a_turn_without_a_route_speaks_where_a_human_last_did(store: Store) -> None:
    _, (delivery,) = await send(store, turn_route=None)

    assert delivery.route == EARLIER


@pytest.mark.parametrize(
    ("where", "route"),
    [
        ({"door": "hub", "address": "bob"}, EARLIER),
        ({"address": "alice"}, HERE),
        ({"door": "outbound", "address": "news"}, NEWS),
        ({"address": "news", "thread": "weekly"}, NEWS_THREAD),
        ({"thread": "weekly"}, NEWS_THREAD),
    ],
)
async def test_an_allowed_route_may_be_named_by_what_tells_it_apart(
    store: Store, where: dict[str, str], route: Route
) -> None:
    _, (delivery,) = await send(store, where=where)

    assert delivery.route == route


@pytest.mark.parametrize(
    "where",
    [
        {"address": "mallory"},
        {"door": "hub", "address": "news"},
        {"door": "outbound", "address": "news", "account": "other"},
        {"address": "NEWS"},
    ],
)
async def test_any_other_route_is_refused_and_the_allowed_ones_are_named(
    store: Store, where: dict[str, str]
) -> None:
    result, filed = await send(store, where=where)

    assert result.is_error
    assert filed == []
    assert all(name in result.text for name in ("'alice'", "'bob'", "'news'", "'weekly'"))


async def test_an_ambiguous_route_is_refused(store: Store) -> None:
    result, filed = await send(store, where={"door": "hub"})

    assert (result.is_error, filed) == (True, [])
    assert "could mean several" in result.text


async def test_a_conversation_without_an_address_is_told_so(store: Store) -> None:
    result, filed = await send(store, turn_route=None, session_route=None, routes=())

    assert (result.is_error, filed) == (True, [])
    assert "has no address; you may use: none" in result.text


async def test_nothing_is_sent_where_the_reply_itself_is_read(store: Store) -> None:
    result, filed = await send(store, turn_route=CONSOLE)

    assert (result.is_error, filed) == (True, [])
    assert "say it in your reply" in result.text


@pytest.mark.parametrize("text", ["", " \n", "x" * (LONGEST_TEXT + 1)])
async def test_text_that_cannot_be_sent_is_refused(store: Store, text: str) -> None:
    result, filed = await send(store, text)

    assert (result.is_error, filed) == (True, [])
    assert result.text.startswith("text: ")


async def test_text_is_made_storable(store: Store) -> None:
    _, (delivery,) = await send(store, "a\0b\ud800")

    assert delivery.text == "a\ufffdb\ufffd"


def test_external_turns_cannot_send() -> None:
    assert not send_message.is_for_external


def make_turn(route: Route | None) -> Turn:
    return Turn(
        id="tn_1",
        session_key="agent:main:main",
        agent_id="main",
        transcript_id="ts_1",
        kind=Kind.USER,
        priority=Priority.NEXT,
        trust=Trust.OPERATOR,
        source="operator",
        route=route,
        root_id="st_1",
        depth=0,
        opened_by="st_1",
        config_hash="",
        state=TurnState.OPEN,
        phase=Phase.TOOLS,
        interrupt=Interrupt.NONE,
        is_preemptible=True,
        attempts=1,
        retries=0,
        step=1,
        tool_calls=0,
        used_ms=0,
        input_tokens=0,
        output_tokens=0,
        cost=0.0,
        reply=None,
        error_kind=None,
        error=None,
        opened_at=0,
        claimed_at=0,
        ended_at=None,
    )


def make_session(route: Route | None) -> Session:
    return Session(
        key="agent:main:main",
        agent_id="main",
        transcript_id="ts_1",
        branch="br_1",
        created_at=0,
        started_at=0,
        route=route,
    )
