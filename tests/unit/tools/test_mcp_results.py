"""What a server answers is told as text, and what is no text is named."""

from typing import Any

import mcp_types as types
import pytest

from wakeful.tools.mcp.results import as_result
from wakeful.vocabulary.stimulus import Attachment


def answer(*content: Any, **more: Any) -> str:
    return as_result(types.CallToolResult(content=list(content), **more)).text


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def test_texts_are_told_one_below_the_other() -> None:
    assert answer(text("a"), text("b")) == "a\nb"
    assert answer() == "done"


def test_structured_content_is_told_where_there_is_no_text() -> None:
    assert answer(structured_content={"a": [1, 2**70]}) == '{"a":[1,"1180591620717411303424"]}'
    assert answer(text("one"), structured_content={"a": 1}) == "one"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            types.AudioContent(type="audio", data="AAA=", mime_type="audio/\nwav"),
            "[audio: audio/ wav, 2 bytes, not shown]",
        ),
        (types.ResourceLink(type="resource_link", uri="file:///a", name="a"), "[resource: file:"),
        (
            types.EmbeddedResource(
                type="resource",
                resource=types.TextResourceContents(uri="file:///a", text="inside"),
            ),
            "[resource: file:///a]\ninside",
        ),
        (
            types.EmbeddedResource(
                type="resource", resource=types.BlobResourceContents(uri="file:///a", blob="AAAA")
            ),
            "[resource: file:///a]",
        ),
    ],
)
def test_what_is_no_text_is_named(block: Any, said: str) -> None:
    assert said in answer(block)


def test_images_and_files_go_along_with_the_words() -> None:
    image = types.ImageContent(type="image", data="AAAA", mime_type="image/png")
    file = types.EmbeddedResource(
        type="resource",
        resource=types.BlobResourceContents(
            uri="file:///a", blob="AAA=", mime_type="application/pdf"
        ),
    )
    result = as_result(types.CallToolResult(content=[text("look"), image, file]))

    assert result.text == "look\n[resource: file:///a]"
    assert result.attachments == (
        Attachment(name="2.png", media_type="image/png", data="AAAA"),
        Attachment(name="3.pdf", media_type="application/pdf", data="AAA="),
    )


def test_an_error_stays_one() -> None:
    assert as_result(types.CallToolResult(content=[text("no")], is_error=True)).is_error
