"""How many files a model takes at once, as its refusals teach it."""

from collections.abc import AsyncIterator

import pytest

from wakeful.models.at_once import AtOnce
from wakeful.models.model import Delta, Request
from wakeful.models.scripted import Scripted
from wakeful.models.sight import Sight
from wakeful.models.timed import TimedModel
from wakeful.models.windows import LEARNED_FOR_S, SAID_FOR_S
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.errors import (
    AttachmentRefused,
    ContextOverflow,
    Garbled,
    Permanent,
    WakefulError,
)
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.stimulus import KeptAttachment

SEES = Sight(images=True)
TOO_LARGE = ContextOverflow("The conversation is too large for m.", is_in_bytes=True)


def picture(number: int, size: int = 4) -> tuple[KeptAttachment, str]:
    name = f"{number:x}" * 64
    kept = KeptAttachment(name="a.png", media_type="image/png", size=size * 3 // 4, hash=name)
    return kept, "x" * size


def talk(*pictures: tuple[KeptAttachment, str]) -> Request:
    """Return a conversation with a picture in each message."""
    messages = tuple(UserMessage(text="see", attachments=(one,)) for one, _ in pictures)
    return Request(system="", messages=messages, contents={one.hash: x for one, x in pictures})


def shown(request: Request) -> str:
    """Return the numbers of the pictures that go along, in their order."""
    messages = [one for one in request.messages if isinstance(one, UserMessage)]
    hashes = [one.hash for message in messages for one in message.attachments]
    assert set(hashes) == set(request.contents)
    return "".join(one[0] for one in hashes)


def said(sentence: str) -> Permanent:
    return Permanent(f"m refused the request (400). It said: {sentence}")


async def asked(model: TimedModel, request: Request) -> str:
    return "".join([one.text async for one in model.stream(request) if isinstance(one, Delta)])


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("At most 1 image(s) may be provided in one request.", "5"),
        ("Too many images provided. This model supports up to 3 images", "345"),
        ("Too many images in request. Maximum is 2. Current is 5", "45"),
        ("Maximum number of images exceeded: 4", "2345"),
        ("Please use fewer than 3 images in your request", "45"),
        ("too many images and documents: 5 + 0 > 2", "45"),
        ("vision model only supports a single image per message", "5"),
        ("You set image=2 (or defaulted to 1) in `--limit-mm-per-prompt`, but passed 5", "45"),
        ("Too many images", "45"),  # half of them
    ],
)
async def test_the_newest_pictures_go_along_as_many_as_the_model_takes(sentence: str, left: str):
    scripted = Scripted([said(sentence), "seen", "again"], sight=SEES)
    model = TimedModel(scripted, Limits(), ManualClock())
    request = talk(*map(picture, range(1, 6)))

    answers = [await asked(model, request) for _ in range(2)]

    assert answers == ["seen", "again"]
    assert [shown(one) for one in scripted.requests] == ["12345", left, left]
    assert "read_attachment" in scripted.requests[1].messages[0].text


async def test_what_is_too_large_in_bytes_is_made_smaller_until_it_fits_and_teaches_no_window():
    scripted = Scripted([TOO_LARGE, TOO_LARGE, "seen"], sight=SEES)
    model = TimedModel(scripted, Limits(), ManualClock())
    large, small = picture(1, 4000), picture(2, 400)

    await asked(model, talk(small, large, picture(3, 2000), picture(4, 400)))

    assert [shown(one) for one in scripted.requests] == ["2134", "234", "24"]
    assert model.context_window is None


async def test_a_conversation_that_is_too_large_without_pictures_is_too_long():
    scripted = Scripted([TOO_LARGE, TOO_LARGE], sight=SEES)
    model = TimedModel(scripted, Limits(), ManualClock())

    with pytest.raises(ContextOverflow):
        await asked(model, talk(picture(1)))

    assert [shown(one) for one in scripted.requests] == ["1", ""]
    assert model.context_window is not None


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflow("too long"),
        Garbled("it said: too many images"),
        said("too many tokens"),
        said("image exceeds 5 MB maximum"),
    ],
)
def test_other_refusals_teach_nothing(error: WakefulError):
    at_once, request = AtOnce(ManualClock()), talk(picture(1), picture(2))

    assert isinstance(error, Permanent | Garbled)
    assert not at_once.refused(error, request)
    assert at_once.fitted(request) is request


@pytest.mark.parametrize(
    ("sentence", "for_s"), [("at most 1 image(s)", SAID_FOR_S), ("too many images", LEARNED_FOR_S)]
)
def test_a_lesson_counts_for_a_while(sentence: str, for_s: float):
    clock, request = ManualClock(), talk(picture(1), picture(2))
    at_once = AtOnce(clock)
    at_once.refused(said(sentence), request)
    clock.advance(for_s - 1)

    assert shown(at_once.fitted(request)) == "2"
    clock.advance(1)
    assert at_once.fitted(request) is request


def test_messages_that_keep_their_pictures_stay_the_very_objects():
    at_once, request = AtOnce(ManualClock()), talk(picture(1), picture(2))
    at_once.refused(said("at most 1 image(s)"), request)

    assert at_once.fitted(request).messages[1] is request.messages[1]


async def test_what_was_said_before_a_refusal_is_not_said_twice():
    class Midway:
        name, sight = "m", SEES

        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield Delta(text="I see")
            raise said("too many images")

    model = TimedModel(Midway(), Limits(), ManualClock())

    with pytest.raises(AttachmentRefused):
        await asked(model, talk(picture(1), picture(2)))
