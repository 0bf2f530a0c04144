"""Who answers when somebody cannot."""

import asyncio
import logging
from itertools import pairwise

import pytest
from msgspec.structs import replace

from wakeful.models.fallback import HUNG_S, LONGEST_HUNG_S, Fallback
from wakeful.models.model import Delta, Piece, Reply, Request, Restart, context_window
from wakeful.models.scripted import Line, Scripted, says
from wakeful.testing.kit import ManualClock, Pause
from wakeful.vocabulary.errors import ContextOverflow, Garbled, ModelHung, Permanent, Transient

REQUEST = Request(system="", messages=())
BUSY = Transient("busy", retry_after_s=30)


async def heard(*scripts: Line) -> list[Piece]:
    models = [Scripted([line]) for line in scripts]
    return [piece async for piece in Fallback(models, ManualClock()).stream(REQUEST)]


async def test_the_first_model_answers_if_it_can():
    assert await heard("one", "two") == [Delta(text="one"), says("one")]


async def test_the_next_model_answers_anew_and_says_who_failed(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)

    restart, delta, reply = await heard(BUSY, "two")

    assert restart == Restart(model="scripted", failure="busy")
    assert delta == Delta(text="two")
    assert isinstance(reply, Reply)
    assert reply.failures == ("busy",)
    assert "busy" in caplog.text


async def test_all_fail_when_all_fail_and_the_soonest_is_waited_for():
    with pytest.raises(Transient, match="busy full") as failure:
        await heard(BUSY, Transient("full", retry_after_s=10))

    assert failure.value.retry_after_s == 10


async def test_nobody_is_waited_for_if_one_names_no_time():
    with pytest.raises(Transient) as failure:
        await heard(BUSY, Transient("down"))

    assert failure.value.retry_after_s is None


@pytest.mark.parametrize("error", [Permanent("no key"), ContextOverflow(), Garbled()])
async def test_what_time_does_not_mend_is_not_papered_over(error: Exception):
    with pytest.raises(type(error)):
        await heard(error, "two")


async def test_a_fallback_that_nobody_can_use_is_passed_over():
    *_, reply = await heard(BUSY, Permanent("no key"), "three")

    assert isinstance(reply, Reply)
    assert reply.failures == ("busy", "no key")


async def test_a_fallback_that_nobody_can_use_leaves_time_to_the_first():
    with pytest.raises(Transient) as failure:
        await heard(BUSY, Permanent("no key"))

    assert failure.value.retry_after_s == 30


async def test_a_model_is_not_asked_before_the_time_that_it_named():
    clock = ManualClock()
    first, second = Scripted([BUSY, "one"]), Scripted(["two", Transient("down"), "two again"])
    model = Fallback([first, second], clock)

    async def reply() -> Reply:
        *_, last = [piece async for piece in model.stream(REQUEST)]
        assert isinstance(last, Reply)
        return last

    await reply()
    clock.advance(20)
    with pytest.raises(Transient, match="busy down"):
        await reply()
    passed_over = await reply()
    clock.advance(10)
    back = await reply()

    assert passed_over == replace(says("two again"), failures=("busy",))
    assert back == says("one")
    assert (len(first.requests), len(second.requests)) == (2, 3)


async def test_when_all_have_named_a_time_nobody_is_asked_before_the_soonest():
    clock = ManualClock()
    models = [Scripted([BUSY]), Scripted([Transient("full", retry_after_s=float("inf"))])]
    model = Fallback(models, clock)
    for wait_s in (30, 25):
        with pytest.raises(Transient) as failure:
            _ = [piece async for piece in model.stream(REQUEST)]
        assert failure.value.retry_after_s == pytest.approx(wait_s)
        clock.advance(5)

    assert [len(one.requests) for one in models] == [1, 1]


def test_a_model_that_does_not_say_is_taken_for_an_average_one():
    assert context_window(Fallback([Scripted([]), Scripted([])], ManualClock())) == 128_000


HUNG = ModelHung("it did not begin to answer")


