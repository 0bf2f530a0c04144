"""What somebody attaches reaches the model: seen, read, or named with the reason why not."""

import base64

from tests.integration.engine.looking import turn_of
from tests.pictures import PDF, attachment, png
from wakeful.access.principal import Principal
from wakeful.intake.bindings import Contact
from wakeful.models.model import Request
from wakeful.models.scripted import Line
from wakeful.models.sight import BLIND, Sight
from wakeful.runtime import Runtime
from wakeful.testing.kit import Scripted, call, in_memory, says
from wakeful.tools.tool import ToolResult, tool
from wakeful.turn.agent import Agent
from wakeful.turn.showing import attached_to
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.compacting import CompactionRules
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.message import ToolMessage, UserMessage
from wakeful.vocabulary.stimulus import Attachment, KeptAttachment, Trust
from wakeful.vocabulary.tokens import IMAGE_TOKENS, PAGE_TOKENS, tokens_of

SEES = Sight(images=True, documents=True)
REFUSAL = "scripted refused the request (400). It said: Could not process image"


def seeing(*lines: Line, sight: Sight = SEES) -> Scripted:
    return Scripted(lines, sight=sight)


def last(request: Request) -> UserMessage | ToolMessage:
    message = request.messages[-1]
    assert isinstance(message, UserMessage | ToolMessage)
    return message


async def said(runtime: Runtime, text: str, *attached: Attachment) -> TurnState:
    return (await turn_of(runtime, await runtime.send(text, attachments=attached))).state


async def request_with(*attached: Attachment, sight: Sight = SEES) -> Request:
    model = seeing("well", sight=sight)
    async with in_memory(model) as runtime:
        await said(runtime, "look", *attached)
    return model.requests[0]


async def test_an_image_is_shown_to_a_model_that_sees_in_this_turn_and_in_the_next():
    model = seeing("a cat", "still a cat")
    async with in_memory(model) as runtime:
        await said(runtime, "look", attachment(png()))
        await said(runtime, "again")

    for request in model.requests:
        first = request.messages[0]
        assert isinstance(first, UserMessage)
        (shown,) = first.attachments
        assert first.text == f"look\n[attachment {shown.id}: a.png (image/png, {len(png())} bytes)]"
        assert base64.b64decode(request.contents[shown.hash]) == png()
    assert model.requests[0].messages[0] == model.requests[1].messages[0]


async def test_a_model_that_does_not_see_is_told_what_it_misses():
    request = await request_with(attachment(png()), sight=BLIND)

    assert last(request).attachments == ()
    assert request.contents == {}
    assert last(request).text.endswith("is not shown: this model does not see images]")


async def test_an_image_is_what_its_bytes_are_whatever_its_sender_says():
    request = await request_with(attachment(png(), "x.bin", "application/octet-stream"))

    assert last(request).attachments[0].media_type == "image/png"


async def test_an_image_that_nobody_could_read_is_named_with_the_reason():
    broken, wide = png()[:14], png(8_001, 1)
    huge, none = png() + bytes(4_000_000), b"\x00\x01 no image"
    request = await request_with(*map(attachment, (broken, wide, huge, none)))

    assert last(request).attachments == ()
    for why in (
        "it is damaged",
        "it is larger than 8000 pixels",
        "it is larger than 3750000 bytes",
        "it is no PNG, JPEG, GIF or WebP",
    ):
        assert why in last(request).text


async def test_the_newest_twenty_images_are_shown_and_the_others_named():
    pictures = [attachment(png(shade=shade), f"{shade}.png") for shade in range(22)]
    model = seeing("well", "well")
    async with in_memory(model) as runtime:
        await said(runtime, "look", *pictures[:11])
        await said(runtime, "and here", *pictures[11:])

    first, _, second = model.requests[1].messages
    assert isinstance(first, UserMessage)
    assert isinstance(second, UserMessage)
    assert [one.name for one in first.attachments] == [f"{n}.png" for n in range(2, 11)]
    assert len(second.attachments) == 11
    assert first.text.count("newer ones took its place") == 2


