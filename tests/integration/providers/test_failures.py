"""F20 to F23: what a provider does to us, and what is left of it."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from tests.integration.providers.scenes import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    WIRES,
    answered,
    asks,
    left,
    talking,
)
from tests.patience import patience
from wakeful.models.catalog import find
from wakeful.models.direct import DirectModel
from wakeful.models.library import LibraryConnection
from wakeful.models.model import Request
from wakeful.models.providers import ProviderSettings
from wakeful.models.refusals import LONG_REQUEST, SENTENCES
from wakeful.models.remote import Remote
from wakeful.testing.kit import ManualClock, wait_for
from wakeful.testing.providers.plan import PlannedCall, Step, Tokens
from wakeful.testing.providers.process import Providers
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.errors import ContextOverflow, Permanent
from wakeful.vocabulary.message import UserMessage

pytestmark = pytest.mark.timeout(60)  # the first test also waits for the library

SOON_S = patience(3)  # milliseconds, on a machine that has nothing else to do
OK = Step(text="better now")
SAID_TOO_LONG = [(one, one.example.format(asked=9_100, window=8_192)) for one in SENTENCES]
EVENT = "event: content_block_delta\ndata: "


def overflow(wire: str) -> Step:
    message = "prompt is too long: 210000 tokens > 200000 maximum"
    error = {"type": "invalid_request_error", "message": message}
    if wire != ANTHROPIC:
        error["code"] = "context_length_exceeded"
    return Step(status=400, body=json.dumps({"type": "error", "error": error}))


def asking(text: str) -> Request:
    return Request(system="", messages=(UserMessage(text=text),))


@pytest.mark.parametrize("wire", WIRES)
async def test_a_busy_provider_is_asked_again_when_it_said(wire: str, stand_in: Providers):
    """F20: 429 with Retry-After, then overloaded, then a page for browsers, then an answer."""
    stand_in.plan(
        busy=[
            Step(status=429, headers={"retry-after": "30"}),
            Step(status=529),
            Step(status=502, body="<html><h1>Bad gateway</h1></html>"),
            Step(text="here I am", tokens=Tokens(input=7, output=3)),
        ]
    )
    clock = ManualClock()
    before = len(stand_in.lines("asked", "busy"))
    async with talking(wire, clock=clock) as runtime:
        receipt = await runtime.send("hello {busy}")
        waits: list[int] = []
        for number in (1, 2, 3):
            waits.append(await left(runtime, number) - clock.now())
            clock.advance(waits[-1] / 1000)
        turn = await runtime.wait(receipt)
        states = await asks(runtime)
        reason = (await wait_for(runtime, "turn.left")).data["error"]

    assert turn is not None
    assert turn.reply == "here I am"
    assert waits[0] == 30_000
    assert reason == f"{wire} asks us to slow down (429). It said: as planned"
    assert 1_000 <= waits[1] <= 2_000
    assert 2_000 <= waits[2] <= 4_000
    assert states == ["failed", "failed", "failed", "answered"]
    assert (turn.input_tokens, turn.output_tokens) == (7, 3)
    assert len(stand_in.lines("asked", "busy")) - before == 4


async def test_a_wait_may_be_told_as_a_date(stand_in: Providers):
    then = datetime.now(UTC) + timedelta(hours=2)
    stand_in.plan(dated=[Step(status=503, headers={"retry-after": format_datetime(then)})])
    clock = ManualClock()
    async with talking(clock=clock) as runtime:
        await runtime.send("{dated}")
        wait_ms = await left(runtime) - clock.now()

    assert 7_000_000 < wait_ms <= 7_200_000


@pytest.mark.parametrize("absurd", ["99999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_an_absurd_wait_is_a_day(absurd: str, stand_in: Providers):
    stand_in.plan(absurd=[Step(status=429, headers={"retry-after": absurd})])
    clock = ManualClock()
    async with talking(clock=clock) as runtime:
        await runtime.send("{absurd}")

        assert await left(runtime) - clock.now() == 86_400_000


@pytest.mark.parametrize("nonsense", ["-5", "soon", "NaN"])
async def test_a_wait_that_makes_no_sense_is_our_own(nonsense: str, stand_in: Providers):
    stand_in.plan(nonsense=[Step(status=429, headers={"retry-after": nonsense})])
    clock = ManualClock()
    async with talking(clock=clock) as runtime:
        await runtime.send("{nonsense}")

        assert await left(runtime) - clock.now() <= 1_000


async def test_a_provider_that_stays_busy_fails_the_turn_and_the_lane_goes_on(stand_in: Providers):
    stand_in.plan(always=[Step(status=529)], fine=[OK])
    clock = ManualClock()
    async with talking(clock=clock, limits=Limits(retries=1)) as runtime:
        receipt = await runtime.send("{always}")
        await left(runtime)
        clock.advance(10)
        turn = await runtime.wait(receipt)
        again = await answered(runtime, "{fine}")

    assert turn is not None
    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert turn.reply == f"{ANTHROPIC} is overloaded or not available (529). It said: as planned"
    assert again.reply == "better now"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("status", "told"),
    [(400, "refused the request"), (401, "refused our key"), (404, "does not know the model")],
)
async def test_what_only_a_human_can_mend_fails_at_once(
    wire: str, status: int, told: str, stand_in: Providers
):
    stand_in.plan(refused=[Step(status=status)])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{refused}")
        states = await asks(runtime)

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert turn.reply is not None
    assert turn.reply.startswith(f"{wire} {told}")
    assert states == ["failed"]


async def test_a_key_that_is_an_ordinary_word_is_not_cut_out_of_what_is_said(stand_in: Providers):
    stand_in.plan(short=[Step(status=404)])
    base_url = stand_in.environment["OPENAI_BASE_URL"]
    model = find(CHAT, providers={"openai-chat": ProviderSettings(base_url=base_url, key="plan")})
    assert isinstance(model, DirectModel)

    with pytest.raises(Permanent, match="It said: as planned"):
        async for _ in model.stream(asking("{short}")):
            pass
    await model.aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_that_calls_itself_a_success_is_told_as_what_it_is(
    wire: str, stand_in: Providers
):
    body = '{"error": {"message": "your team has spent all", "code": 402}}'
    stand_in.plan(polite=[Step(status=203, body=body)], after=[OK])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{polite}")
        after = await answered(runtime, "{after}")
        states = await asks(runtime)

    assert turn.error is not None
    assert "no quota or credit left. It said: your team has spent all" in turn.error
    assert after.reply == "better now"
    assert states == ["failed", "answered"]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_address_that_leads_elsewhere_is_told_as_that(wire: str, stand_in: Providers):
    stand_in.plan(moved=[Step(status=308, headers={"location": "/elsewhere"})])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{moved}")
        states = await asks(runtime)

    assert turn.reply == f"{wire} is not at this address, which leads elsewhere (308)."
    assert states == ["failed"]


async def test_a_provider_that_will_not_answer_this_is_told_as_that(stand_in: Providers):
    stand_in.plan(filtered=[Step(text="", stop="refusal")])
    async with talking(ANTHROPIC) as runtime:
        turn = await answered(runtime, "{filtered}")

    assert turn.state is TurnState.FAILED
    assert turn.reply == f"{ANTHROPIC} refuses to answer this."


async def test_a_provider_whose_credentials_are_missing_is_told_as_that(
    stand_in: Providers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    async with talking("google-cloud:gemini-2.5-pro") as runtime:
        turn = await answered(runtime, "hello")
        states = await asks(runtime)

    assert turn.reply is not None
    assert turn.reply.startswith("google-cloud:gemini-2.5-pro cannot be used: ")
    assert states == ["failed"]


async def test_a_name_that_the_library_cannot_use_is_told_as_that(
    stand_in: Providers, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    async with talking("azure:without-an-address") as runtime:
        turn = await answered(runtime, "hello")

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert turn.reply is not None
    assert turn.reply.startswith("azure:without-an-address cannot be used: ")


@pytest.mark.parametrize("silence", ["headers", "first", "middle"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_silent_provider_holds_nobody_up(wire: str, silence: str, stand_in: Providers):
    """F21: the question is given up, its connection closed; others were answered meanwhile."""
    stand_in.plan(hang=[Step(text="one two", pieces=2, silence=silence), OK], other=[OK])
    clock = ManualClock()
    before = len(stand_in.lines("silent", "hang"))
    async with talking(wire, clock=clock, limits=Limits(first_token_s=60, idle_s=60)) as runtime:
        receipt = await runtime.send("{hang}")
        await stand_in.saw("silent", "hang", before + 1)
        meanwhile = await answered(runtime, "{other}", session="elsewhere")
        clock.advance(60)
        await left(runtime)
        clock.advance(1)
        turn = await runtime.wait(receipt)

    assert meanwhile.reply == "better now"
    assert turn is not None
    assert turn.reply == "better now"
    assert len(stand_in.lines("broken", "hang")) == before + 1


async def test_a_trickle_ends_at_the_limit_for_a_whole_answer(stand_in: Providers):
    stand_in.plan(trickle=[Step(text="x" * 5000, pieces=5000, pause_ms=5), OK])
    clock = ManualClock()
    async with talking(clock=clock, limits=Limits(answer_s=100, idle_s=1000)) as runtime:
        receipt = await runtime.send("{trickle}")
        async for _ in runtime.subscribe(topics=["turn.delta"]):
            break
        clock.advance(100)
        await left(runtime)
        clock.advance(1)
        turn = await runtime.wait(receipt)
        rows = await runtime.store.read("SELECT error FROM asks WHERE state = 'failed'")

    assert turn is not None
    assert turn.reply == "better now"
    assert rows[0][0] == f"{ANTHROPIC} did not finish its answer in 100 seconds."


GARBLED = {
    "cut JSON": Step(text="hello you", pieces=4, garbage=EVENT + '{"type": "content_bl\n\n'),
    "bad UTF-8": Step(text="hello you", pieces=4, garbage=EVENT + '{"type": "\xff\xfe"}\n\n'),
    "no end": Step(
        text="hello you",
        drop=("message_delta", "message_stop", "response.completed", "delta", "finish", "usage"),
    ),
    "no end after words": Step(
        text="hello you",
        pieces=3,
        drop=("message_delta", "message_stop", "response.completed", "finish", "usage", "done"),
    ),
    "same ids": Step(calls=(PlannedCall(name="look", id="x"), PlannedCall(name="look", id="x"))),
    "no name": Step(calls=(PlannedCall(name=""),)),
    "broken arguments": Step(calls=(PlannedCall(name="look", raw='{"at": '),)),
    "arguments that are a list": Step(calls=(PlannedCall(name="look", raw="[1]"),)),
    "empty answer": Step(text=""),
    "blank answer": Step(text=" \n "),
    "no page of ours": Step(status=203, body="<html>hello</html>"),
}


ENDLESS = {
    "words": Step(text="x" * 50_000_000, pieces=800),
    "a line": Step(text="x" * 20_000_000),
    "thoughts": Step(text="x", thinking="y" * 6_000_000),
}


@pytest.mark.parametrize("fault", GARBLED)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_garbled_answer_is_asked_for_once_more(wire: str, fault: str, stand_in: Providers):
    """F22: one retry, then a clear failure; what is in the transcript can be sent again."""
    stand_in.plan(once=[GARBLED[fault], OK], twice=[GARBLED[fault], GARBLED[fault], OK], after=[OK])
    async with talking(wire) as runtime:
        once = await answered(runtime, "{once}")
        twice = await answered(runtime, "{twice}")
        after = await answered(runtime, "{after}")
        states = await asks(runtime)

    assert once.reply == "better now"
    assert (twice.state, twice.error_kind) == (TurnState.FAILED, "provider")
    assert after.reply == "better now"
    assert states == ["garbled", "answered", "garbled", "failed", "answered"]
    assert stand_in.lines("refused") == []


@pytest.mark.parametrize(
    ("wire", "fault"), [(ANTHROPIC, "words"), (CHAT, "a line"), (RESPONSES, "thoughts")]
)
async def test_an_answer_without_end_leaves_nothing_behind(
    wire: str, fault: str, stand_in: Providers
):
    stand_in.plan(endless=[ENDLESS[fault]], after=[OK])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{endless}")
        after = await answered(runtime, "{after}")
        ((size,),) = await runtime.store.read("SELECT SUM(LENGTH(body)) FROM entries")

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "provider")
    assert after.reply == "better now"
    assert size < 10_000


TAKEN = {
    "two ends": Step(text="hello you", pieces=3, twice=("message_delta", "message_stop", "finish")),
    "tool ids missing": Step(
        text="",
        calls=(PlannedCall(name="look", id=""), PlannedCall(name="look", id="")),
    ),
    "a cut connection": Step(text="hello you", pieces=3, cut=60),
}


@pytest.mark.parametrize("fault", TAKEN)
@pytest.mark.parametrize("wire", WIRES)
async def test_an_odd_answer_leaves_a_transcript_that_can_be_sent(
    wire: str, fault: str, stand_in: Providers
):
    stand_in.plan(odd=[TAKEN[fault], Step(text="hello you")], after=[OK])
    clock = ManualClock()
    async with talking(wire, clock=clock) as runtime:
        receipt = await runtime.send("{odd}")
        if fault == "a cut connection":
            await left(runtime)
            clock.advance(1)
        turn = await runtime.wait(receipt)
        after = await answered(runtime, "{after}")

    assert turn is not None
    assert (turn.state, turn.reply) == (TurnState.DONE, "hello you")
    assert after.reply == "better now"
    assert stand_in.lines("refused") == []


@pytest.mark.parametrize(
    "cut",
    [
        Step(text="", thinking="hm", stop="max_tokens"),
        Step(calls=(PlannedCall(name="look", raw='{"at": "s'),), stop="max_tokens"),
    ],
    ids=["thoughts alone", "half a call"],
)
async def test_an_answer_cut_off_at_its_greatest_length_is_told_as_that(
    cut: Step, stand_in: Providers
):
    stand_in.plan(cut=[cut])
    async with talking() as runtime:
        turn = await answered(runtime, "{cut}")

    assert turn.error == (f"the answer of {ANTHROPIC} grew too long before it said anything whole")


@pytest.mark.parametrize("wire", [ANTHROPIC, CHAT])
async def test_an_end_for_a_reason_that_nobody_knows_is_an_end(wire: str, stand_in: Providers):
    stand_in.plan(eos=[Step(text="hello you", stop="eos_token")])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{eos}")
        states = await asks(runtime)

    assert (turn.reply, states) == ("hello you", ["answered"])


@pytest.mark.parametrize("wire", [ANTHROPIC, CHAT])
async def test_a_shuffled_answer_is_garbled(wire: str, stand_in: Providers):
    stand_in.plan(shuffled=[Step(text="hello you", pieces=4, is_shuffled=True), OK])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{shuffled}")

    assert turn.reply == "better now"


async def test_an_answer_that_nobody_counted_costs_what_it_is_taken_for(stand_in: Providers):
    """Otherwise a provider that counts nothing could be asked without end, for nothing."""
    stand_in.plan(uncounted=[Step(text="well " * 100, drop=("usage",))])
    async with talking(CHAT) as runtime:
        turn = await answered(runtime, "{uncounted}")

    assert turn.output_tokens == 0
    assert turn.cost is not None
    assert turn.cost > 100 * 8 / 1_000_000


async def test_a_packed_refusal_is_sorted_by_its_status(stand_in: Providers):
    packed = Step(status=401, headers={"content-encoding": "gzip"}, body="\x1f\x8b")
    stand_in.plan(packed=[packed])
    async with talking() as runtime:
        turn = await answered(runtime, "{packed}")

    assert turn.error is not None
    assert "refused our key; check it, and what it may use (401)." in turn.error


async def test_a_lone_surrogate_is_replaced(stand_in: Providers):
    delta = (
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud800"}}'
    )
    stand_in.plan(lone=[Step(text="ab", pieces=2, garbage=f"{EVENT}{delta}\n\n")])
    async with talking() as runtime:
        live = runtime.subscribe(topics=["turn.delta"])
        turn = await answered(runtime, "{lone}")
        words = [event.data["text"] for event in await live.batch()]

    assert turn.reply == "a\N{REPLACEMENT CHARACTER}b"
    assert "".join(words) == turn.reply


@pytest.mark.parametrize("wire", WIRES)
async def test_a_conversation_that_is_too_large_is_told_as_that(wire: str, stand_in: Providers):
    """F23: what cannot be made shorter ends the turn with its own kind of error."""
    stand_in.plan(large=[overflow(wire)], after=[OK])
    async with talking(wire) as runtime:
        turn = await answered(runtime, "{large}")
        after = await answered(runtime, "{after}")

    assert (turn.state, turn.error_kind) == (TurnState.FAILED, "context_overflow")
    assert after.reply == "better now"


@pytest.mark.parametrize("wire", WIRES)
async def test_every_sentence_that_means_too_long_is_understood_over_the_wire(
    wire: str, stand_in: Providers
):
    model = Remote(wire)
    stand_in.plan(
        long=[
            Step(
                status=sentence.status,
                body=json.dumps({"error": {"type": "invalid_request_error", "message": said}}),
            )
            for sentence, said in SAID_TOO_LONG
        ]
    )
    for sentence, _ in SAID_TOO_LONG:
        with pytest.raises(ContextOverflow) as refusal:
            await anext(model.stream(asking("{long}")))
        assert refusal.value.window == (8_192 if "{window}" in sentence.example else None)
    await model.aclose()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_refusal_without_a_word_is_understood_by_the_length_of_the_request(
    wire: str, stand_in: Providers
):
    model = Remote(wire)
    stand_in.plan(bare=[Step(status=400, body=" "), Step(status=400, body=" ")])

    with pytest.raises(Permanent) as short:
        await anext(model.stream(asking("{bare}")))
    with pytest.raises(ContextOverflow):
        await anext(model.stream(asking("{bare}" + "x" * 4 * LONG_REQUEST)))
    await model.aclose()

    assert not isinstance(short.value, ContextOverflow)


async def test_a_stop_closes_the_connection_at_once(stand_in: Providers):
    stand_in.plan(stopped=[Step(text="one two", pieces=2, silence="middle")])
    async with talking() as runtime:
        receipt = await runtime.send("{stopped}")
        await stand_in.saw("silent", "stopped")
        async with asyncio.timeout(patience(5)):
            await runtime.stop()
            (asked,) = stand_in.lines("silent", "stopped")
            stopping = asyncio.get_running_loop().time()
            await stand_in.saw("broken", "stopped")
        turn = await runtime.wait(receipt)

    (broken,) = stand_in.lines("broken", "stopped")
    assert broken["t"] > asked["t"]
    assert broken["t"] - stopping < SOON_S
    assert turn is not None
    assert turn.state is TurnState.STOPPED


async def test_nobody_is_there(stand_in: Providers, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    clock = ManualClock()
    async with talking(clock=clock) as runtime:
        await runtime.send("hello")

        assert await left(runtime) > clock.now()


def test_getting_ready_to_ask_is_not_logged_as_an_answer(
    stand_in: Providers, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "httpx2")

    LibraryConnection(CHAT)

    assert caplog.text == ""


async def test_another_model_answers_when_the_first_is_busy(
    stand_in: Providers, caplog: pytest.LogCaptureFixture
):
    """Words of the first that were shown are taken back, and the record says who failed."""
    caplog.set_level(logging.WARNING, "wakeful")
    stand_in.plan(shared=[Step(text="half an ans", pieces=2, cut=200), Step(text="whole")])
    async with talking(ANTHROPIC, CHAT) as runtime:
        live = runtime.subscribe(topics=["turn.delta"])
        turn = await answered(runtime, "{shared}")
        shown = [event.data for event in await live.batch()]
        (entry,) = (await runtime.entries())[-1:]

    restart = next(at for at, data in enumerate(shown) if "restarted" in data)
    assert turn.reply == "whole"
    assert shown[restart]["restarted"] == CHAT
    assert [data["text"] for data in shown[restart:]] == ["", "whole"]
    body = json.loads(entry.body)["message"]
    assert (body["provider"], body["model"]) == ("openai", "gpt-4.1")
    assert body["failures"] == [f"{ANTHROPIC} cannot be reached, or broke off."]
    assert f"{ANTHROPIC} could not answer" in caplog.text
    assert RESPONSES not in caplog.text


async def test_a_hanging_model_is_given_up_for_the_next(stand_in: Providers):
    stand_in.plan(relay=[Step(silence="headers"), OK])
    clock = ManualClock()
    async with talking(ANTHROPIC, RESPONSES, clock=clock) as runtime:
        receipt = await runtime.send("{relay}")
        await stand_in.saw("silent", "relay")
        clock.advance(Limits().first_token_s)
        turn = await runtime.wait(receipt)
        events = [await wait_for(runtime, "turn.finished")]

    assert turn is not None
    assert turn.reply == "better now"
    assert events[0].data["state"] == "done"
