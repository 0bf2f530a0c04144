"""An agent opens what was attached to its conversation, and nothing else."""

import base64
import hashlib
from pathlib import Path

from tests.integration.engine.looking import shown, turn_of
from tests.pictures import attachment, png
from wakeful.access.principal import Principal
from wakeful.intake.bindings import Contact
from wakeful.models.scripted import Line
from wakeful.models.sight import Sight
from wakeful.runtime import Runtime
from wakeful.testing.kit import Scripted, call, in_memory, says
from wakeful.turn.agent import Agent
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import Attachment, ReadyAttachment, Trust

TEXT = attachment("äöü".encode() * 10_000, "long.txt", "text/plain")


def id_of(one: Attachment) -> str:
    return hashlib.sha256(base64.b64decode(one.data)).hexdigest()[:16]


async def results(
    *lines: Line, attached: Attachment = TEXT, sight: Sight | None = None
) -> Scripted:
    model = Scripted(lines, sight=sight or Sight())
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("look", attachments=[attached]))
    return model


async def test_a_long_text_is_read_page_by_page():
    first = says("", call("read_attachment", id=id_of(TEXT), offset=16_000, limit=10))
    last = says("", call("read_attachment", "again", id=id_of(TEXT), offset=29_997))
    model = await results(first, last, "well")

    assert shown(model.requests[1])[-1].startswith("tool: öüäöüäöüäö\n[up to 16010 of 30000;")
    assert shown(model.requests[2])[-1] == "tool: äöü"


async def test_a_page_beyond_the_end_and_an_unknown_id_are_told():
    beyond = says("", call("read_attachment", id=id_of(TEXT), offset=30_000))
    unknown = says("", call("read_attachment", "b", id="0" * 16))
    short = says("", call("read_attachment", "c", id=id_of(TEXT)[:8]))
    model = await results(beyond, unknown, short, "well")

    assert "the text ends at 30000" in shown(model.requests[1])[-1]
    assert "no attachment '0000000000000000'" in shown(model.requests[2])[-1]
    assert "no attachment" in shown(model.requests[3])[-1]


async def test_an_image_is_shown_again():
    image = attachment(png())
    asks = says("", call("read_attachment", id=id_of(image)))
    model = await results(asks, "a cat", attached=image, sight=Sight(images=True))

    result = model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert [one.id for one in result.attachments] == [id_of(image)]


async def test_what_is_not_text_is_described_and_can_be_saved(tmp_path: Path):
    blob = attachment(b"PK\x00\x01", "a.zip", "application/zip")
    model = Scripted(
        [
            says("", call("read_attachment", id=id_of(blob))),
            says("", call("save_attachment", id=id_of(blob), path="in/a.zip")),
            "well",
        ]
    )
    agent = Agent(model=model, workspace=tmp_path / "w")
    async with Runtime(agents=[agent]) as runtime:
        await turn_of(runtime, await runtime.send("look", attachments=[blob]))

    assert "a.zip (application/zip, 4 bytes) is not text" in shown(model.requests[1])[-1]
    assert (tmp_path / "w/in/a.zip").read_bytes() == b"PK\x00\x01"


async def test_what_was_attached_elsewhere_does_not_exist():
    model = Scripted(["noted", says("", call("read_attachment", id=id_of(TEXT))), "well"])
    async with in_memory(model) as runtime:
        await turn_of(runtime, await runtime.send("look", attachments=[TEXT]))
        await turn_of(runtime, await runtime.send("steal it", session="web:other"))

    assert "no attachment" in shown(model.requests[2])[-1]


async def test_a_file_from_outside_makes_the_turn_external_that_reads_it():
    contact = Contact(door="chat", group="club", peer="eve")
    model = Scripted(["noted", says("", call("read_attachment", id=id_of(TEXT))), "well"])
    async with in_memory(model) as runtime:
        first = await runtime.receive(
            Principal.stranger(), contact, "hi", attachments=[TEXT], is_mention=True
        )
        await turn_of(runtime, first)
        turn = await turn_of(runtime, await runtime.send("read it", session=first.session_key))

    assert "<<<external" in shown(model.requests[2])[-1]
    assert turn.trust is Trust.EXTERNAL


def test_a_ready_attachment_is_known_by_the_digits_that_a_model_is_told():
    ready = ReadyAttachment(name="a", media_type="b", size=1, hash="ab" * 32, data="")

    assert ready.id == "ab" * 8