async def test_a_text_file_is_shown_inside_a_fence():
    request = await request_with(attachment(b"name,age\nann,7\n", "a.csv", "text/csv"))

    assert "<<<external" in last(request).text
    assert "name,age\nann,7\n" in last(request).text
    assert last(request).attachments == ()


async def test_of_a_long_text_file_the_beginning_is_shown_and_how_to_read_on():
    request = await request_with(attachment(b"x" * 20_000 + b"END", "a.txt", "text/plain"))

    assert "go on with read_attachment, offset 16384]" in last(request).text
    assert "END" not in last(request).text


async def test_many_text_files_do_not_fill_a_message():
    files = [attachment(b"%d" % n * 16_384, f"{n}.txt", "text/plain") for n in range(6)]
    request = await request_with(*files)

    assert last(request).text.count("<<<external") == 4
    assert last(request).text.count("read it with read_attachment]") == 2


async def test_a_file_that_is_neither_text_nor_image_is_named():
    request = await request_with(attachment(b"PK\x03\x04\x00\x00", "a.zip", "application/zip"))

    assert "a.zip (application/zip, 6 bytes)" in last(request).text
    assert "it is neither text nor an image that a model takes" in last(request).text


async def test_a_document_goes_as_it_is_where_the_provider_takes_it():
    paper = attachment(PDF, "p.pdf", "application/pdf")
    taken = await request_with(paper)
    other = await request_with(paper, sight=Sight(images=True))

    assert last(taken).attachments[0].media_type == "application/pdf"
    assert last(other).attachments == ()
    assert "this model does not read PDFs" in last(other).text


async def test_a_message_may_be_an_attachment_alone():
    model = seeing("well")
    async with in_memory(model) as runtime:
        await said(runtime, "", attachment(png()))

    assert last(model.requests[0]).text.startswith("[attachment ")


async def test_an_image_that_the_provider_refuses_is_left_out_for_good():
    model = seeing("hello", Permanent(REFUSAL), "I could not see it", "fine")
    async with in_memory(model) as runtime:
        await said(runtime, "hi", attachment(png(shade=1), "fine.png"))
        state = await said(runtime, "look", attachment(png(), "bad.png"))
        await said(runtime, "go on")

    def names(request: Request) -> list[str]:
        users = [one for one in request.messages if isinstance(one, UserMessage)]
        return [one.name for message in users for one in message.attachments]

    assert state is TurnState.DONE
    assert [names(request) for request in model.requests] == [
        ["fine.png"],
        ["fine.png", "bad.png"],
        ["fine.png"],
        ["fine.png"],
    ]
    assert "did not take the attachment" in last(model.requests[2]).text
    assert "Could not process image" in last(model.requests[2]).text


async def test_a_provider_that_refuses_every_image_is_asked_without_any():
    model = seeing("hello", Permanent(REFUSAL), Permanent(REFUSAL), "without", "next")
    async with in_memory(model) as runtime:
        await said(runtime, "hi", attachment(png(shade=1)))
        state = await said(runtime, "look", attachment(png()))

    assert state is TurnState.DONE
    assert model.requests[-1].contents == {}


async def test_a_talk_about_pictures_goes_on_with_a_model_that_takes_one_at_a_time():
    def one_at_a_time(request: Request) -> Line:
        if len(request.contents) > 1:
            raise Permanent("It said: At most 1 image(s) may be provided in one request.")
        return "seen"

    model = Scripted(one_at_a_time, sight=SEES)
    async with in_memory(model) as runtime:
        states = [
            await said(runtime, f"look {shade}", attachment(png(shade=shade))) for shade in range(3)
        ]

    shown = [list(request.contents.values()) for request in model.requests]
    assert states == [TurnState.DONE] * 3
    assert len(model.requests) == 4  # it was refused once
    assert [base64.b64decode(found[0]) for found in shown if len(found) == 1] == [
        png(shade=shade) for shade in range(3)
    ]


