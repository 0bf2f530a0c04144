"""What is attached reaches a provider in its own words, the same bytes each time."""

import base64
import json
from typing import Any

import pytest

from tests.integration.providers.scenes import ANTHROPIC, CHAT, RESPONSES, WIRES, answered, talking
from tests.pictures import PDF, attachment, png
from wakeful.testing.providers.plan import Step
from wakeful.testing.providers.process import Providers
from wakeful.turns.turns import TurnState

pytestmark = pytest.mark.timeout(60)  # the first test also waits for the library

PICTURE = base64.b64encode(png()).decode()
PAPER = base64.b64encode(PDF).decode()


def blocks(wire: str, body: dict[str, Any]) -> str:
    """Return the kinds of the blocks that hold the picture and the paper."""
    first = next(
        item for item in body.get("messages", body.get("input", ())) if item["role"] == "user"
    )
    kinds = [block["type"] for block in first["content"] if PICTURE in json.dumps(block)]
    kinds += [block["type"] for block in first["content"] if PAPER in json.dumps(block)]
    return " ".join(kinds)


@pytest.mark.parametrize("wire", WIRES)
async def test_images_and_documents_go_in_the_words_of_the_provider(wire: str, stand_in: Providers):
    mark = "seen_" + wire.partition(":")[0].replace("-", "_")
    stand_in.plan(**{mark: [Step(text="a cat"), Step(text="still")]})
    async with talking(wire) as runtime:
        files = [attachment(png()), attachment(PDF, "p.pdf", "application/pdf")]
        turn = await runtime.wait(await runtime.send(f"look {{{mark}}}", attachments=files))
        await answered(runtime, "again")

    assert turn is not None
    assert turn.state is TurnState.DONE
    expected = {
        ANTHROPIC: "image document",
        CHAT: "image_url file",
        RESPONSES: "input_image input_file",
    }
    first, second = stand_in.bodies(mark)
    assert blocks(wire, first) == blocks(wire, second) == expected[wire]
    assert stand_in.lines("refused") == []


async def test_an_image_that_the_provider_refuses_does_not_fail_the_turn(stand_in: Providers):
    error = {"type": "error", "error": {"type": "invalid", "message": "Could not process image"}}
    stand_in.plan(blind=[Step(status=400, body=json.dumps(error)), Step(text="I cannot see it")])
    async with talking(ANTHROPIC) as runtime:
        sent = await runtime.send("look {blind}", attachments=[attachment(png())])
        turn = await runtime.wait(sent)

    assert turn is not None
    assert (turn.state, turn.reply) == (TurnState.DONE, "I cannot see it")
    first, second = stand_in.bodies("blind")
    assert PICTURE in json.dumps(first)
    assert PICTURE not in json.dumps(second)
