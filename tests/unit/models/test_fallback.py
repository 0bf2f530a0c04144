"""Who answers when somebody cannot."""

import logging

import pytest
from msgspec.structs import replace

from wakeful.models.fallback import Fallback
from wakeful.models.model import Delta, Piece, Reply, Request, Restart, context_window
from wakeful.models.scripted import Line, Scripted, says
from wakeful.testing.kit import ManualClock
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent, Transient

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