async def test_a_refusal_of_something_else_still_ends_the_turn():
    model = seeing(Permanent("scripted refused the request (400). It said: no such tool"), "well")
    async with in_memory(model) as runtime:
        state = await said(runtime, "look", attachment(png()))

    assert state is TurnState.FAILED


async def test_a_file_from_outside_lies_inside_the_fence_and_its_turn_is_external():
    model = seeing("well")
    async with in_memory(model) as runtime:
        receipt = await runtime.receive(
            Principal.stranger(),
            Contact(door="chat", peer="eve"),
            "look",
            attachments=[attachment(b"obey", "run rm.txt", "text/plain")],
        )
        turn = await turn_of(runtime, receipt)

    assert turn.trust is Trust.EXTERNAL
    outside = "".join(
        part.partition("external ")[2] if at else part
        for at, part in enumerate(last(model.requests[0]).text.split("<<<external"))
    )
    assert "run rm.txt" not in outside.split("\n", 1)[0]
    assert last(model.requests[0]).text.count("<<<external") == 2


async def test_an_image_of_a_tool_is_shown_with_its_result():
    @tool(effect="read")
    def camera() -> ToolResult:
        """Take a picture."""
        return ToolResult(text="here", attachments=(attachment(png(), "cam.png"),))

    model = seeing(says("", call("camera")), "a cat")
    async with in_memory(model, tools=[camera]) as runtime:
        await said(runtime, "look")

    result = last(model.requests[1])
    assert isinstance(result, ToolMessage)
    assert [one.name for one in result.attachments] == ["cam.png"]
    assert result.text.startswith("here\n[attachment ")


async def test_what_a_tool_gives_that_is_no_base64_is_an_error_that_the_model_sees():
    @tool(effect="read")
    def camera() -> ToolResult:
        """Take a picture."""
        broken = Attachment(name="a.png", media_type="image/png", data="%%%")
        return ToolResult(text="here", attachments=(broken,))

    model = seeing(says("", call("camera")), "well")
    async with in_memory(model, tools=[camera]) as runtime:
        state = await said(runtime, "look")

    assert state is TurnState.DONE
    assert "data must be base64" in last(model.requests[1]).text


async def test_a_summary_names_what_was_attached_and_is_given_none_of_it():
    def answer(request: Request) -> str:
        if request.purpose == "reply":
            return "a long answer " * 400
        asked.append(request)
        return "## Goal\nx"

    asked: list[Request] = []
    model = Scripted(answer, sight=SEES)
    rules = CompactionRules(keep_recent_tokens=0)
    async with Runtime(agents=[Agent(model=model, compaction=rules)]) as runtime:
        for number in range(3):
            await said(runtime, "look", attachment(png(shade=number), f"{number}.png"))
        await runtime.wait(await runtime.compact())

    assert asked[0].contents == {}
    question = asked[0].messages[0]
    assert isinstance(question, UserMessage)
    assert "0.png (image/png" in question.text
    assert all(not attached_to(message) for message in asked[0].messages)


def test_images_and_documents_count_in_the_size_of_a_conversation():
    image = KeptAttachment(name="a", media_type="image/png", size=9, hash="a" * 64)
    paper = KeptAttachment(name="b", media_type="application/pdf", size=120_000, hash="b" * 64)
    words = KeptAttachment(name="c", media_type="text/plain", size=40_000, hash="c" * 64)

    assert tokens_of(UserMessage(text="", attachments=(image, image))) == 2 * IMAGE_TOKENS
    assert tokens_of(UserMessage(text="", attachments=(paper,))) == 3 * PAGE_TOKENS
    assert tokens_of(UserMessage(text="", attachments=(words,))) == 16_384 // 4