async def reply_of(model: Fallback) -> Reply:
    *_, last = [piece async for piece in model.stream(REQUEST)]
    assert isinstance(last, Reply)
    return last


async def test_a_model_that_hung_is_passed_over_and_its_time_out_is_not_paid_again():
    first, second = Scripted([HUNG, "back"]), Scripted(["two"] * 9)
    model = Fallback([first, second], ManualClock())

    replies = [await reply_of(model) for _ in range(5)]

    assert len(first.requests) == 1
    assert replies[0].failures == (str(HUNG),)
    assert replies[4].failures == (f"{HUNG} It is passed over for a while.",)


async def test_a_model_that_hung_is_asked_again_after_a_while():
    clock = ManualClock()
    first, second = Scripted([HUNG, "back", "still here"]), Scripted(["two"] * 9)
    model = Fallback([first, second], clock)

    await reply_of(model)
    clock.advance(HUNG_S)

    assert await reply_of(model) == says("back")
    assert await reply_of(model) == says("still here")


async def test_a_model_that_hangs_again_is_passed_over_for_longer_but_not_for_ever():
    clock = ManualClock()
    first, second = Scripted([HUNG] * 20), Scripted(["two"] * 100)
    model = Fallback([first, second], clock)
    asked_at: list[float] = []
    for _ in range(80):
        before = len(first.requests)
        await reply_of(model)
        asked_at += [clock.monotonic()] * (len(first.requests) - before)
        clock.advance(HUNG_S)

    gaps = [later - earlier for earlier, later in pairwise(asked_at)]
    assert gaps[:4] == [HUNG_S, 2 * HUNG_S, 4 * HUNG_S, 8 * HUNG_S]
    assert set(gaps[4:]) == {LONGEST_HUNG_S}


async def test_one_question_alone_tries_a_model_that_hung():
    clock = ManualClock()
    pause = Pause("", says("back"))
    first, second = Scripted([HUNG, pause]), Scripted(["two"] * 9)
    model = Fallback([first, second], clock)
    await reply_of(model)
    clock.advance(HUNG_S)

    async with asyncio.TaskGroup() as group:
        trying = group.create_task(reply_of(model))
        await pause.reached.wait()
        beside = await reply_of(model)
        pause.go_on.set()

    assert beside.failures == (f"{HUNG} It is passed over for a while.",)
    assert trying.result() == says("back")
    assert len(first.requests) == 2


async def test_a_try_that_is_given_up_leaves_the_next_one_free():
    clock = ManualClock()
    first, second = Scripted([HUNG, Pause(""), "back"]), Scripted(["two"] * 9)
    model = Fallback([first, second], clock)
    await reply_of(model)
    clock.advance(HUNG_S)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await reply_of(model)

    assert await reply_of(model) == says("back")


async def test_when_all_hang_the_soonest_is_waited_for():
    clock = ManualClock()
    model = Fallback([Scripted([HUNG]), Scripted([HUNG])], clock)
    with pytest.raises(Transient) as failure:
        await reply_of(model)
    assert failure.value.retry_after_s is None

    clock.advance(20)
    with pytest.raises(Transient) as failure:
        await reply_of(model)

    assert failure.value.retry_after_s == pytest.approx(HUNG_S - 20)


class Narrow(Scripted):
    context_window = 8_000


async def test_a_conversation_must_fit_the_fallback_while_the_first_is_away_for_long():
    away = Transient("no quota left", retry_after_s=7_200)
    model = Fallback([Scripted([away]), Narrow([ContextOverflow("too long")])], ManualClock())
    before = context_window(model)

    with pytest.raises(ContextOverflow):
        await reply_of(model)

    assert (before, context_window(model)) == (128_000, 8_000)


async def test_a_conversation_is_not_cut_for_a_fallback_when_the_first_is_back_soon():
    model = Fallback([Scripted([BUSY]), Narrow([ContextOverflow("too long")])], ManualClock())

    with pytest.raises(Transient) as failure:
        await reply_of(model)

    assert failure.value.retry_after_s == 30
    assert context_window(model) == 128_000
